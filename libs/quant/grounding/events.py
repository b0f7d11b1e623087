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
ESTIMATES = frozenset({"eps_next", "eps_estimate"})
EVENTS = (*REPORTS, *PERIODS, "figures_known", "estimate_known", "until")
_PERIOD = re.compile(
    r"\b(?:quarter|year) (?:to|that|which|(?:clos|end)\w+)\b[^.;,\d]*$|period\b[^.;\d]*$",
    re.IGNORECASE,
)
_ESTIMATE_OF = re.compile(
    r"\b(?:estimate|consensus|forecast)\b(?:[^.;,]|\.\d)*\s(?:dates? (?:from|back to)|dated|"
    r"is from|(?:was )?(?:recorded|stamped|made)(?: on)?)\s$",
    re.IGNORECASE,
)
"""Before the day that an estimate is of, and no other."""
_ALONE = re.compile(r"^\salone\b", re.IGNORECASE)
"""Behind the one day that a move is of: it is not the day before, which it is measured from."""
_REPORT = re.compile(
    r"\b(?:report(?:s|ed|ing)?|publish(?:es|ed|ing)?|print|earnings|due|results|eps|expected|estimate|consensus|beat|"
    r"missed|announced with)\b",
    re.IGNORECASE,
)
_CALENDAR = re.compile(r"\bcalendar\b|\buntil\b|\bup to\b|\bby\b", re.IGNORECASE)
_FIGURES = re.compile(r"\b(?:figures|fundamentals|numbers|accounts)\b", re.IGNORECASE)
_RECORDED = re.compile(
    r"\b(?:recorded|known|dated|dates|stamped|filed|on file|unchanged)\b", re.IGNORECASE
)
_AHEAD = re.compile(
    r"\b(?:next|due|will|publish(?:es)?|scheduled|tomorrow|upcoming|ahead|reports|away|out|"
    r"from now|follows|coming|may|should)\b",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    r"\b(?:reported|last|latest|beat|missed|published|came|previous|prior|announced|ago|earned)\b",
    re.IGNORECASE,
)
_NEWS = re.compile(r"\b(?:headlines?|items?|stor(?:y|ies)|news|dated)\b", re.IGNORECASE)
_OF_NEWS = re.compile(r"\b(?:headlines?|items?|stor(?:y|ies)|news) (?:of|on|from) $", re.IGNORECASE)
"""Before the day that some news are of, and no other."""
_PRICED = re.compile(r"\bclos|\bprice|\bopened|\bhigh\b|\blow\b", re.IGNORECASE)
_MONTH = re.compile(rf"\b(?:{'|'.join(words.CALENDAR)})\b", re.IGNORECASE)
_AGO = re.compile(r"^\s(?:days )?(?:ago|back|earlier|before)\b", re.IGNORECASE)
_WITHIN = re.compile(r"\b(?:within|next|coming)\s$", re.IGNORECASE)
_WEEKDAY = re.compile(words.WEEKDAY.pattern + r",?\s(?:the\s)?$", re.IGNORECASE)
_AS_OF = re.compile(r"\bas of\b", re.IGNORECASE)
_OF_A_DAY = re.compile(r"\b(?:high|low) of\s$", re.IGNORECASE)
_SINCE = re.compile(r"\b(?:since|from)\s(?:the\s)?$", re.IGNORECASE)
"""Before a date that starts a period: an extreme of it is of some other day."""
_EXTREME = re.compile(
    r"\b(?P<closing>closing\s)?(?P<name>highs?|lows?|highest|lowest|peaked|heaviest|busiest|lightest|quietest)\b"
    r"(?:\s\(?(?P<what>volume|close))?",
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
    told = [
        fact
        for each, fact in said.traced.items()
        if said.dated_by(each) is figure
        and (
            fact.concept != "headline"
            or not (each.unit == "count" or "," in said.between(each, figure))
        )
    ]
    made = _is_made(figure, said)
    if made is not None:
        return made
    days = {fact: day for fact in told if (day := _day_of(fact, said.facts))}
    period = _SINCE.search(said.before(figure, 10)) and all(
        fact.place in {"extreme", "mean"} for fact in told
    )
    if days and not period:
        known = {*days.values()}
        if all(fact.concept == "headline" for fact in days) and _REPORT.search(said.text):
            # What a headline says was earned was reported on a day of its own.
            known |= {*_of(said.facts, said.tickers(figure), *_reports(said.text))}
        return any(figure.is_day(day) for day in known)
    starts = (rows[0][0] for t in said.tickers(figure) if (rows := said.facts.rows.get(t)))
    if _SINCE.search(said.before(figure, 10)) and any(map(figure.is_day, starts)):
        return True
    # A period does not start today.
    today = said.facts.as_of if _SINCE.search(said.before(figure, 10)) else None
    if _is_beside(figure, said):
        return True
    named = _WEEKDAY.search(said.before(figure, 14))
    return any(
        figure.is_day(day)
        and day != today
        and (not named or words.WEEKDAYS[day.weekday()] == named["day"].lower())
        for day in _days(figure, said)
    )


def _is_made(figure: Figure, said: Sentence) -> bool | None:
    """Whether a date is that of a step between sessions; None where that decides nothing."""
    alone = _ALONE.match(said.after(figure, 8))
    for each, parts in said.made_of.items():
        ends = [part.session for part in parts if part.session and said.dated_by(each) is figure]
        if any(map(figure.is_day, [max(ends)] if ends and alone else ends)):
            return True
        if ends and alone:
            return False
    return None


def _is_beside(figure: Figure, said: Sentence) -> bool:
    """Whether a figure right beside a date is of that session: "found its low on March 8 at $1"."""
    known = [each for each in said.figures if each in said.traced or each in said.failed]
    ahead = [each for each in known if each.end <= figure.start][-1:]
    behind = [each for each in known if each.start >= figure.end][:1]
    days = [said.traced[each].session for each in (*ahead, *behind) if each in said.traced]
    return any(day and figure.is_day(day) for day in days)


def _day_of(fact: Fact, facts: Facts) -> date | None:
    """The session of a price, the day of a headline; None for what has no day of its own."""
    if fact.session or fact.concept not in DAILY:
        return fact.session
    return facts.as_of if fact.place not in {"mean", "extreme"} else None


def _days(figure: Figure, said: Sentence) -> Iterator[date]:
    """The days of what the words speak of, those beside the date first; of anything else today."""
    tickers = said.tickers(figure) or tuple(said.facts.tickers)
    everyone = (*tickers, None)
    if _PERIOD.search(said.before(figure, 45)):
        yield from _of(said.facts, everyone, *PERIODS)
        return
    if _ESTIMATE_OF.search(said.before(figure, 60)):
        known = [*_of(said.facts, everyone, "estimate_known")]
        if known:
            yield from known
            return
    if _is_refuted(figure, said, tickers):
        return
    beside = {*_spoken_of(said.clause(figure), figure, said, everyone)}
    if not (beside and _OF_NEWS.search(said.before(figure, 16))):
        yield from _ends(said.facts, tickers)
    if beside:
        yield from beside
        return
    yield from _spoken_of(said.text, figure, said, everyone)
    yield from _of(said.facts, everyone, *EVENTS)
    yield from (each.known_on for each in _news(said, everyone) if each.known_on)


def _ends(facts: Facts, tickers: tuple[str, ...]) -> Iterator[date]:
    """The days that the evidence starts and ends on, which any text may tell."""
    if facts.as_of:
        yield facts.as_of
    yield from (facts.rows[ticker][0][0] for ticker in tickers if facts.rows.get(ticker))


def _spoken_of(
    text: str, figure: Figure, said: Sentence, owners: tuple[str | None, ...]
) -> Iterator[date]:
    """The days of the reports, headlines and sessions that some words may speak of."""
    facts = said.facts
    reports = _REPORT.search(text) or _is_to_come(figure, facts)
    if reports:
        yield from _of(facts, owners, *_reports(text))
    if _CALENDAR.search(text):
        yield from _of(facts, owners, "until")
    estimated = any(fact.concept in ESTIMATES for fact in said.traced.values())
    if _RECORDED.search(text) or (estimated and _AS_OF.search(said.before(figure, 8))):
        yield from _of(facts, owners, "estimate_known", "figures_known")
    if _FIGURES.search(text):
        yield from _of(facts, owners, "period_end", "figures_known")
    told = _told(text, figure, said, owners)
    news = told or (_news(said, owners) if _NEWS.search(text) else [])
    yield from (each.known_on for each in news if each.known_on)
    # Things happen on a day; what is found at a day is so as of then.
    if facts.as_of and (_AS_OF.search(text) or said.before(figure, 4).endswith(" at ")):
        yield facts.as_of
    traded = _PRICED.search(text) or not (reports or told)
    if traded and _is_traded(text, said):
        yield from _sessions(figure, said, owners)


def _is_refuted(figure: Figure, said: Sentence, tickers: tuple[str, ...]) -> bool:
    """Whether a figure that the date dates is of another session."""
    rows = [row for ticker in tickers for _, row in said.facts.rows.get(ticker, [])]
    ahead = list(_EXTREME.finditer(said.clause(figure).partition(figure.text)[0]))[-1:]
    if any(figure.is_day(day) for m in ahead for t in tickers for day in _extreme(m, said, t)):
        return False
    return any(
        said.dated_by(each) is figure and _in_row(each, row) for each in said.failed for row in rows
    )


def _is_to_come(figure: Figure, facts: Facts) -> bool:
    """Whether a day of this year lies behind as_of: no session is of it."""
    if facts.as_of is None or not figure.month or figure.year not in {None, facts.as_of.year}:
        return False
    return (figure.month, figure.day) > (facts.as_of.month, facts.as_of.day)


def _reports(text: str) -> tuple[str, ...]:
    """Which report the words speak of: the next, the last, or either."""
    ahead, behind = _AHEAD.search(text), _BEHIND.search(text)
    return REPORTS if bool(ahead) == bool(behind) else REPORTS[:1] if ahead else REPORTS[1:]


def _is_traded(text: str, said: Sentence) -> bool:
    """Whether words speak of prices and volumes, which each session has."""
    spoken = (_PRICED, words.UP, words.DOWN, words.WEEKDAY)
    if any(pattern.search(text) for pattern in spoken):
        return True
    return text == said.text and bool(
        DAILY & {*said.concepts, *(fact.concept for fact in said.traced.values())}
    )


def _news(said: Sentence, owners: tuple[str | None, ...]) -> list[Headline]:
    return [each for each in said.facts.headlines if each.known_on and each.ticker in owners]


def _told(
    text: str, figure: Figure, said: Sentence, owners: tuple[str | None, ...]
) -> list[Headline]:
    """The headlines that share words with what stands beside a date."""
    start, end = max(0, figure.start - NEAR_CHARS), figure.end + NEAR_CHARS
    near = said.without_names(start, figure.start) + " " + said.without_names(figure.end, end)
    # A month says when, not what.
    mine = words.stems(_MONTH.sub("", near)) & words.stems(text)
    return [each for each in _news(said, owners) if mine & words.stems(each.text)]


def _of(facts: Facts, tickers: tuple[str | None, ...], *names: str) -> Iterator[date]:
    for ticker in tickers:
        for name in names:
            yield from facts.dates.get((ticker, name), [])


def _sessions(figure: Figure, said: Sentence, tickers: tuple[str | None, ...]) -> Iterator[date]:
    """The sessions that a date may be: of what it dates or of what is named, else today."""
    of_a_day = bool(_OF_A_DAY.search(said.before(figure, 12)))
    dated = of_a_day or any(said.dated_by(each) is figure for each in said.figures)
    ahead = [m for m in _EXTREME.finditer(said.text) if m.end() <= figure.start]
    if said.facts.as_of and not (dated or ahead):
        yield said.facts.as_of
    for ticker in tickers:
        if ahead and not of_a_day:
            # "the high of June 22" is that session's, "the high dates from June 6" is the highest.
            yield from _extreme(ahead[-1], said, ticker or "")
        elif dated:
            yield from (day for day, _ in said.facts.rows.get(ticker or "", []))


def _extreme(match: re.Match[str], said: Sentence, ticker: str) -> Iterator[date]:
    name, what = match["name"].lower(), (match["what"] or "").lower()
    closing = CLOSE if match["closing"] else ""
    high = name.startswith(("high", "peaked", "heaviest", "busiest"))
    traded = name in {"heaviest", "busiest", "lightest", "quietest"}
    if traded or what == VOLUME or (name == "peaked" and said.names(VOLUME)):
        column = said.facts.column(ticker, VOLUME)
    else:
        column = said.facts.column(
            ticker, CLOSE if CLOSE in {what, closing} else "high" if high else "low"
        )
    if column:
        yield (max if high else min)(column, key=lambda each: each[1])[0]
