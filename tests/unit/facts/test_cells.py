"""No exported text is run by a spreadsheet, and none is lost."""

import re

import pytest

from libs.facts.cells import READ_BACK, as_text, read_back

RUN = ["=HYPERLINK(1)", "+1+1", "-2+3", "@SUM(1)", "\tx", "\r=1", "'=1", "''@x"]
PLAIN = ["", "Apple", "'", "it's = 1", "'tis", " =1", "3M", "1-800"]


@pytest.mark.parametrize("text", RUN)
def test_a_text_that_begins_like_a_formula_is_marked_as_text(text: str) -> None:
    assert as_text(text) == f"'{text}"


@pytest.mark.parametrize("text", PLAIN)
def test_any_other_text_stays_as_it_is(text: str) -> None:
    assert as_text(text) == text


@pytest.mark.parametrize("text", [*RUN, *PLAIN])
def test_every_text_is_read_back_as_it_was(text: str) -> None:
    assert read_back(as_text(text)) == text
    assert re.sub(READ_BACK, r"\1", as_text(text)) == text
