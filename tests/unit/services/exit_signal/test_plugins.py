"""The user's own exit rules: they may sell a part, and no fault of theirs touches the others."""

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue, TypeAdapter, ValidationError

from contracts.account import ActedExit
from contracts.audit import EventType
from contracts.exit_signal import CheckExits, ExitReport
from contracts.operation import JournalEntry
from contracts.plugins import EXIT_RULES, ExitPluginNames
from libs.market.exit_terms import DeskExitRules
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.quant.exits.plugins import answer_of
from libs.report import events
from libs.runtime import plugin_process
from libs.runtime.journal import Journal, RecordedJournal
from libs.runtime.plugin_process import NOT_SET
from services.exit_signal import plugins as own
from services.exit_signal.by_hand import BY_HAND
from services.exit_signal.distance import STOP_ORDER, WAYS
from services.exit_signal.handler import check_exits
from services.exit_signal.reads import ExitReads
from tests.fakes.notable import notable
from tests.unit.services.exit_signal.test_check_exits import AS_OF, command, prices

__all__ = ["prices"]
D = Decimal
RULE, RAISES, SLOW = "my_exits:tired_money", "my_exits:raises", "my_exits:sleeps"
SOURCE = """
import time

def tired_money(position):
    if position["ticker"] == "AAPL":
        return None
    return 25, f"held for {position['sessions_held']} sessions"

def raises(position):
    raise RuntimeError("not today")

def sleeps(position):
    time.sleep(20)
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "my_exits.py"
    file.write_text(SOURCE)
    return file


def asked(*plugins: str, **books: Any) -> CheckExits:
    whole = command("AAPL", "MSFT", **books)
    return whole.model_copy(update={"exit_plugins": plugins})


async def checked(
    folder: Path,
    wanted: CheckExits,
    allowed: tuple[str, ...] = (RULE, RAISES, SLOW),
    record: list[JournalEntry] | None = None,
) -> ExitReport:
    async def keep(new: Any, *_: object) -> None:
        if record is not None:
            record.extend(new)

    journal = Journal((), keep)
    rules = DeskExitRules(folder / "none.toml")
    reads = ExitReads(ReplayMarket(ReplayStore(folder)))
    report = await check_exits(wanted, journal, reads=reads, rules=rules, plugins=allowed)
    await journal.flush()
    return report


async def test_it_sells_its_part_beside_the_desks_own_rules(prices: Path) -> None:
    report = await checked(prices, asked(RULE))
    aapl, msft = report.checks
    assert (aapl.assessment, aapl.quantity) == ("EXIT (momentum)", 30)
    assert (msft.assessment, msft.quantity, msft.sell_pct) == ("EXIT (tired_money)", 10, 25)
    assert msft.acts is not None
    assert msft.acts.rules == ("tired_money",)
    assert msft.signals[-1].detail == "held for 104 sessions"
    assert [(it.plugin, len(it.sha256)) for it in report.plugins] == [(RULE, 64)]
    assert report.warnings == ()


@pytest.mark.parametrize(
    ("plugin", "why"), [(RAISES, "RuntimeError: not today"), (SLOW, "did not answer within 1 s")]
)
async def test_one_that_fails_is_named_and_the_other_rules_sell(
    prices: Path, plugin: str, why: str
) -> None:
    free, bound = await checked(prices, asked()), await checked(prices, asked(plugin))
    assert [it.quantity for it in bound.checks] == [it.quantity for it in free.checks] == [30, None]
    assert all(it.signals[-1].failed and why in it.signals[-1].detail for it in bound.checks)
    (warning,) = bound.warnings
    assert warning.startswith(f"exit rule {plugin} gave no answer that counts on 2 of 2 positions")
    told = events.described(notable(EventType.EXITS_CHECKED, **bound.model_dump(mode="json")))
    assert warning in told.lines
    assert why not in f"{told.title} {told.lines} {told.reason}"


async def test_the_desks_rules_do_not_wait_for_ever(
    prices: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_process, "ALL_S_MAX", 0.0)
    report = await checked(prices, asked(RULE))
    assert [it.quantity for it in report.checks] == [30, None]
    assert "not all was answered within 0 s" in report.checks[0].signals[-1].detail


@pytest.mark.parametrize("allowed", [(), (RULE,)])
def test_a_command_alone_runs_no_code(
    prices: Path, module: Path, tmp_path: Path, allowed: tuple[str, ...]
) -> None:
    ran = tmp_path / "ran"
    module.write_text(f"open({str(ran)!r}, 'w')\n" + SOURCE)
    report = asyncio.run(checked(prices, asked(RULE), allowed))
    assert ran.exists() is bool(allowed)
    assert (report.checks[1].quantity is None) is not bool(allowed)
    assert (NOT_SET in report.checks[1].signals[-1].detail) is not bool(allowed)


def test_it_is_found_again_from_the_record_without_the_plug_in(
    prices: Path, module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "POSITIONS_A_CALL", 1)
    record: list[JournalEntry] = []
    wanted = asked(RULE)
    first = asyncio.run(checked(prices, wanted, record=record))
    module.unlink()
    again = check_exits(
        wanted,
        RecordedJournal(record),
        reads=ExitReads(ReplayMarket(ReplayStore(prices))),
        rules=DeskExitRules(prices / "none.toml"),
    )
    assert asyncio.run(again) == first
    assert len(first.plugins) == 1


async def test_it_acts_once_on_a_position(prices: Path) -> None:
    act = ActedExit(
        rules=("tired_money",),
        month="2012-05",
        held=D(53),
        asked=D(13),
        ticker="MSFT",
        as_of=AS_OF.replace(day=1),
        sold=D(13),
    )
    report = await checked(prices, asked(RULE, exits=(act,)))
    msft = report.checks[1]
    assert msft.quantity is None
    assert msft.note.startswith(
        "tired_money acted on 2012-06-01, sold 13 of 53 shares; it acts once"
    )


@pytest.mark.parametrize(
    "answer",
    [[], 50, "50", [True, "yes"], ["50", "text"], [-1, "less"], [101, "more"], [float("nan"), "no"],
     [float("inf"), "no"], [50, ""], [50, " \n"], [50, None], [50, "why", "more"], {"pct": 50}],
)  # fmt: skip
def test_what_is_no_percentage_with_a_reason_has_failed(answer: JsonValue) -> None:
    said = answer_of(answer)
    assert said.failed
    assert said.sell_pct == 0
    assert said.reason.startswith("it returned ")


def test_nothing_and_a_part_are_answers() -> None:
    assert not answer_of(None).failed
    part = answer_of([33.333333, "two\nlines\x1b[31m"])
    assert (part.sell_pct, part.reason) == (D("33.3333"), "two lines [31m")


def test_the_names_that_the_desk_has_are_those_of_its_rules() -> None:
    assert {*WAYS, STOP_ORDER, BY_HAND} == EXIT_RULES


@pytest.mark.parametrize(
    ("names", "wrong"),
    [
        (["mine:stop_loss"], "the name of an exit rule of the desk's"),
        (["mine:Tired"], "cannot name an exit rule"),
        (["a:tired", "b:tired"], "two functions have the same name"),
        (["mine"], "package.module:function"),
    ],
)
def test_a_function_whose_name_cannot_be_a_rules_is_refused(names: list[str], wrong: str) -> None:
    with pytest.raises(ValidationError, match=wrong):
        TypeAdapter(ExitPluginNames).validate_python(names)
