"""Tickers and companies that a text names."""

import re
from collections.abc import Iterator

from libs.quant.grounding import words
from libs.quant.grounding.facts import Facts
from libs.quant.grounding.figures import ticker_names
from libs.quant.grounding.spoken import Named

_CAPITALISED = re.compile(r"\b[A-Z][a-z]{3,}\b")
LETTERS_MIN = 3
NAME_RATIO_MAX = 2.25
"""A name has few letters that its ticker leaves out."""


def named_in(text: str, facts: Facts) -> list[Named]:
    """The tickers of the evidence that a text names, by ticker or by company, in its order."""
    names = [Named(f.start, f.end, f.text) for f in ticker_names(text) if f.text in facts.tickers]
    return sorted({*names, *_dotted(text, facts), *_by_name(text, facts)}, key=lambda n: n.start)


def _dotted(text: str, facts: Facts) -> Iterator[Named]:
    for ticker in facts.tickers:
        if re.search(r"[.-]", ticker):
            for match in re.finditer(re.escape(ticker), text):
                yield Named(match.start(), match.end(), ticker)


def _by_name(text: str, facts: Facts) -> Iterator[Named]:
    """Companies by their names: "Microsoft" holds the letters of MSFT, in their order."""
    for match in _CAPITALISED.finditer(text):
        word = match.group().lower()
        if match.group() in facts.names:
            yield Named(match.start(), match.end(), facts.names[match.group()])
            continue
        for ticker in facts.tickers:
            letters = ticker.partition(".")[0].lower()
            short = re.sub(r"(.)\1", r"\1", letters)
            if (
                len(letters) >= LETTERS_MIN and len(word) <= NAME_RATIO_MAX * len(letters)
                and word[0] == letters[0] and word not in words.CALENDAR
                and (_holds(word, letters) or _holds(word, short))
            ):  # fmt: skip
                yield Named(match.start(), match.end(), ticker)


def _holds(word: str, letters: str) -> bool:
    rest = iter(word)
    return all(letter in rest for letter in letters)
