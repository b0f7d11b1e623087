"""Which page of EDGAR is an answer, and what the others mean."""

import orjson
import pytest

from libs.market.edgar.pages import EdgarRefusalKind, read
from tests.fakes.edgar_server import JSON, NO_SUCH_FILE, REFUSALS, XML

LIMITED = {"403 threshold", "429 threshold", "429 empty"}
UNDECLARED = {"403 undeclared", "200 undeclared"}


@pytest.mark.parametrize("name", REFUSALS)
def test_each_refusal_means_what_it_says(name: str) -> None:
    status, kind, text = REFUSALS[name]
    page, refusal = read(status, kind, text.encode(), ("facts", "us-gaap"))
    assert page is None
    assert refusal is not None
    expected = EdgarRefusalKind.LIMITED if name in LIMITED else EdgarRefusalKind.UNAVAILABLE
    assert refusal.sort is (EdgarRefusalKind.UNDECLARED if name in UNDECLARED else expected)
    assert refusal.why


def test_only_the_stores_own_word_means_that_there_is_none() -> None:
    body = NO_SUCH_FILE.encode()
    sorts = {}
    for status in (404, 200, 403):
        refusal = read(status, XML, body)[1]
        assert refusal is not None
        sorts[status] = refusal.sort
    assert sorts == {
        404: EdgarRefusalKind.NONE,
        200: EdgarRefusalKind.UNAVAILABLE,
        403: EdgarRefusalKind.UNAVAILABLE,
    }


def test_a_page_with_what_was_asked_for_is_an_answer() -> None:
    body = orjson.dumps({"facts": {"us-gaap": {}}})
    assert read(200, f"{JSON}; charset=utf-8", body, ("facts",)) == (orjson.loads(body), None)


def test_a_page_says_its_title_and_no_more_than_fits() -> None:
    body = f"<html><head><title>{'so sorry ' * 60}</title>".encode()
    refusal = read(503, "text/html", body)[1]
    assert refusal is not None
    assert refusal.why.startswith("HTTP 503 a page 'so sorry so sorry")
    assert len(refusal.why) <= 120
