# ruff: noqa: PLR0911  (a list of refusals, one a line)
"""Check a text against evidence: which of its figures and tickers cannot be traced, and why."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from libs.quant.grounding import counts, headlines, words
from libs.quant.grounding.arithmetic import (
    among_traced,
    compared,
    moved,
    products,
    shares_of,
    under_the_close,
)
from libs.quant.grounding.facts import Facts
from libs.quant.grounding.figures import TEXT_CHARS_MAX, Figure, figures, ticker_names
from libs.quant.grounding.follows import Rule, Value, asks_mean, extremes, means, stated
from libs.quant.grounding.sentence import Named, Sentence, sentences

RULES: tuple[Rule, ...] = (
    stated,
    extremes,
    means,
    compared,
    moved,
    shares_of,
    products,
    under_the_close,
    among_traced,
)
"""The ways in which a figure may follow from the evidence, tried in this order."""
RATIO_TOLERANCE = 0.05
"""How far "three times" or "a third" may be from the ratio."""
LINE_KEYS = re.compile(r'"(?P<key>[^"]{1,60})"\s*:\s*(?P<value>-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)')
_ORDERED = re.compile(
    r"\b(?:sell|trim|reduce|keep|take|buy|allocate|invest|add)\s(?:it\s)?(?:by\s|about\s|another\s)?$",
    re.IGNORECASE,
)
_OWN_COUNT = re.compile(
    r"^\s(?:of \d+ votes|votes?\b|for\b,|against\b|to (?:buy|sell)\b|scored\b|"
    r"(?:strongly )?(?:bullish|bearish|neutral|uncertain)\b)",
    re.IGNORECASE,
)
_SCALE = re.compile(r"\b(?:out )?of\s$")
_HORIZON = re.compile(r"^\s*(?:to \d+\s)?(?:days|weeks|months|years|sessions)\b", re.IGNORECASE)
_HISTORY = re.compile(
    r"^\s*(?:days|sessions|bars)?\s*(?:of (?:history|prices|data)|since)|^\s*(?:bars|sessions)\b",
    re.IGNORECASE,
)


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
    found = figures(text)
    mentioned = words.mentions(text)
    names = [Named(f.start, f.end, f.text) for f in ticker_names(text) if f.text in facts.tickers]
    names = sorted({*names, *_dotted(text, facts)}, key=lambda name: name.start)
    checked: list[Checked] = []
    subject: str | None = None
    carried: Sequence[words.Mention] = ()
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
        )
        checked += [_placed(each, start) for each in _check_sentence(said)]
        if said.named:
            subject = said.named[-1].ticker
        carried = [
            m for m in said.mentions if any(c.startswith(("sma", "ema")) for c in m.concepts)
        ]
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
    return any(
        figure.says(fact.value) and (figure.value < 0) == (fact.value < 0)
        for concept in _concepts_of(key)
        for fact in facts.now(about, concept)
    )


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
    claims = [figure for figure in said.figures if _claims(figure, said)]
    for figure in said.figures:
        for fact in headlines.quoted(figure, said):
            said.traced.setdefault(figure, fact)
    for figure in claims:
        if not asks_mean(said, figure) and not _in_quotes(figure, said):
            _trace(figure, said, (stated,))
    for figure in claims:
        yield Checked(
            figure.start, figure.end, figure.text, _is_grounded(figure, said), _sought(figure, said)
        )


def _claims(figure: Figure, said: Sentence) -> bool:
    """Whether a figure claims something: not the writer's own, a horizon, or a line drawn."""
    linked = said.linked(figure) if figure.unit in {"number", "percent", "days", "count"} else ()
    before = said.before(figure, 12)
    if figure.unit in {"number", "count"} and _OWN_COUNT.match(said.after(figure, 30)):
        return False
    if words.OWN in linked and figure.unit != "count":
        return False
    if (
        _SCALE.search(before)
        and any(words.OWN in m.concepts or words.OTHER in m.concepts for m in said.mentions)
        and re.search(r"\b10\b|out of", said.text)
    ):
        return figure.unit != "number" or figure.value not in {5, 10, 100}
    if figure.unit in {"percent", "ratio"} and _ORDERED.search(said.before(figure, 24)):
        return False
    if figure.meant and figure.unit == "count":
        return False
    days = figure.unit == "days" or (
        figure.unit in {"number", "count"} and _HORIZON.match(said.after(figure, 30))
    )
    if days and figure.unit != "count":
        history = _HISTORY.match(said.after(figure, 30))
        event = re.search(r"\baway\b|\bago\b|\bfrom now\b|\breports?\b", said.text)
        return bool(history or event or re.search(r"\bof the\s$", before))
    return not (figure.unit in {"money", "number"} and _drawn(figure, said))


def _drawn(figure: Figure, said: Sentence) -> bool:
    """A line that the sentence draws: what is counted or claimed against it is the claim."""
    side = words.BOUND_ABOVE.search(said.before(figure, 14)) or words.BOUND_BELOW.search(
        said.before(figure, 14)
    )
    if side is None:
        return False
    counted = re.search(
        r"\b(?:\w+) of the (?:\w+ )?(?:sessions|assets|days|shares|companies|four|five)\b",
        said.text,
    )
    return bool(
        counted or re.search(r"\bfirst (?:close )?$", said.before(figure, 22)[: -len(side.group())])
    )


def _trace(figure: Figure, said: Sentence, rules: Sequence[Rule]) -> bool:
    for rule in rules:
        for value in rule(figure, said):
            if _agrees(figure, value, said):
                if value.fact is not None:
                    said.traced.setdefault(figure, value.fact)
                return True
    return False


def _is_grounded(figure: Figure, said: Sentence) -> bool:
    if figure in said.traced:
        return True
    if _in_quotes(figure, said):
        return False
    match figure.unit:
        case "date":
            return counts.is_event(figure, said)
        case "year":
            return any(
                day.year == figure.value for days in said.facts.dates.values() for day in days
            )
        case "count":
            return _counted(figure, said)
        case "days":
            return _counted(figure, said) or _trace(figure, said, RULES)
        case _:
            bound = _bound(figure, said)
            if bound is not None:
                return bound
            if (
                figure.unit == "number"
                and figure.step >= 1
                and figure.value < 1000
                and not figure.currency
            ) and _counted(figure, said):
                return True
            return _trace(figure, said, (means,) if asks_mean(said, figure) else RULES)


def _in_quotes(figure: Figure, said: Sentence) -> bool:
    """Whether a figure stands in someone's words: only a headline grounds it then."""
    return len(re.findall(r"[\"“”]", said.text[: figure.start])) % 2 == 1


def _counted(figure: Figure, said: Sentence) -> bool:
    days = counts.days_to_event(figure, said)
    if any(each == figure.value for each in days):
        return True
    if figure.unit == "days" and not _HISTORY.match(said.after(figure, 30)):
        return False
    if any(each == figure.value for each in counts.counts(figure, said)):
        return True
    return (
        _trace(figure, said, (shares_of,))
        if figure.unit == "count" and "times" in said.text
        else False
    )


def _bound(figure: Figure, said: Sentence) -> bool | None:
    """Whether "above 580" is true of what it speaks of; None where the figure is no bound."""
    above = words.BOUND_ABOVE.search(said.before(figure, 16))
    below = words.BOUND_BELOW.search(said.before(figure, 16))
    if not (above or below):
        return None
    facts = said.facts
    concepts = (
        said.linked(figure) or ("close",)
        if figure.unit != "percent"
        else said.linked(figure) or ("day_change_pct",)
    )
    every = re.search(r"\ball\b", said.text, re.IGNORECASE)
    owners = said.tickers(figure) or tuple(facts.tickers)
    values = [
        fact.value for concept in concepts for owner in owners for fact in facts.now(owner, concept)
    ]
    if not values:
        return False
    line = figure.value
    if figure.unit == "percent":
        values = [abs(value) for value in values]
    held = [value > line if above else value < line for value in values]
    return all(held) if every or len(owners) == 1 else any(held)


def _agrees(figure: Figure, value: Value, said: Sentence) -> bool:
    scaled = _in_unit(figure, value, said)
    if scaled is None or not _currency_fits(figure, value, said):
        return False
    if figure.unit == "ratio":
        return abs(figure.value - scaled) <= RATIO_TOLERANCE * abs(scaled)
    if not figure.says(scaled):
        return False
    if figure.loose:
        return True
    if figure.signed:
        return figure.negative == (scaled < 0) or scaled == 0
    if value.signed:
        pointed = said.direction(figure)
        return pointed * scaled > 0 or not figure.value if pointed else scaled >= 0
    if scaled < 0 and not re.search(
        r"\bloss(?:es)?\b|\blost\b|\bnegative\b|\bminus\b|\bloses\b",
        said.before(figure, 80),
        re.IGNORECASE,
    ):
        return False
    if value.fact is not None and value.fact.concept.startswith("eps_a") and scaled > 0:
        return not re.search(r"\bloss of\b", said.before(figure, 20))
    return True


def _in_unit(figure: Figure, value: Value, said: Sentence) -> float | None:
    """The value as a figure of this unit; None where the units do not go together."""
    pair = (figure.unit, value.unit)
    concept = value.fact.concept if value.fact else ""
    if pair in SAME_UNITS or figure.unit == value.unit:
        return value.value
    if pair == ("number", "percent"):
        if re.search(r"_pct\W*$", said.before(figure, 10)):
            return value.value
        # A fraction, as in "the margin is 0.135".
        return value.value / 100 if abs(figure.value) < 1 else None
    if pair == ("percent", "number") and concept == "debt_to_equity":
        return value.value * 100
    return None


SAME_UNITS = frozenset(
    {
        ("number", "money"), ("number", "number"), ("money", "headline"), ("points", "percent"),
        ("times", "number"), ("ratio", "times"), ("ratio", "number"), ("number", "times"),
        ("number", "ratio"), ("count", "times"), ("count", "number"),
    }
)  # fmt: skip


def _currency_fits(figure: Figure, value: Value, said: Sentence) -> bool:
    if not figure.currency or value.unit != "money":
        return True
    owners = said.tickers(figure)
    known = {each for owner in owners for each in said.facts.currencies.get(owner, ())}
    return not known or figure.currency in known


def _check_names(text: str, facts: Facts) -> Iterator[Checked]:
    for name in ticker_names(text):
        dotted = next((t for t in facts.tickers if text.startswith(t, name.start)), None)
        if name.text in words.ABBREVIATIONS or text[name.end :][:1] in {"(", "&"}:
            continue
        if text[max(0, name.start - 1) : name.start] in {"&", "-"} or (
            re.match(r"^\s\d", text[name.end :]) and name.text in {"EUR", "USD", "GBP"}
        ):
            continue
        grounded = dotted is not None or name.text in facts.tickers
        yield Checked(name.start, name.end, name.text, grounded, "a ticker", is_ticker=True)


def _dotted(text: str, facts: Facts) -> Iterator[Named]:
    for ticker in facts.tickers:
        if re.search(r"[.-]", ticker):
            for match in re.finditer(re.escape(ticker), text):
                yield Named(match.start(), match.end(), ticker)


def _sought(figure: Figure, said: Sentence) -> str:
    concepts = ", ".join(said.linked(figure)) or figure.unit
    owners = ", ".join(said.tickers(figure)) or "the whole"
    return f"{concepts} of {owners}"


def _moved(figure: Figure, start: int) -> Figure:
    return replace(figure, start=figure.start - start, end=figure.end - start)


def _placed(each: Checked, start: int) -> Checked:
    return replace(each, start=each.start + start, end=each.end + start)
