"""Tickers and companies that a text names."""

import re
from collections.abc import Iterator

from libs.quant.grounding import words
from libs.quant.grounding.facts import Facts
from libs.quant.grounding.figures import ticker_names
from libs.quant.grounding.spoken import Named

_CAPITALISED = re.compile(r"\b[A-Z][a-z]{3,}\b")
_IN_SENTENCE = re.compile(r"[a-z,]\s$")
_VOWELS = frozenset("aeiou")
LETTERS_MIN = 3
NAME_RATIO_MAX = 2.25
"""A name has few letters that its ticker leaves out."""


def named_in(text: str, facts: Facts) -> list[Named]:
    """The tickers of the evidence that a text names, by ticker or by company, in its order."""
    names = [Named(f.start, f.end, f.text) for f in ticker_names(text) if f.text in facts.tickers]
    found = {*names, *_dotted(text, facts), *_by_name(text, facts)}
    return sorted(found, key=lambda each: (each.start, each.ticker))


def _dotted(text: str, facts: Facts) -> Iterator[Named]:
    for ticker in facts.tickers:
        if re.search(r"[.-]", ticker):
            for match in re.finditer(re.escape(ticker), text):
                yield Named(match.start(), match.end(), ticker)


def _by_name(text: str, facts: Facts) -> Iterator[Named]:
    """Companies by their names: "Microsoft" holds the letters of MSFT, in their order."""
    short_of = _two_letters(text, facts)
    for match in _CAPITALISED.finditer(text):
        if match.group() in short_of:
            yield Named(match.start(), match.end(), short_of[match.group()])
            continue
        word = match.group().lower()
        if match.group() in facts.names:
            yield Named(match.start(), match.end(), facts.names[match.group()])
            continue
        for ticker in sorted(facts.tickers):
            letters = ticker.partition(".")[0].lower()
            short = re.sub(r"(.)\1", r"\1", letters)
            if (
                len(letters) >= LETTERS_MIN and len(word) <= NAME_RATIO_MAX * len(letters)
                and word[0] == letters[0] and word not in words.CALENDAR
                and (_holds(word, letters) or _holds(word, short))
            ):  # fmt: skip
                yield Named(match.start(), match.end(), ticker)


def _two_letters(text: str, facts: Facts) -> dict[str, str]:
    """The one word that a ticker of two letters may stand for: "Facebook" for FB.

    It names a ticker where a name stands ("while Facebook lost"), and no other ticker fits it.
    """
    found: dict[str, str] = {}
    for ticker in (each for each in facts.tickers if len(each) == LETTERS_MIN - 1):
        first, second = ticker[0].lower(), ticker[1].lower()
        fitting = {
            match.group()
            for match in _CAPITALISED.finditer(text)
            if (word := match.group().lower())[0] == first
            and second not in _VOWELS
            and second in word[2:]
            and word not in words.CALENDAR
            and match.group() not in facts.names
            and (_IN_SENTENCE.search(text[: match.start()]) or text[match.end() :][:2] == "'s")
            and not any(_holds(word, each.lower()) for each in facts.tickers if each != ticker)
        }
        if len(fitting) == 1:
            found[fitting.pop()] = ticker
    return found


def _holds(word: str, letters: str) -> bool:
    rest = iter(word)
    return all(letter in rest for letter in letters)
