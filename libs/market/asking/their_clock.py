"""A live source's own clock, which keeps a desk whose clock is ahead from deciding too early.

What a source says without a date counts for the newest session that has closed by this machine's
clock. Where that is ahead, a session that goes on would count as closed. Pure.
"""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

AHEAD_S_MAX = 300.0
"""By so much this machine may be ahead: less than a source takes to settle after a close."""


def ahead(date: str | None, age: str | None, now: datetime) -> str | None:
    """How far `now` is ahead of the source, in words; None where it is not, or where the source
    does not say what time it is. `date` and `age` (seconds in a cache) are headers of its answer
    (RFC 9110, 5.6.7; RFC 9111, 5.1)."""
    try:
        theirs = parsedate_to_datetime(date or "")
    except ValueError:
        return None
    if theirs.tzinfo is None:
        theirs = theirs.replace(tzinfo=UTC)
    seconds = (now - theirs).total_seconds()
    if age is not None and age.isascii() and age.isdigit() and len(age) < 10:
        seconds -= int(age)
    if seconds <= AHEAD_S_MAX:
        return None
    return f"this machine's clock is {seconds:.0f} s ahead of its own; set the clock right"
