"""The one place that looks for numbers in prose: the digits in a model's few words.

It marks and never judges: a number that is one of its reason's own facts is a figure, one that
stands in a fact's name, label or headline passes, any other is loose. There are no exceptions by
pattern, and there will be none: a wrong mark is cheaper than a rule.
"""

import re
from collections.abc import Iterable, Iterator
from unicodedata import normalize

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def plain_digits(text: str) -> str:
    """The text with the digits of every script as 0 to 9, full-width and raised ones too."""
    folded = normalize("NFKC", text)
    return "".join(str(int(char)) if char.isdecimal() else char for char in folded)


def numbers_in(text: str) -> Iterator[tuple[int, str]]:
    """Each run of digits in a text of plain digits, with its place."""
    return ((match.start(), match[0]) for match in _NUMBER.finditer(text))


def same(written: str, value: float) -> bool:
    """True where a written number is this value, rounded to the places that it is written with."""
    return any(_rounds_to(value, reading) for reading in _readings(written))


def passes(written: str, texts: Iterable[str]) -> bool:
    """True where one of these texts has the number as it is written."""
    return any(written == number for text in texts for _, number in numbers_in(plain_digits(text)))


def _readings(written: str) -> Iterator[str]:
    yield written.replace(",", "")  # 1,234.5
    if written.count(",") == 1:
        yield written.replace(".", "").replace(",", ".")  # 1.234,5


def _rounds_to(value: float, written: str) -> bool:
    if written.count(".") > 1:
        return False
    places = len(written.partition(".")[2])
    return abs(abs(value) - float(written)) <= 0.5 * float(10**-places) + 1e-9
