"""Pages of Alpaca's data host, told apart: an answer, or one of its refusals. Pure.

It answers JSON and refuses in JSON (`message`); what stands before it refuses with HTML.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from contracts.types import shortened
from libs.market.asking.pages import WHY_CHARS_MAX, json_in, no_answer, titled
from libs.market.errors import (
    BadVendorData,
    MarketError,
    RateLimited,
    SourceUnavailable,
    UnknownTicker,
)

SOURCE = "alpaca"
KEY_SETTING = "DESKBUS_ALPACA_DATA_KEY_FILE"
CONTAINERS_MAX = 60_000
"""Objects and lists of a page: a page of bars has 10,000, one of headlines some 500."""
VALUES_MAX = 1_000_000
WAIT_S = (1.0, 900.0)
"""The shortest and the longest rest that a header may ask for."""

_OK = 200
_UNAUTHORIZED = 401
_FORBIDDEN = 403
_TOO_MANY = 429
_MISTAKES = frozenset({400, 422})
_INVALID_SYMBOL = re.compile(r"invalid symbol:? ?([A-Za-z0-9./:_-]{1,40})")


class AlpacaForbidden(SourceUnavailable):
    """The account may not read what was asked for, or not yet."""

    def __init__(self, what: str, why: str) -> None:
        clock = "; is this machine's clock right?" if "recent" in why.lower() else ""
        super().__init__(what, f"Alpaca says: {why}{clock}")


@dataclass(frozen=True, slots=True)
class RateSeen:
    """The account's rate, as an answer's headers tell it; `resets_at` in seconds since 1970."""

    limit: int
    remaining: int
    resets_at: int

    def wait_s(self, now_s: float) -> float:
        """The rest until the rate begins anew, within WAIT_S."""
        least, most = WAIT_S
        return min(most, max(least, self.resets_at - now_s))


def rate_in(headers: Mapping[str, str]) -> RateSeen | None:
    """The rate that an answer tells; None where it tells none that can be read."""
    names = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
    values = [headers.get(name, "") for name in names]
    if not all(value.isascii() and value.isdigit() and len(value) <= 12 for value in values):
        return None
    return RateSeen(*map(int, values))


@dataclass(frozen=True)
class AlpacaPage:
    """One page: what it holds, the token of the next one, and the rate as it told it."""

    rows: Any
    next_token: str | None
    rate: RateSeen | None


@dataclass(frozen=True)
class AlpacaAnswer:
    """An answer to the question `what`, which came at `now_s` (seconds since 1970). `hidden` takes
    the keys out of what is told of it."""

    what: str
    response: httpx2.Response
    now_s: float
    hidden: Callable[[str], str]

    def page(self, holds: str, shape: type) -> AlpacaPage:
        """Its page, whose `holds` is of `shape` (list or dict) and that names a next page or none.

        Raises RateLimited, AlpacaForbidden, UnknownTicker for a symbol that is none, BadVendorData
        for a question that is not taken, and SourceUnavailable.
        """
        page, broken = self._json()
        if self.response.status_code != _OK:
            raise self._refusal(_message(page))
        if broken:
            raise self._none(broken)
        if not isinstance(page, dict) or not isinstance(page.get(holds), shape):
            raise self._none(_message(page) or f"JSON without {holds}")
        token = page.get("next_page_token")
        if token is not None and not (isinstance(token, str) and 0 < len(token) <= 1_000):
            raise self._none("JSON whose next_page_token is no text")
        return AlpacaPage(page[holds], token, rate_in(self.response.headers))

    def _json(self) -> tuple[Any, str]:
        """What it holds, and why that is no JSON."""
        kind = self.response.headers.get("Content-Type", "")
        try:
            return json_in(
                kind,
                self.response.content,
                containers_max=CONTAINERS_MAX,
                values_max=VALUES_MAX,
            ), ""
        except ValueError as error:
            return None, str(error)

    def _none(self, why: str) -> SourceUnavailable:
        return no_answer(self.what, self.response.status_code, self.hidden(why))

    def _refusal(self, message: str) -> MarketError:
        status, rate = self.response.status_code, rate_in(self.response.headers)
        said, shown = self.hidden(message), self.hidden(message or titled(self.response.content))
        if status == _TOO_MANY:
            return RateLimited(self.what, None if rate is None else rate.wait_s(self.now_s))
        if status == _UNAUTHORIZED:
            return SourceUnavailable(
                self.what,
                f"Alpaca refuses the key in the file of {KEY_SETTING} ({shown}): a paper account "
                f"that is reset loses its keys; make a new pair and write it into the file",
            )
        if status == _FORBIDDEN and said:
            return AlpacaForbidden(self.what, said)
        if status in _MISTAKES and said:
            if match := _INVALID_SYMBOL.search(said):
                return UnknownTicker(match[1], SOURCE)
            why = f"Alpaca refuses the request: {said}"
            return BadVendorData(self.what, why, "Deskbus")
        return self._none(shown)


def _message(page: Any) -> str:
    said = page.get("message") if isinstance(page, dict) else None
    return shortened(" ".join(said.split()), WHY_CHARS_MAX) if isinstance(said, str) else ""
