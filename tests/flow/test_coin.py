"""The coin: as many picks as the rules, of the same sizes, of tickers that the lot has drawn."""

from collections import Counter
from datetime import date

import pytest

from contracts.cycle import CycleRequest, StudyCell
from contracts.message import Pipeline
from libs.llm.registry import all_providers
from libs.llm.rules.coin import BY_LOT, CoinProvider
from libs.runtime.settings import Settings
from tests.fakes.in_process_desk import InProcessDesk, broker_of_the_imagination
from tests.flow.conftest import thinking_routes

DAY = date(2012, 6, 29)
UNIVERSE = ("AAPL", "FB", "GOOG", "IBM", "MSFT")
ARMS = tuple(
    Pipeline(name=name, provider=provider, account=f"study-0123abcd-0-0-{name}", masked=masked)
    for name, provider, masked in (
        ("rules", "rules", False),
        ("coin", "coin", False),
        ("blind", "coin", True),
    )
)


async def decided(seed: int, day: date = DAY) -> InProcessDesk:
    settings = Settings()
    desk = InProcessDesk([*await thinking_routes(settings), *broker_of_the_imagination()], settings)
    cycle = await desk.run(
        CycleRequest(
            idempotency_key=f"cell-{day}-{seed}",
            as_of=day,
            universe=tuple(name for name in UNIVERSE if name != "FB" or day.year > 2012),
            pipelines=ARMS,
            study=StudyCell(study="luck", number=0, seed=seed),
        )
    )
    assert {lane.status for lane in cycle.state.lanes.values()} == {"completed"}
    return desk


def picks(desk: InProcessDesk, arm: str) -> list[dict[str, object]]:
    found = desk.contract("picks", arm)["picks"]
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("day", [date(2006, 11, 9), date(2010, 5, 6), DAY])
async def test_it_buys_as_many_as_the_rules_for_no_larger_shares(day: date) -> None:
    desk = await decided(7, day)
    ruled, drawn = picks(desk, "rules"), picks(desk, "coin")
    assert drawn
    assert len(drawn) <= len(ruled)
    asked = sorted((float(str(pick["allocation_pct"])) for pick in ruled), reverse=True)
    given = sorted((float(str(pick["allocation_pct"])) for pick in drawn), reverse=True)
    assert all(mine <= theirs for mine, theirs in zip(given, asked, strict=False))
    assert {pick["confidence"] for pick in drawn} <= {pick["confidence"] for pick in ruled}


async def test_its_reason_is_the_lot_and_the_rules_of_risk_judge_it_like_any_other() -> None:
    desk = await decided(7)
    whys = {reason["why"] for pick in picks(desk, "coin") for reason in pick["reasons"]}
    assert whys == {BY_LOT}
    checks = desk.contract("validate", "coin")["checks"]
    assert {check["rule"] for check in checks} >= {"own_reason", "risk_per_trade"}
    assert desk.contract("validate", "coin")["decisions"]


async def test_what_was_not_drawn_says_how_many_were_and_names_no_model() -> None:
    desk = await decided(7)
    bought = picks(desk, "coin")
    causes = desk.contract("picks", "coin")["passed"]
    assert {it["cause"] for it in causes} <= {"rule", "threshold"}, "a coin is no model"
    passed = [it for it in causes if it["cause"] == "threshold"]
    assert passed
    whole = len(bought) + len(passed)
    assert {(it["name"], it["value"], it["limit"]) for it in passed} == {
        ("the lot", "not drawn", f"one of {len(bought)} drawn of {whole}")
    }


@pytest.mark.slow
async def test_the_same_cell_is_drawn_alike_named_and_masked_and_another_sample_is_not() -> None:
    first, again = await decided(1), await decided(1)
    assert picks(first, "coin") == picks(again, "coin")
    bought = [(pick["ticker"], pick["allocation_pct"]) for pick in picks(first, "coin")]
    assert bought == [(p["ticker"], p["allocation_pct"]) for p in picks(first, "blind")]
    draws = {
        tuple(pick["ticker"] for pick in picks(await decided(seed), "coin")) for seed in range(2, 8)
    }
    assert len(draws) > 1


@pytest.mark.slow
async def test_over_many_seeds_every_ticker_has_its_turn() -> None:
    day = date(2012, 8, 31)  # no exit rule would sell any of them at this close
    desk = await decided(1, day)
    drawn: Counter[str] = Counter()
    for seed in range(12):
        drawn.update(str(pick["ticker"]) for pick in picks(await decided(seed, day), "coin"))
    assert set(drawn) == {f["ticker"] for f in desk.contract("analyst", "coin")["tickers"]}


def test_every_desk_has_it() -> None:
    assert isinstance(all_providers(Settings())["coin"], CoinProvider)
