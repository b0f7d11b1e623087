"""Answers fit into one message, and what is left out is said."""

from uuid import UUID, uuid4

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.cycle_query import PipelineView
from contracts.types import Failure
from libs.runtime.ids import id_range
from services.console.sizes import OperationSizes, cut, fitting, parts, size_of
from services.console.views.tree import SUMMARIES, summary
from services.orchestrator.machine.workflows import DECISION, EXIT, PROBE, STRATEGY

RECORDS = st.lists(
    st.builds(
        OperationSizes,
        op_id=st.uuids(),
        head_bytes=st.integers(1, 150),
        entry_bytes=st.lists(st.integers(1, 150), max_size=12),
    ),
    max_size=5,
    unique_by=lambda record: record.op_id,
)


@given(RECORDS)
def test_parts_hold_every_entry_once_in_order_and_only_single_pieces_are_too_large(
    records: list[OperationSizes],
) -> None:
    limit = 100
    made = parts(records, limit)

    for record in records:
        own = [part for part in made if part.op_id == record.op_id]
        indexes = [i for part in own for i in range(part.first, part.first + part.count)]
        assert indexes == list(range(len(record.entry_bytes)))
        assert own[0].first == 0
        for part in own:
            pieces = list(record.entry_bytes[part.first : part.first + part.count])
            pieces += [record.head_bytes] if part is own[0] else []
            assert sum(pieces) <= limit or len(pieces) == 1
    assert list(dict.fromkeys(part.op_id for part in made)) == [each.op_id for each in records]


def test_what_fits_stays_whole_and_what_does_not_is_shown_by_its_beginning() -> None:
    small = {"a": [1, 2, 3]}
    large = {"text": "é" * 5_000}

    shown = cut(large, 1_000)

    assert cut(small, 1_000) == small
    assert isinstance(shown, dict)
    assert (shown["cut"], shown["size_bytes"]) == (True, size_of(large))
    assert size_of(shown) < 1_200


def test_the_first_items_that_fit_together_are_kept() -> None:
    items = [
        PipelineView(name=f"p{n}", account="a", provider="rules", state="", status="running")
        for n in range(10)
    ]
    room = 3 * len(orjson.dumps(items[0].model_dump(mode="json"))) + 5

    assert [each.name for each in fitting(items, room)] == ["p0", "p1", "p2"]


def test_what_fits_is_counted_in_bytes_not_in_characters() -> None:
    items = [Failure(code="a", message="é" * 100) for _ in range(10)]
    room = 3 * len(items[0].model_dump_json().encode()) + 5

    assert len(fitting(items, room)) == 3


@pytest.mark.parametrize("digits", [4, 8, 13, 31, 32])
def test_the_beginning_of_an_id_is_a_range_that_holds_the_id(digits: int) -> None:
    whole = uuid4()

    between = id_range(whole.hex[:digits])

    assert between is not None
    first, last = between
    assert first <= whole <= last
    assert (first == last) is (digits == 32)


def test_an_id_is_read_with_dashes_capitals_and_blanks() -> None:
    whole = UUID("4332d851-4ebc-510c-b28d-0f5c50338936")

    assert id_range(" 4332D851-4EBC-510c-b28d-0f5c50338936 ") == (whole, whole)


@pytest.mark.parametrize("text", ["", "abc", "xyzw", "4332d85%", "0" * 33])
def test_what_cannot_begin_an_id_is_no_range(text: str) -> None:
    assert id_range(text) is None


def test_every_step_of_the_desk_has_a_summary() -> None:
    states = (*DECISION.shared, *DECISION.states, *filter(None, (DECISION.closing,)))
    states += (*STRATEGY.states, *EXIT.states, *PROBE.states)

    assert {step.name for state in states for step in state.steps} == set(SUMMARIES)


@pytest.mark.parametrize("body", [b"{}", b"[]", b"null", b'{"candidates": 3}'])
def test_a_contract_that_is_not_understood_is_told_by_its_size(body: bytes) -> None:
    assert summary("digest", body) == {"size_bytes": len(body)}
    assert summary("a_step_of_tomorrow", body) == {"size_bytes": len(body)}
