"""The operation tree, drawn; a record put together; amounts in words."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from contracts.cycle_query import Recording
from contracts.operation import JournalEntry, OperationStatus, OperationView
from contracts.types import Money, Usage
from libs.facts import amounts
from libs.report.operations import gathered, result_text, took, tree, walk
from services.cli.shell.recordings import merged
from tests.unit.services.cli.screens import lines, printed

AT = datetime(2026, 11, 22, tzinfo=UTC)


def _node(number: int, parent: int | None = None, **fields: Any) -> OperationView:
    given: dict[str, Any] = {
        "op_id": UUID(int=number),
        "parent_id": None if parent is None else UUID(int=parent),
        "cycle_id": UUID(int=1),
        "type": "operation",
        "name": f"n{number}",
        "status": OperationStatus.COMPLETED,
        "created_at": AT,
        **fields,
    }
    return OperationView(**given)


def test_a_later_attempt_says_so_and_a_failed_one_says_why() -> None:
    nodes = [
        _node(
            1, name="plan", state="planning", status=OperationStatus.FAILED, error_message="TSLA"
        ),
        _node(2, name="plan", state="planning", attempt=2),
    ]
    first, again = [line for line in lines([tree(nodes)], 130) if "plan" in line]

    assert "(attempt" not in first
    assert "TSLA" in first
    assert "planning/plan (attempt 2)" in again


def test_what_no_command_shows_has_no_id() -> None:
    nodes = [_node(0xA << 124, type="cycle"), _node(0xB << 124, 0xA << 124, type="pipeline")]
    drawn = printed([tree(nodes)])

    assert "a0000000" in drawn
    assert "b0000000" not in drawn


def test_branches_lead_from_parents_to_children() -> None:
    nodes = [_node(1), _node(2, 1), _node(3, 2), _node(4, 2), _node(5, 1)]

    assert [(branch, node.name) for branch, node in walk(nodes)] == [
        ("", "n1"),
        ("├─ ", "n2"),
        ("│  ├─ ", "n3"),
        ("│  └─ ", "n4"),
        ("└─ ", "n5"),
    ]


def test_a_node_whose_parent_is_not_there_is_a_root() -> None:
    assert [branch for branch, _ in walk([_node(7, 99), _node(8, 7)])] == ["", "└─ "]


def test_equal_calls_in_a_row_are_one_line_with_their_sums() -> None:
    def call(number: int, name: str) -> OperationView:
        metadata = {"duration_ms": 10.0}
        return _node(number, 1, type="tool", name=name, tokens=5, metadata=metadata)

    shown = gathered([_node(1), call(2, "a"), call(3, "a"), call(4, "b"), call(5, "a")])

    assert [node.name for node in shown] == ["n1", "a \N{MULTIPLICATION SIGN}2", "b", "a"]
    assert (shown[1].tokens, took(shown[1])) == (10, "20 ms")


def test_a_tools_line_says_what_it_was_asked_about() -> None:
    def call(number: int, name: str, *asked: str) -> OperationView:
        metadata = {"arguments": {str(place): each for place, each in enumerate(asked)}}
        return _node(number, 1, type="tool", name=name, metadata=metadata)

    nodes = [_node(1), call(2, "a", "AAPL"), call(3, "b", "FB"), call(4, "b", "IBM", "FB")]
    named = [node.name for node in gathered(nodes)]

    assert named == ["n1", "a(AAPL)", "b \N{MULTIPLICATION SIGN}2(FB, IBM)"]


def _paid(number: int, parent: int | None = None, lost: int = 0, **fields: Any) -> OperationView:
    usage = Usage(
        input_tokens=12_340,
        output_tokens=560,
        cache_read_tokens=1_200_000,
        unsorted_tokens=lost,
        cost_usd=Decimal("0.0312"),
    )
    spent = {"tokens": usage.tokens, "cost_usd": usage.cost_usd, "usage": usage}
    return _node(number, parent, **spent, **fields)


def test_every_level_shows_its_tokens_and_what_they_cost() -> None:
    nodes = [_paid(1, type="cycle"), _paid(2, 1, type="pipeline"), _node(3, 2), _paid(4, 2)]

    head, *rows = lines([tree(nodes)])

    assert "tokens USD id" in head
    assert ["1.21M 0.0312" in row for row in rows] == [True, True, False, True]
    assert "USD" not in lines([tree([_node(1), _node(2)])])[0]


def test_a_narrow_terminal_keeps_names_whole_and_leaves_results_out() -> None:
    name = "a step with a name of some length"
    nodes = [_paid(1, type="cycle"), _paid(2, 1, name=name, result_summary={"buys": ["AAPL"]})]

    head, _, second = lines([tree(nodes)], 80)

    assert head.endswith("tokens USD id")
    assert name in second
    assert "buys AAPL" in lines([tree(nodes)], 130)[2]


def test_equal_calls_in_a_row_add_up_by_sort_too() -> None:
    (one,) = gathered([_paid(n, 9, type="model", name="m") for n in range(3)])

    assert one.usage.tokens == one.tokens
    assert one.usage.output_tokens == 3 * 560


def test_a_node_says_why_it_failed_how_far_it_is_or_what_it_came_to() -> None:
    running = {"status": OperationStatus.RUNNING, "progress": {"percentage": 40, "step": "reading"}}

    assert result_text(_node(1, error_message="no such ticker")) == "no such ticker"
    assert result_text(_node(1, **running)) == "40% reading"
    assert result_text(_node(1, result_summary={"buys": ["A", "B"], "sells": []})) == "buys A B"
    assert result_text(_node(1, result_summary={"cash_after": "101507.150000"})) == (
        "cash after 101,507.15"
    )
    assert result_text(_node(1, metadata={"calls_cut": 3})) == "; 3 calls not shown"


def test_parts_of_one_operation_are_one_record_again() -> None:
    def entry(index: int) -> JournalEntry:
        return JournalEntry(
            index=index, kind="tool", name="t", request_sha256="0" * 64, request=None, reply=index
        )

    parts = [
        Recording(op_id=UUID(int=1), command={"a": 1}, result={"b": 2}, journal=(entry(0),)),
        Recording(op_id=UUID(int=1), journal=(entry(1), entry(2))),
        Recording(op_id=UUID(int=2), command={"c": 3}),
    ]

    first, second = merged(parts)

    assert [each.index for each in first.journal] == [0, 1, 2]
    assert (first.command, first.result, second.command) == ({"a": 1}, {"b": 2}, {"c": 3})


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.004, "4 ms"), (1.836, "1.84 s"), (125, "2 min 05 s"), (11_400, "3 h 10 min")],
)
def test_times_are_told_in_the_unit_that_fits(seconds: float, text: str) -> None:
    assert amounts.duration(seconds) == text
    assert amounts.between(AT, AT + timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (1_000, "1.0k"), (12_345, "12.3k"), (4_560_000, "4.56M")],
)
def test_large_numbers_are_short_in_narrow_columns(number: int, text: str) -> None:
    assert amounts.thousands(number) == text


def test_sorts_of_tokens_are_told_without_those_there_was_none_of() -> None:
    assert amounts.sorts(Usage()) == ""
    assert amounts.sorts(Usage(input_tokens=1_200, cache_write_tokens=3)) == (
        "1,200 in · 3 cache write"
    )


def test_amounts_keep_their_cents_and_shares_lose_their_zeros() -> None:
    sum_ = Money(amount=Decimal("1234567.5"), currency="USD")
    assert amounts.money(sum_) == amounts.money(sum_, "EUR") == "1,234,567.50 USD"
    assert amounts.money(sum_, "USD") == "1,234,567.50"
    assert amounts.change(sum_) == "+1,234,567.50 USD"
    assert amounts.quantity(Decimal("68.000000")) == "68"
    assert amounts.quantity(Decimal(1000)) == "1,000"
    assert amounts.percent(Decimal("33.333")) == "33.3%"
    assert amounts.percent(Decimal(40)) == "40%"


def test_a_models_call_says_how_many_tokens_it_wrote_in_a_second() -> None:
    def call(number: int, written: int, ms: float) -> OperationView:
        return _node(
            number,
            1,
            type="model",
            name="lab:m",
            tokens=500 + written,
            usage=Usage(input_tokens=500, output_tokens=written),
            metadata={"duration_ms": ms},
        )

    nodes = [_node(1), call(2, 90, 1_000.0), call(3, 30, 5_000.0), _node(4, 1, type="tool")]
    head, _, both, tool = lines([tree(nodes)], 120)[:4]

    assert "tokens/s" in head
    assert re.search(r"lab:m ×2 avg 3.00 s 20 1.1k ", both), both  # noqa: RUF001 - times
    assert amounts.output_speed(Usage(output_tokens=17), 5_000.0) == "3.4 tokens/s"
    assert amounts.output_speed(Usage(input_tokens=17), 5_000.0) == ""
    assert "tokens/s" not in tool


def test_calls_on_one_line_tell_an_average_for_they_may_have_run_at_the_same_time() -> None:
    step = _node(1, started_at=AT, finished_at=AT + timedelta(milliseconds=98))
    metadata = {"duration_ms": 25.4}
    calls = [_node(n, 1, type="read", name="bars", metadata=metadata) for n in range(2, 7)]
    whole, both = lines([tree([step, *calls])], 120)[1:3]

    assert "98 ms" in whole
    assert "bars ×5" in both  # noqa: RUF001 - times
    assert "avg 25 ms" in both
    assert "127" not in both
