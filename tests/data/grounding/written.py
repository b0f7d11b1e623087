# ruff: noqa: RUF001, SIM905  (a minus sign is written; words on a line)
"""Write another value in the form that a claim has: its places, sign, scale, words or date."""

import re
from datetime import date
from math import log10

from tests.data.grounding.labelled import Claim

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
).split()
MONTHS = (
    "January February March April May June July August September October November December"
).split()
_MONTH = re.compile(r"\b(" + "|".join(f"{m[:3]}(?:{m[3:]})?" for m in MONTHS) + r")\b")
_WORD = re.compile(rf"\b({'|'.join(WORDS)})\b", re.IGNORECASE)
_DAY = re.compile(r"(?<!\d)\d{1,2}(?!\d)")


def as_written(claim: Claim, value: float) -> str | None:
    """The claim's figure with another value, in the evidence's unit; None for a form not known.

    Without a sign of its own the figure keeps none: the words carry it.
    """
    if _written(claim, float(str(claim.value))) != claim.figure:
        return None
    return _written(claim, value)


def _written(claim: Claim, value: float) -> str | None:
    said = abs(float(str(claim.value)))
    match = NUMBER.search(claim.figure)
    if match is None:
        return _in_words(claim, value)
    digits = match.group().replace(",", "")
    if not said or not float(digits) or NUMBER.search(claim.figure, match.end()):
        return None
    factor = 10.0 ** round(log10(float(digits) / said), 6)
    if abs(log10(factor) - round(log10(factor))) > 1e-6:
        return None
    places = len(digits.partition(".")[2])
    size = abs(value) * factor
    last = 2 * claim.within * factor
    if not places and last > 1:
        size = round(size / last) * last
    in_prose = claim.kind not in {"key_figure", "indicator_map"}
    commas = "," in match.group() or (in_prose and float(digits) < 1000)
    number = f"{size:,.{places}f}" if commas else f"{size:.{places}f}"
    ahead = claim.figure[: match.start()]
    if re.search(r"[-+−]", ahead):
        ahead = re.sub(r"[-+−]", "-" if value < 0 else "+" if "+" in ahead else "", ahead)
    return ahead + number + claim.figure[match.end() :]


def _in_words(claim: Claim, value: float) -> str | None:
    match = _WORD.search(claim.figure)
    count = (
        round(abs(value) * WORDS.index(match.group().lower()) / said)
        if match and (said := abs(float(str(claim.value))))
        else 0
    )
    if match is None or not 0 < count < len(WORDS):
        return None
    word = WORDS[count].capitalize() if match.group()[0].isupper() else WORDS[count]
    return claim.figure[: match.start()] + word + claim.figure[match.end() :]


def on_day(claim: Claim, day: date) -> str | None:
    """The claim's date as another day; None where its form is not known."""
    said = date.fromisoformat(str(claim.value))
    same = _on_day(claim.figure, said, said)
    return _on_day(claim.figure, said, day) if same == claim.figure else None


def _on_day(figure: str, said: date, day: date) -> str | None:
    if said.isoformat() in figure:
        return figure.replace(said.isoformat(), day.isoformat())
    month = _MONTH.search(figure)
    if month:
        name = MONTHS[day.month - 1]
        name = name if len(month.group()) == len(MONTHS[said.month - 1]) else name[:3]
        figure = figure[: month.start()] + name + figure[month.end() :]
    elif day.month != said.month:
        return None
    found = _DAY.search(figure)
    if found is None:
        return None
    figure = figure[: found.start()] + str(day.day) + figure[found.end() :]
    return figure.replace(str(said.year), str(day.year))
