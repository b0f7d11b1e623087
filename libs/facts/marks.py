"""The mark of a dated event: made from what it says, so whoever asks the same source finds it."""

import hashlib
from datetime import date, datetime

_LETTERS = str.maketrans("0123456789", "ghijklmnop")
_CHARS = 8


def event_mark(ticker: str, kind: str, on: date, known_at: datetime, text: str) -> str:
    """Eight letters: no digits, so that nobody takes a mark for a figure of the text around it."""
    source = "\n".join((ticker, kind, on.isoformat(), known_at.isoformat(), text))
    return hashlib.sha256(source.encode()).hexdigest()[:_CHARS].translate(_LETTERS)
