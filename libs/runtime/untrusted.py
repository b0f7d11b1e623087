"""Text of strangers: one line, nothing hidden in it, of bounded length."""

import unicodedata
from itertools import groupby

HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Unicode categories that a person does not see and a model reads: control, direction and
zero-width characters, tags, private use, lone surrogates, line and paragraph separators."""


def clean_line(text: str, chars_max: int) -> str:
    """`text` with each run of hidden characters as one space, cut to `chars_max`."""
    if text.isprintable():  # no hidden character is; nearly every text is
        return text.strip()[:chars_max]
    parts = (
        " " if hidden else "".join(run)
        for hidden, run in groupby(text, lambda char: unicodedata.category(char) in HIDDEN)
    )
    return "".join(parts).strip()[:chars_max]
