"""Pages of EDGAR, told apart: an answer, or one of its refusals. Pure.

EDGAR answers JSON, and refuses with HTML pages: undeclared callers, too many requests, maintenance.
A file that its store does not have is refused in the store's own XML; only that is "there is none".
"""

from collections.abc import Sequence
from typing import Any

from libs.market.asking.pages import SHOWN_BYTES, json_in, no_answer, titled
from libs.market.errors import NotInSource, RateLimited

SOURCE = "edgar"
CONTAINERS_MAX = 400_000
"""Objects and lists of a page: each takes up to 230 bytes in memory. The figures of a company are
one each; the largest companies have some 100,000."""
VALUES_MAX = 3_000_000

_TOO_MANY = 429
_FORBIDDEN = 403
_NOT_FOUND = 404
_OK = 200
_UNDECLARED = b"undeclared automated tool"
_THRESHOLD = b"request rate threshold exceeded"
_NO_SUCH_FILE = b"<code>nosuchkey</code>"


def read(what: str, status: int, kind: str, body: bytes, holds: Sequence[str]) -> Any:
    """The JSON of a page of `kind` (its content type) that has the path `holds`.

    Raises RateLimited (also where EDGAR does not take the User-Agent for a caller that names a
    contact), NotInSource for a file that it does not have, and SourceUnavailable.
    """
    start = body[:SHOWN_BYTES].lower()
    # The page for undeclared callers speaks of the threshold too, so it is looked for first.
    if _UNDECLARED in start:
        raise RateLimited(
            what,
            why="EDGAR refuses the contact: set DESKBUS_EDGAR_CONTACT to an e-mail address "
            "that the SEC can write to",
        )
    if status == _TOO_MANY or (_THRESHOLD in start and status in (_OK, _FORBIDDEN)):
        raise RateLimited(what)
    if status == _NOT_FOUND and _NO_SUCH_FILE in start:
        raise NotInSource(what, SOURCE, "EDGAR has none; leave it out")
    if status != _OK:
        raise no_answer(what, status, titled(body))
    try:
        page = json_in(kind, body, containers_max=CONTAINERS_MAX, values_max=VALUES_MAX)
    except ValueError as error:
        raise no_answer(what, status, str(error)) from None
    if not _has(page, holds):
        raise no_answer(what, status, f"JSON without {'.'.join(holds)}")
    return page


def _has(page: Any, holds: Sequence[str]) -> bool:
    for name in holds:
        if not isinstance(page, dict) or name not in page:
            return False
        page = page[name]
    return isinstance(page, dict | list)
