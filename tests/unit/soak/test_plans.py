"""The look at statements' plans in `make soak` finds a table that is read whole."""

from typing import Any

import pytest

from tests.browser.plans import read_whole

Plan = dict[str, Any]
WALK: Plan = {"Node Type": "Index Scan", "Index Name": "by_time", "Relation Name": "cycles"}


def over(kind: str, *below: Plan) -> Plan:
    return {"Node Type": kind, "Plans": list(below)}


def test_a_sequential_scan_is_found_wherever_it_stands() -> None:
    scan = {"Node Type": "Seq Scan", "Relation Name": "operations"}
    assert list(read_whole(over("Limit", over("Nested Loop", WALK, scan)), set())) == ["operations"]


@pytest.mark.parametrize("kind", ["Sort", "Aggregate", "Hash"])
def test_an_index_that_is_walked_to_its_end_is_found(kind: str) -> None:
    assert list(read_whole(over("Limit", over(kind, WALK)), set())) == ["cycles"]


def test_an_index_that_is_walked_until_a_limit_is_none() -> None:
    assert list(read_whole(over("Limit", WALK), set())) == []
    assert list(read_whole(over("Sort", over("Limit", WALK)), set())) == []


def test_an_index_that_is_asked_or_partial_is_none() -> None:
    assert list(read_whole(over("Sort", WALK | {"Index Cond": "(id = $1)"}), set())) == []
    assert list(read_whole(over("Sort", WALK), {"by_time"})) == []


def test_an_index_that_is_read_whole_into_a_bitmap_is_found_unless_it_is_of_few_rows() -> None:
    decided = {"Node Type": "Bitmap Index Scan", "Index Name": "decided"}
    of_cycle = decided | {"Index Name": "of_cycle", "Index Cond": "(cycle_id = $1)"}
    heap = over("Bitmap Heap Scan", over("BitmapAnd", of_cycle, decided))
    heap["Relation Name"] = "operations"
    assert list(read_whole(over("Limit", heap), set())) == ["operations"]
    assert list(read_whole(over("Limit", heap), {"decided"})) == []
