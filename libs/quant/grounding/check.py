# ruff: noqa: PLR0911  (a list of refusals, one a line; dashes are read)
"""Check a text against evidence: which of its figures and tickers cannot be traced, and why."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from statistics import fmean

from libs.quant.grounding import bounds, counts, doubt, events, headlines, words
from libs.quant.grounding.candidates import Candidate, stated
from libs.quant.grounding.claims import DAYS, claims
from libs.quant.grounding.facts import CLOSE, DAY_CHANGE, REPORTED, Fact, Facts
from libs.quant.grounding.figures import TEXT_CHARS_MAX, VALUE_MAX, Figure, figures, ticker_names
from libs.quant.grounding.names import named_in
from libs.quant.grounding.sentence import Sentence
from libs.quant.grounding.spoken import Named, sentences
from libs.quant.grounding.steps import derived

RATIO_TOLERANCE = 0.05
"""How far "three times" or "a third" may be from the ratio."""
LINE_KEYS = re.compile(r'"(?P<key>[^"]{1,60})"\s*:\s*(?P<value>-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)')
SUMMED: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": fmean, "avg": fmean, "average": fmean, "max": max, "min": min,
}  # fmt: skip
_NEGATIVE = re.compile(r"\b(?:loss(?:es)?|lost|loses|negative|minus)\b", re.IGNORECASE)
_HELD = re.compile(r"^\sshares\s(?:bought|held|owned|acquired|purchased)\b", re.IGNORECASE)
_SUMMED_KEY = re.compile(rf"^(?P<how>{'|'.join(SUMMED)})_")


@dataclass(frozen=True, slots=True)
class Checked:
    """One figure of a text, and whether the evidence says it; `sought` is what was looked for."""

    start: int
    end: int
    text: str
    grounded: bool
    sought: str = ""
    is_ticker: bool = False


def check_text(text: str, facts: Facts, about: str | None = None) -> tuple[Checked, ...]:
    """Every claim of a free text; what claims nothing is left out."""
    text = text[:TEXT_CHARS_MAX]
    this_year = facts.as_of.year if facts.as_of else VALUE_MAX
    # A year that is only named is a period; one that has not come is a claim.
    found = [
        each
        for each in figures(text)
        if not each.meant or each.unit != "year" or each.value > this_year
    ]
    inside = [(each.start, each.end) for each in found]
    mentioned = [
        each
        for each in words.mentions(text)
        if not any(a <= each.start and each.end <= b for a, b in inside)
    ]
    names = named_in(text, facts)
    checked: list[Checked] = []
    subject: str | None = None
    named_before: Sequence[Named] = ()
    carried: Sequence[words.Mention] = ()
    before: Sequence[words.Mention] = ()
    recalled: Sequence[Fact] = ()
    told_day: date | None = None
    for start, end in sentences(text):
        said = Sentence(
            text=text[start:end],
            figures=[_moved(each, start) for each in found if start <= each.start < end],
            facts=facts,
            about=about,
            named=[
                Named(n.start - start, n.end - start, n.ticker)
                for n in names
                if start <= n.start < end
            ],
            mentions=[
                words.Mention(m.start - start, m.end - start, m.concepts)
                for m in mentioned
                if start <= m.start < end
            ],
            subject=subject,
            carried=carried,
            recalled=recalled,
            named_before=named_before,
            topics=frozenset(name for each in mentioned for name in each.concepts),
            told_day=told_day,
            so_far=frozenset({about or "", *(n.ticker for n in names if n.start < end)}),
        )
        checked += [_placed(each, start) for each in _check_sentence(said)]
        if said.named:
            subject = said.named[-1].ticker
            named_before = said.named
        told_day = said.days[-1] if said.days else told_day
        recalled = tuple(said.traced.values())
        carried = (*said.mentions, *before) if said.mentions else carried
        before = said.mentions or before
    checked += _check_names(text, facts)
    return tuple(sorted(checked, key=lambda each: each.start))


def check_map(text: str, facts: Facts, about: str | None) -> tuple[Checked, ...]:
    """Every number of a JSON map, whose keys name the quantities and their units."""
    return tuple(
        Checked(
            match.start("value"), match.end("value"), match["value"],
            _in_map(match["key"], match["value"], facts, about),
            f"{match['key']} of {about or 'any'}",
        )
        for match in LINE_KEYS.finditer(text)
    )  # fmt: skip


def _in_map(key: str, written: str, facts: Facts, about: str | None) -> bool:
    figure = _exact(written)
    values = [fact.value for name in _concepts_of(key) for fact in facts.now(about, name)]
    if asked := _SUMMED_KEY.match(key):
        having = [fact.value for fact in facts.having(key[asked.end() :]).values()]
        values += [SUMMED[asked["how"]](having)] if having else []
    return any(figure.says(value) and (figure.value < 0) == (value < 0) for value in values)


@lru_cache(maxsize=1024)
def _concepts_of(key: str) -> tuple[str, ...]:
    named = words.mentions(key)
    known = named[0].concepts if len(named) == 1 else ()
    return (key, *known)


def check_number(value: str, facts: Facts, about: str | None, concept: str) -> bool:
    """Whether a field that holds one number is that quantity of its ticker."""
    figure = _exact(value)
    return any(figure.says(fact.value) for fact in facts.now(about, concept))


def _exact(written: str) -> Figure:
    places = len(written.partition(".")[2])
    return Figure(0, len(written), written, "number", float(written), 10.0**-places)


def _check_sentence(said: Sentence) -> Iterator[Checked]:
    made = [figure for figure in said.figures if claims(figure, said)]
    for figure, fact in headlines.quoted(said):
        said.traced.setdefault(figure, fact)
    for figure in made:
        if not _in_quotes(figure, said) and bounds.holds(figure, said) is None:
            _trace(figure, said, stated(figure, said))
    _drop_moves(said)
    for figure in made:
        if not (_in_quotes(figure, said) or bounds.is_bound(figure, said)):
            _doubt(figure, said)
    events.date_again(made, said)
    # A day is judged last: by what the figures of that day turned out to be.
    for figure in sorted(made, key=lambda each: each.unit == "date"):
        grounded = _is_grounded(figure, said)
        if not grounded:
            said.failed.append(figure)
        yield Checked(figure.start, figure.end, figure.text, grounded, _sought(figure, said))


def _doubt(figure: Figure, said: Sentence) -> None:
    """Trace a figure that is no step either to an equal quantity that no words speak against."""
    if figure not in said.traced and not _derives(figure, said):
        _trace(figure, said, doubt.quantities(figure, said))


def _derives(figure: Figure, said: Sentence) -> bool:
    """Whether a figure is one step; not asked again before another figure is traced."""
    key = ("derives", figure.start)
    if said.answers.get(key) == len(said.traced):
        return False
    derives = _trace(figure, said, derived(figure, said))
    said.answers[key] = None if derives else len(said.traced)
    return derives


def _drop_moves(said: Sentence) -> None:
    """A percentage beside "from A to B" is the change between them, and not the day's."""
    start, end = said.from_to
    if start and end and start.concept == end.concept == CLOSE and not said.names(DAY_CHANGE):
        moves = [each for each, fact in said.traced.items() if fact.concept == DAY_CHANGE]
        for each in moves:
            del said.traced[each]


def _trace(figure: Figure, said: Sentence, offered: Iterable[Candidate]) -> bool:
    for candidate in offered:
        if _agrees(figure, candidate, said):
            if len(candidate.parts) == 1:
                said.traced.setdefault(figure, candidate.parts[0])
            else:
                said.made_of.setdefault(figure, candidate.parts)
            return True
    return False


def _is_grounded(figure: Figure, said: Sentence) -> bool:
    if figure in said.traced:
        return True
    if _in_quotes(figure, said):
        return False
    match figure.unit:
        case "date":
            return events.is_event(figure, said)
        case "year":
            return any(
                day.year == figure.value for days in said.facts.dates.values() for day in days
            )
        case "count":
            return _counted(figure, said)
        case "days":
            return _counted(figure, said)
        case _:
            bound = None if figure.unit == "ratio" else bounds.holds(figure, said)
            if bound is not None:
                # "above $29.85, where it closed on 5 May" is that day's close.
                told = not bound and figure.is_precise and said.sessions(figure)
                return bound or bool(told and _trace(figure, said, stated(figure, said)))
            if figure.unit == "number" and figure.step >= 1 and not figure.currency:
                if _counted(figure, said):
                    return True
                if counts.NOUNS.match(said.after(figure)):
                    # "12% of its 3,400 jobs, which is 408 positions": of a headline's figures.
                    return _is_share_told(figure, said)
            doubted = (*doubt.over_groups(figure, said), *doubt.steps(figure, said))
            return _derives(figure, said) or _trace(figure, said, doubted)


def _in_quotes(figure: Figure, said: Sentence) -> bool:
    """Whether a figure stands in someone's words: only a headline grounds it then."""
    return len(re.findall(r"[\"“”]", said.text[: figure.start])) % 2 == 1


def _counted(figure: Figure, said: Sentence) -> bool:
    away = figure.unit == "days" or DAYS.match(said.after(figure))
    if away and any(each == figure.value for each in events.days_to_event(figure, said)):
        return True
    if figure.meant and headlines.is_refuted(figure, said):
        return False
    if any(each == figure.value for each in counts.counts(figure, said)):
        return True
    return (
        _trace(figure, said, derived(figure, said))
        if figure.unit == "count" and "times" in said.text
        else False
    )


def _agrees(figure: Figure, value: Candidate, said: Sentence) -> bool:
    owners = {part.ticker for part in value.parts}
    if len(owners) > 1 and said.tickers(figure) and _HELD.match(said.after(figure, 24)):
        # "with 65 shares bought": of one holding, and no step between two.
        return False
    scaled = _in_unit(figure, value, said)
    if scaled is None or not _currency_fits(figure, value, said):
        return False
    if figure.unit == "ratio" or (
        figure.unit == "times" and figure.step >= 1 and figure.value < 10
    ):
        return abs(figure.value - abs(scaled)) <= RATIO_TOLERANCE * abs(scaled)
    # Where one buys or sells is no round figure of what is.
    exactly = replace(figure, zeros=0) if bounds.is_order(figure, said) else figure
    if not exactly.says(scaled, money=value.unit == "money"):
        return False
    if figure.loose:
        return True
    if figure.signed:
        return figure.negative == (scaled < 0) or scaled == 0
    if value.signed and all(p.value < 0 and p.concept.startswith("eps") for p in value.parts):
        # A loss that grows is a number that falls.
        return True
    if value.signed:
        pointed = said.direction(figure)
        if pointed:
            return pointed * scaled > 0 or not figure.value
        # Without a name beside it, a verb that no table has may say the sign.
        return scaled >= 0 or len(value.parts) > 1 or not said.tight(figure)
    if scaled < 0:
        # Who writes a minus writes it everywhere.
        ahead = [each.end for each in said.figures if each.end <= figure.start]
        written = any(each.negative for each in said.figures)
        start = ahead[-1] if ahead and written else max(0, figure.start - 80)
        return bool(_NEGATIVE.search(said.text[start : figure.start]))
    return True


def _is_share_told(figure: Figure, said: Sentence) -> bool:
    """Whether a count is a share of another, both told by a headline."""
    told = [fact for fact in said.traced.values() if fact.concept == "headline"]
    return any(
        figure.says(share.value * whole.value / 100)
        for share in told
        for whole in told
        if share.unit == "percent" and whole.unit == "number" and share.place == whole.place
    )


def _in_unit(figure: Figure, value: Candidate, said: Sentence) -> float | None:
    """The value as a figure of this unit; None where the units do not go together."""
    pair = (figure.unit, value.unit)
    if value.unit == "shares":
        return value.value if said.after(figure, 7) == " shares" else None
    concept = value.parts[0].concept
    if pair in SAME_UNITS or figure.unit == value.unit:
        return value.value
    if pair == ("number", "percent"):
        if re.search(r"_pct\W*$", said.before(figure, 10)):
            return value.value
        # A fraction, as in "the margin is 0.135".
        return value.value / 100 if abs(figure.value) < 1 else None
    if pair == ("ratio", "percent") and figure.value < 1:
        return value.value / 100
    if pair == ("percent", "number") and concept == "debt_to_equity":
        return value.value * 100
    return None


SAME_UNITS = frozenset(
    {
        ("number", "money"), ("number", "number"), ("money", "headline"), ("points", "percent"),
        ("points", "money"),
        ("points", "number"),
        ("times", "number"), ("ratio", "times"), ("ratio", "number"), ("number", "times"),
        ("number", "ratio"), ("count", "times"), ("count", "number"),
    }
)  # fmt: skip


def _currency_fits(figure: Figure, value: Candidate, said: Sentence) -> bool:
    if not figure.currency or value.unit != "money":
        return True
    owners = {part.ticker for part in value.parts}
    reported = value.parts[0].place.partition("/")[2].startswith(REPORTED)
    known = {
        each
        for owner in owners
        for own in {False, reported}
        for each in said.facts.currencies.get((owner, own), ())
    }
    if not known:
        # Without a word on it, what has no exchange behind its name is in dollars.
        return figure.currency == "USD" or any("." in owner for owner in owners if owner)
    return figure.currency in known


def _check_names(text: str, facts: Facts) -> Iterator[Checked]:
    for name in ticker_names(text):
        ahead = text[: name.start]
        if ahead.endswith(" (") and ahead[:-2].endswith(tuple(facts.tickers)):
            # "GOLF.DE (XETR)": where it is traded.
            continue
        dotted = next(
            (t for t in facts.tickers if not t.isalnum() and text.startswith(t, name.start)), None
        )
        if name.text in words.ABBREVIATIONS or text[name.end :][:1] in {"(", "&"}:
            continue
        if text[max(0, name.start - 1) : name.start] in {"&", "-"} or (
            re.match(r"^\s\d", text[name.end :]) and name.text in {"EUR", "USD", "GBP"}
        ):
            continue
        grounded = dotted is not None or name.text in facts.tickers
        yield Checked(name.start, name.end, name.text, grounded, "a ticker", is_ticker=True)


def _sought(figure: Figure, said: Sentence) -> str:
    concepts = ", ".join(said.sought(figure)) or figure.unit
    owners = ", ".join(said.tickers(figure)) or "the whole"
    return f"{concepts} of {owners}"


def _moved(figure: Figure, start: int) -> Figure:
    return replace(figure, start=figure.start - start, end=figure.end - start)


def _placed(each: Checked, start: int) -> Checked:
    return replace(each, start=each.start + start, end=each.end + start)
