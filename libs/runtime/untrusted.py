"""Text of strangers: one line, nothing hidden in it, of bounded length."""

import re
import unicodedata
from itertools import groupby

HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Unicode categories that a person does not see and a model reads: control, direction and
zero-width characters, tags, private use, lone surrogates, line and paragraph separators."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
"""Those of the first category: most texts hide nothing else than the ends of their lines."""


def clean_line(text: str, chars_max: int) -> str:
    """`text` with each run of hidden characters as one space, cut to `chars_max`."""
    on_one_line = _CONTROL.sub(" ", text)
    if on_one_line.isprintable():  # no hidden character is; nearly every text is
        return on_one_line.strip()[:chars_max]
    parts = (
        " " if hidden else "".join(run)
        for hidden, run in groupby(text, lambda char: unicodedata.category(char) in HIDDEN)
    )
    return "".join(parts).strip()[:chars_max]
