"""Decisions in a list: those in a row that did nothing are one line."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from contracts.execution import DecisionView
from contracts.risk import UnreadableDecision
from services.console.pages import folded as folding
from services.console.pages.folded import QuietDecisions, folded

MESSAGES = Path(__file__).parents[3] / "data/messages"
NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def plain_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision as its row: what is looked at here is which are folded."""
    monkeypatch.setattr(folding.logic, "decision_view", lambda row: row["decision"])


def row(number: int, kind: str, decision: str | None) -> dict[str, Any]:
    at = NOW - timedelta(minutes=number)
    as_of = date(2012, 6, 29) - timedelta(days=number)
    return {"kind": kind, "decision": decision, "finished_at": at, "as_of": as_of}


def test_checks_that_did_nothing_are_one_line_and_what_did_something_keeps_its_place() -> None:
    rows = [
        *(row(n, "exit", None) for n in range(12)),
        row(12, "decision", "bought"),
        row(13, "exit", None),
        row(14, "decision", None),
        row(15, "exit", "sold"),
    ]
    first, bought, between, sold = folded(rows, 6)
    assert isinstance(first, QuietDecisions)
    assert isinstance(between, QuietDecisions)
    assert (first.words, first.at) == ("12 checks, nothing to do", NOW)
    assert (first.first, first.last) == (date(2012, 6, 18), date(2012, 6, 29))
    assert between.words == "1 check and 1 decision, nothing to do"
    assert (bought, sold) == ("bought", "sold")


def test_no_more_lines_are_made_than_are_shown() -> None:
    rows = [row(n, "exit", None if n % 2 else f"sold {n}") for n in range(40)]
    assert len(folded(rows, 5)) == 5
    assert folded([], 5) == []


def test_no_decision_is_read_that_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(folding.logic, "decision_view", lambda row: shown.append(row["decision"]))

    folded([row(0, "exit", None), *(row(n, "decision", f"bought {n}") for n in range(1, 80))], 5)

    assert shown == ["bought 1", "bought 2", "bought 3", "bought 4"]


def test_a_decision_that_cannot_be_read_stands_for_itself_and_the_others_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    named = {"cycle_id": UUID(int=1), "pipeline": "rules", "account": "main"}
    unread = row(0, "decision", '{"of": "a newer desk"}') | named | {"execution": None}
    done = (MESSAGES / "DecisionValidation.json").read_text()

    there, read = folded([unread, unread | {"decision": done}], 5)

    assert there == UnreadableDecision(**named, as_of=unread["as_of"], at=unread["finished_at"])
    assert isinstance(read, DecisionView)
    assert isinstance(folded([unread | {"decision": done, "execution": "{}"}], 5)[0], type(there))
