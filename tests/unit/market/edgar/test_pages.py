"""Which page of EDGAR is an answer, and what the others mean."""

import orjson
import pytest

from libs.market.edgar.pages import read
from libs.market.errors import MarketError, NotInSource, RateLimited, SourceUnavailable
from tests.fakes.edgar_server import JSON, NO_SUCH_FILE, REFUSALS, XML

LIMITED = {"403 threshold", "429 threshold", "429 empty"}
UNDECLARED = {"403 undeclared", "200 undeclared"}
FACTS = ("facts",)


@pytest.mark.parametrize("name", REFUSALS)
def test_each_refusal_means_what_it_says(name: str) -> None:
    status, kind, text = REFUSALS[name]
    with pytest.raises(SourceUnavailable) as refused:
        read("it", status, kind, text.encode(), ("facts", "us-gaap"))
    assert isinstance(refused.value, RateLimited) is (name in LIMITED | UNDECLARED)
    assert ("DESKBUS_EDGAR_CONTACT" in refused.value.message) is (name in UNDECLARED)


def test_only_the_stores_own_word_means_that_there_is_none() -> None:
    kinds = {}
    for status in (404, 200, 403):
        with pytest.raises(MarketError) as refused:
            read("it", status, XML, NO_SUCH_FILE.encode(), FACTS)
        kinds[status] = refused.type
    assert kinds == {404: NotInSource, 200: SourceUnavailable, 403: SourceUnavailable}


def test_a_page_with_what_was_asked_for_is_an_answer() -> None:
    body = orjson.dumps({"facts": {"us-gaap": {}}})
    assert read("it", 200, f"{JSON}; charset=utf-8", body, FACTS) == orjson.loads(body)


def test_a_page_says_its_title_and_no_more_than_fits() -> None:
    body = f"<html><head><title>{'so sorry ' * 60}</title>".encode()
    with pytest.raises(SourceUnavailable, match="HTTP 503 a page 'so sorry so sorry") as refused:
        read("it", 503, "text/html", body, FACTS)
    assert len(refused.value.message) <= 240
