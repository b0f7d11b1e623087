"""Events: on which day something was or will be, and how many days it is away."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from libs.quant.grounding import words
from libs.quant.grounding.facts import CLOSE, DAY_CHANGE, PRICES, VOLUME, Fact, Facts, Headline
from libs.quant.grounding.figures import Figure
from libs.quant.grounding.sentence import Sentence

NEAR_CHARS = 40
MONTHS_MAX = 3
"""A month that is named as a base: momentum reaches three back."""
DAILY = frozenset({*PRICES, VOLUME, DAY_CHANGE})
REPORTS = ("report_next", "report_last")
PERIODS = ("period_end", "period_next", "period_last")
EVERY = (*REPORTS, *PERIODS, "figures_known", "until")
_PERIOD = re.compile(r"quarter (?:to|ended|ending)\W*$|period\b[^.;]*$", re.IGNORECASE)
_REPORT = re.compile(
    r"\b(?:report(?:s|ed|ing)?|earnings|due|results|eps|expected|estimate|announced with)\b",
    re.IGNORECASE,
)
_CALENDAR = re.compile(r"\bcalendar\b|\buntil\b|\bup to\b", re.IGNORECASE)
_FIGURES = re.compile(r"\b(?:figures|fundamentals|numbers)\b", re.IGNORECASE)
_PRICED = re.compile(r"\bclos|\bprice|\bopened|\bhigh\b|\blow\b", re.IGNORECASE)
_MONTH = re.compile(rf"\b(?:{'|'.join(words.CALENDAR)})\b", re.IGNORECASE)
_AGO = re.compile(r"^\s(?:days )?(?:ago|back|earlier|before)\b", re.IGNORECASE)
_WITHIN = re.compile(r"\b(?:within|next|coming)\s$", re.IGNORECASE)
_AS_OF = re.compile(r"\bas of\b", re.IGNORECASE)
_OF_A_DAY = re.compile(r"\b(?:high|low) of\s$", re.IGNORECASE)
_SINCE = re.compile(r"\b(?:since|from)\s(?:the\s)?$", re.IGNORECASE)
"""Before a date that starts a period: an extreme of it is of some other day."""
_LAST = re.compile(r"\b(?:ends?|ended|ending|last|latest|newest)\b[^.,;]{0,12}$", re.IGNORECASE)
_EXTREME = re.compile(
    r"\b(?P<name>highs?|lows?|highest|lowest|peaked|heaviest|busiest|lightest|quietest)\b"
    r"(?:\s(?P<what>volume|close))?",
    re.IGNORECASE,
)


def days_to_event(figure: Figure, said: Sentence) -> Iterator[int]:
    """Calendar days from as_of to a ticker's next report, or back to its last."""
    facts = said.facts
    if facts.as_of is None:
        return
    ago = _AGO.search(said.after(figure, 14))
    for day in _of(facts, said.tickers(figure) or (None,), *REPORTS):
        days = (day - facts.as_of).days
        if (days <= 0) if ago else (days >= 0):
            yield abs(days)
    if _WITHIN.search(said.before(figure, 10)):
        yield from ((day - facts.as_of).days for day in _of(facts, (None,), "until"))


def is_past(figure: Figure, facts: Facts) -> bool:
    """Whether a month lies further back than the evidence speaks of."""
    if facts.as_of is None:
        return True
    months = (facts.as_of.month - figure.month) % 12
    return figure.year not in {None, facts.as_of.year} or months > MONTHS_MAX


def date_again(claims: Sequence[Figure], said: Sentence) -> None:
    """Trace the figures of a wrong date to the day that they are all of: the date is what errs."""
    for day in (each for each in claims if each.unit == "date"):
        told = [
            each
            for each in claims
            if each.unit in {"money", "number"} and said.dated_by(each) is day
        ]
        if len(told) < 2 or any(each in said.traced for each in told):
            continue
        for ticker in said.tickers(told[0]):
            for session, row in said.facts.rows.get(ticker, []):
                found = [(each, name) for each in told if (name := _in_row(each, row))]
                if len(found) > 1:
                    for each, name in found:
                        fact = Fact(name, row[name], "number", ticker, "row", session)
                        said.traced[each] = fact


def _in_row(figure: Figure, row: Mapping[str, float]) -> str:
    return next((name for name, value in row.items() if figure.says(value)), "")


def is_event(figure: Figure, said: Sentence) -> bool:
    """Whether a date is the day of what the sentence says of it."""
    told = [fact for each, fact in said.traced.items() if said.dated_by(each) is figure]
    days = {day for fact in told if (day := _day_of(fact, said.facts))}
    period = _SINCE.search(said.before(figure, 10)) and all(
        fact.place in {"extreme", "mean"} for fact in told
    )
    if days and not period:
        return any(figure.is_day(day) for day in days)
    return any(figure.is_day(day) for day in _days(figure, said))


def _day_of(fact: Fact, facts: Facts) -> date | None:
    """The session of a price, the day of a headline; None for what has no day of its own."""
    if fact.session or fact.concept not in DAILY:
        return fact.session
    return facts.as_of if fact.place not in {"mean", "extreme"} else None


def _days(figure: Figure, said: Sentence) -> Iterator[date]:
    """The days of what the words speak of; of anything where they do not say what."""
    facts, text = said.facts, said.text
    tickers = said.tickers(figure) or tuple(facts.tickers)
    everyone = (*tickers, None)
    if _PERIOD.search(said.before(figure, 45)):
        yield from _of(facts, everyone, *PERIODS)
        return
    news, told = _headlines(figure, said, everyone)
    reports = _REPORT.search(text)
    yield from _of(facts, everyone, *REPORTS)
    if _CALENDAR.search(text):
        yield from _of(facts, everyone, "until")
    if _FIGURES.search(text):
        yield from _of(facts, everyone, "period_end", "figures_known")
    yield from (each.known_on for each in news if each.known_on)
    failed = not _SINCE.search(said.before(figure, 10)) and any(
        said.dated_by(each) is figure and _in_row(each, row)
        for each in said.failed
        for ticker in tickers
        for _, row in facts.rows.get(ticker, [])
    )
    if facts.as_of:
        yield facts.as_of
    traded = _PRICED.search(text) if reports or told else _is_traded(said)
    if failed or not traded:
        return
    yield from _sessions(figure, said, tickers)


def _is_traded(said: Sentence) -> bool:
    """Whether a sentence speaks of prices and volumes, which each session has."""
    return bool(
        said.has(words.UP)
        or said.has(words.DOWN)
        or said.has(words.WEEKDAY)
        or DAILY & {*said.concepts, *(fact.concept for fact in said.traced.values())}
    )


def _headlines(
    figure: Figure, said: Sentence, owners: tuple[str | None, ...]
) -> tuple[list[Headline], bool]:
    """The headlines that share words with what stands beside a date; all where none does."""
    own = [each for each in said.facts.headlines if each.known_on and each.ticker in owners]
    near = said.before(figure, NEAR_CHARS) + " " + said.after(figure, NEAR_CHARS)
    # A month says when, not what.
    mine = words.stems(_MONTH.sub("", near))
    told = [each for each in own if mine & words.stems(each.text)]
    return told or own, bool(told)


def _of(facts: Facts, tickers: tuple[str | None, ...], *names: str) -> Iterator[date]:
    for ticker in tickers:
        for name in names:
            yield from facts.dates.get((ticker, name), [])


def _sessions(figure: Figure, said: Sentence, tickers: tuple[str, ...]) -> Iterator[date]:
    facts = said.facts
    named = list(_EXTREME.finditer(said.text))
    if not named:
        # The day of a price that the sentence gives.
        yield from (fact.session for fact in said.traced.values() if fact.session)
    if said.has(_AS_OF) or _LAST.search(said.before(figure, 24)):
        return
    ahead = [m for m in named if m.end() <= figure.start]
    for ticker in tickers:
        if not ahead or _OF_A_DAY.search(said.before(figure, 12)):
            # "the high of June 22" is that session's, "the high dates from June 6" is the highest.
            yield from (day for day, _ in facts.rows.get(ticker, []))
        else:
            yield from _extreme(ahead[-1], said, ticker)


def _extreme(match: re.Match[str], said: Sentence, ticker: str) -> Iterator[date]:
    name, what = match["name"].lower(), (match["what"] or "").lower()
    high = name.startswith(("high", "peaked", "heaviest", "busiest"))
    traded = name in {"heaviest", "busiest", "lightest", "quietest"}
    if traded or what == VOLUME or (name == "peaked" and said.names(VOLUME)):
        column = said.facts.column(ticker, VOLUME)
    else:
        column = said.facts.column(ticker, CLOSE if what == CLOSE else "high" if high else "low")
    if column:
        yield (max if high else min)(column, key=lambda each: each[1])[0]
