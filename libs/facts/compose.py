"""From reasons to sentences: code looks the facts up, relates them and writes the figures."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from contracts.reasons import (
    FIGURES_MAX,
    LOOSE_MAX,
    Figure,
    Loose,
    Reason,
    ReasonDraft,
    Speaks,
)
from libs.facts.digits import numbers_in, passes, plain_digits, same
from libs.facts.fact import PERCENT, POINTS, TEXT, Fact, Facts
from libs.facts.written import relation, value_of
from libs.quant.untrusted import clean_line

Mark = TypeVar("Mark", Figure, Loose)
NO_REASON = "no reason was given"
"""Stands where a judgement names no fact."""
_SIDES: Mapping[Speaks, str] = {Speaks.FOR: "for", Speaks.AGAINST: "against"}


@dataclass
class Prose:
    """A text while it is written, with the figures that stand in it."""

    text: str = ""
    figures: list[Figure] = field(default_factory=list)
    loose: list[Loose] = field(default_factory=list)

    def say(self, words: str) -> "Prose":
        """Add words without figures."""
        self.text += words
        return self

    def cite(
        self, text: str, value: float | None, *facts: Fact, unit: str | None = None
    ) -> "Prose":
        """Add a figure that was written from these facts, in the first one's unit or another."""
        first = facts[0]
        self.figures.append(
            Figure(
                field="",
                start=len(self.text),
                text=text,
                value=value,
                unit=first.unit if unit is None else unit,
                facts=tuple(each.name for each in facts),
                source=first.source,
                known=first.known,
                call=first.call,
            )
        )
        return self.say(text)

    def doubt(self, text: str) -> "Prose":
        """Add a number of the model's own that no fact has."""
        self.loose.append(Loose(field="", start=len(self.text), text=text))
        return self.say(text)

    def add(self, other: "Prose") -> "Prose":
        """Add another text with what stands in it."""
        behind = len(self.text)
        self.figures += (_moved(each, behind) for each in other.figures)
        self.loose += (_moved(each, behind) for each in other.loose)
        return self.say(other.text)

    def join(self, others: Iterable["Prose"], between: str) -> "Prose":
        """Add others, with words between them."""
        for place, each in enumerate(others):
            self.say(between if place else "").add(each)
        return self


def _moved(each: Mark, behind: int) -> Mark:
    return each.model_copy(update={"start": each.start + behind})


@dataclass(frozen=True)
class Cited:
    """What stands in the texts of a contract, each under the field that it is in."""

    figures: tuple[Figure, ...]
    loose: tuple[Loose, ...]

    @classmethod
    def of(cls, texts: Mapping[str, Prose]) -> "Cited":
        """Of these texts by their fields, such as `tickers.0.summary`."""
        figures = [_in(field, each) for field, text in texts.items() for each in text.figures]
        loose = [_in(field, each) for field, text in texts.items() for each in text.loose]
        return cls(tuple(figures[:FIGURES_MAX]), tuple(loose[:LOOSE_MAX]))


def _in(field: str, each: Mark) -> Mark:
    return each.model_copy(update={"field": field})


def unknown_names(reasons: Iterable[ReasonDraft], facts: Facts) -> tuple[str, ...]:
    """The names in these reasons that no fact has, each once."""
    names = (name for reason in reasons for name in (reason.fact, reason.beside) if name.strip())
    return tuple(dict.fromkeys(name for name in names if facts.get(name) is None))


def settled(
    reasons: Iterable[ReasonDraft], facts: Facts
) -> tuple[tuple[Reason, ...], tuple[str, ...]]:
    """The reasons that name a fact, with its right name, and in a sentence each what fell away."""
    kept: list[Reason] = []
    fell: list[str] = []
    for reason in reasons:
        fact, beside = facts.get(reason.fact), facts.get(reason.beside)
        if fact is None:
            fell.append(f"a reason fell away: no fact is named {shown_name(reason.fact)}")
            continue
        if reason.beside.strip() and beside is None:
            fell.append(f"{fact.name} stands alone: no fact is named {shown_name(reason.beside)}")
        alone = beside is None or beside.name == fact.name
        kept.append(
            Reason(
                fact=fact.name,
                beside="" if alone or beside is None else beside.name,
                speaks=reason.speaks,
                why=reason.why,
                about=fact.key.entity,
            )
        )
    return tuple(kept), tuple(fell)


def shown_name(name: str) -> str:
    """A name that a model made up, as it may be shown: on one line, without what hides text."""
    return clean_line(name, 60) or "(nothing)"


def argued(reasons: Sequence[ReasonDraft], facts: Facts, subject: str = "") -> Prose:
    """`For: close 584.00 USD, 2.1% above 50-day average of 571.96 USD. Against: RSI 14 71.20.`

    Facts of another entity than the `subject` are written with its name. Empty without reasons.
    """
    text = Prose()
    for side, word in _SIDES.items():
        own = [each for each in reasons if each.speaks is side]
        if own:
            text.say(" " if text.text else "").say(f"{word.capitalize()}: ")
            for place, each in enumerate(own):
                again = place > 0 and _goes_on(own[place - 1], each)
                text.say("" if place == 0 else " and " if again else "; ")
                text.add(clause(each, facts, subject, again=again))
            text.say(".")
    return text


def _goes_on(before: ReasonDraft, reason: ReasonDraft) -> bool:
    """Whether a clause holds the same fact against another one, so that it need not be named."""
    return bool(before.beside and reason.beside and before.fact == reason.fact and not before.why)


def clause(reason: ReasonDraft, facts: Facts, subject: str = "", *, again: bool = False) -> Prose:
    """One reason that names a fact, in words; without the fact where the last clause has it."""
    fact = facts.by_name[reason.fact]
    beside = facts.by_name[reason.beside] if reason.beside else None
    text = Prose() if again else _labelled(fact, subject)
    how, difference = "", None
    if beside is not None:
        how, difference = relation(fact, beside)
        text.say("" if again and how else ", " if how else "beside " if again else " beside ")
        if difference is not None:
            size = how.rpartition(" ")[0]
            unit = PERCENT if size.endswith("%") else POINTS if "point" in size else fact.unit
            text.cite(size, abs(difference), fact, beside, unit=unit)
            text.say(f" {how.rpartition(' ')[2]} ")
        elif how:
            text.say(f"{how} ")
        text.add(_labelled(beside, subject))
    own = [each for each in (fact, beside) if each is not None]
    words = _in_own_words(reason.why, own, difference)
    return text.say(" (").add(words).say(")") if words.text else text


def stated(facts: Iterable[Fact], subject: str = "") -> Prose:
    """Facts as they are, without a judgement: `next report in 5 days; expected EPS 1.20 USD`."""
    return Prose().join((_labelled(each, subject) for each in facts), "; ")


def _labelled(fact: Fact, subject: str) -> Prose:
    whose = "" if fact.key.entity in (subject, "account", "market") else f"{fact.key.entity} "
    day = f" of {fact.key.on}" if fact.key.on and fact.unit != TEXT else ""
    text = Prose(f"{whose}{fact.label}{day} ")
    text.cite(value_of(fact), fact.number, fact)
    return text.say(f" of {fact.key.on}") if fact.key.on and fact.unit == TEXT else text


def own_words(words: str) -> Prose:
    """A model's words that stand on no fact: every number in them is loose."""
    return _in_own_words(words, (), None)


def _in_own_words(why: str, own: Sequence[Fact], difference: float | None) -> Prose:
    """A model's few words, with the numbers in them told apart."""
    said = plain_digits(clean_line(why, len(why))).strip(" .;()") if why else ""
    names = [text for each in own for text in (each.name, each.label, str(each.value))]
    text, done = Prose(), 0
    for start, written in numbers_in(said):
        text.say(said[done:start])
        done = start + len(written)
        source = next((each for each in own if _is(written, each.number)), None)
        if source is not None:
            text.cite(written, source.number, source)
        elif _is(written, difference):
            text.cite(written, difference, *own)
        elif passes(written, names):
            text.say(written)
        else:
            text.doubt(written)
    return text.say(said[done:])


def _is(written: str, value: float | None) -> bool:
    return value is not None and same(written, value)
