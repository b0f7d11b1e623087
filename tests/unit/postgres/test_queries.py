"""Statements that take rows by the names of their columns."""

from pathlib import Path

import pytest

from libs.postgres.queries import Queries

FILLS = """\
-- name: book_fills
insert into fills (ticker, price)
select ticker, price from rows($fills) as t (ticker text, price numeric)
where cardinality($fills.ticker) > 0
"""


@pytest.fixture
def sql(tmp_path: Path) -> Queries:
    (tmp_path / "queries.sql").write_text(FILLS)
    return Queries(tmp_path / "queries.sql")


def test_the_columns_of_rows_are_numbered_arrays(sql: Queries) -> None:
    assert "unnest($1::text[], $2::numeric[]) as t (ticker, price)" in sql.book_fills
    assert "cardinality($1::text[]) > 0" in sql.book_fills


def test_rows_are_given_by_name_in_any_order_of_their_columns(sql: Queries) -> None:
    rows = [{"price": 3, "ticker": "AAPL"}, {"ticker": "MSFT", "price": 4}]

    assert sql.arrays(sql.book_fills, fills=rows) == [["AAPL", "MSFT"], [3, 4]]


def test_without_rows_each_column_is_an_empty_array(sql: Queries) -> None:
    assert sql.arrays(sql.book_fills, fills=[]) == [[], []]


def test_a_row_that_lacks_a_column_is_refused(sql: Queries) -> None:
    with pytest.raises(KeyError, match="price"):
        sql.arrays(sql.book_fills, fills=[{"ticker": "AAPL"}])


def test_a_part_stands_in_each_statement_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "queries.sql"
    path.write_text(
        "-- part: columns\naccount, clock\n\n-- name: one\nselect {columns} from accounts where "
        "account = $1\n\n-- name: fields\nselect notice #>> '{a,b}' from notices\n"
    )
    assert dict(Queries(path)) == {
        "one": "select account, clock from accounts where account = $1",
        "fields": "select notice #>> '{a,b}' from notices",
    }
