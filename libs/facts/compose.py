"""From reasons to sentences: code looks the facts up, relates them and writes the figures."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from contracts.reasons import (
    FIGURES_MAX,
    LOOSE_MAX,
    WORDS_CHARS_MAX,
    Figure,
    Loose,
    Reason,
    ReasonDraft,
    Reasoned,
    Speaks,
)
from libs.facts.digits import numbers_in, passes, plain_digits, same
from libs.facts.fact import PERCENT, POINTS, TEXT, Fact, FactIndex
from libs.facts.written import relation, value_of
from libs.runtime.untrusted import clean_line

Mark = TypeVar("Mark", Figure, Loose)
NO_REASON = "no reason was given"
"""Stands where a judgement names no fact."""
SENTENCE_CHARS_MAX = 600
"""Of a sentence that names facts in braces."""
_NAMED = re.compile(r"\{{1,3}([^{}]{0,100})\}{1,3}")
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
                facts=tuple(fact.name for fact in facts),
                source=first.source,
                known=first.known,
                call=first.call,
                op_id=first.op_id,
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
        self.figures += (_moved(figure, behind) for figure in other.figures)
        self.loose += (_moved(mark, behind) for mark in other.loose)
        return self.say(other.text)

    def join(self, others: Iterable["Prose"], between: str) -> "Prose":
        """Add others, with words between them."""
        for place, other in enumerate(others):
            self.say(between if place else "").add(other)
        return self


def _moved(mark: Mark, behind: int) -> Mark:
    return mark.model_copy(update={"start": mark.start + behind})


@dataclass(frozen=True)
class Cited:
    """The marks in the texts of a contract, each under the field that it is in."""

    figures: tuple[Figure, ...]
    loose: tuple[Loose, ...]

    @classmethod
    def of(cls, texts: Mapping[str, Prose]) -> "Cited":
        """Of these texts by their fields, such as `tickers.0.summary`."""
        figures = [_in(field, figure) for field, text in texts.items() for figure in text.figures]
        loose = [_in(field, mark) for field, text in texts.items() for mark in text.loose]
        return cls(tuple(figures[:FIGURES_MAX]), tuple(loose[:LOOSE_MAX]))

    def also(self, other: "Cited") -> "Cited":
        """These and the other ones."""
        figures, loose = (*self.figures, *other.figures), (*self.loose, *other.loose)
        return Cited(figures[:FIGURES_MAX], loose[:LOOSE_MAX])


def carried(report: Reasoned, fields: Mapping[str, str]) -> Cited:
    """The marks in texts of an earlier report, under the fields that have these texts now."""
    figures = (
        figure.model_copy(
            update={"field": fields[figure.field], "op_id": figure.op_id or report.op_id}
        )
        for figure in report.figures
        if figure.field in fields
    )
    loose = (_in(fields[mark.field], mark) for mark in report.loose if mark.field in fields)
    return Cited(tuple(figures), tuple(loose))


def _in(field: str, mark: Mark) -> Mark:
    return mark.model_copy(update={"field": field})


def settled(
    reasons: Iterable[ReasonDraft], facts: FactIndex
) -> tuple[tuple[Reason, ...], tuple[str, ...]]:
    """The reasons that name a fact, with its right name, and in a sentence each what fell away."""
    valid: list[Reason] = []
    fell: list[str] = []
    for reason in reasons:
        fact, beside = facts.get(reason.fact), facts.get(reason.beside)
        if fact is None:
            fell.append(f"a reason fell away: no fact is named {shown_name(reason.fact)}")
            continue
        if reason.beside.strip() and beside is None:
            fell.append(f"{fact.name} stands alone: no fact is named {shown_name(reason.beside)}")
        alone = beside is None or beside.name == fact.name
        valid.append(
            Reason(
                fact=fact.name,
                beside="" if alone or beside is None else beside.name,
                speaks=reason.speaks,
                why=clean_line(reason.why, WORDS_CHARS_MAX),
                about=fact.key.entity,
            )
        )
    # Said again word for word it is one reason: a small model repeats itself until it is stopped.
    return tuple(dict.fromkeys(valid)), tuple(dict.fromkeys(fell))


def shown_name(name: str) -> str:
    """A name that a model made up, as it may be shown: on one line, without what hides text."""
    return clean_line(name, 60) or "(nothing)"


def argued(reasons: Sequence[ReasonDraft], facts: FactIndex, subject: str = "") -> Prose:
    """`For: close 584.00 USD, 2.1% above 50-day average of 571.96 USD. Against: RSI 14 71.20.`

    Facts of another entity than the `subject` are written with its name. Empty without reasons.
    """
    text = Prose()
    for side, word in _SIDES.items():
        own = [reason for reason in reasons if reason.speaks is side]
        if own:
            text.say(" " if text.text else "").say(f"{word.capitalize()}: ")
            for place, reason in enumerate(own):
                again = place > 0 and _goes_on(own[place - 1], reason)
                text.say("" if place == 0 else " and " if again else "; ")
                text.add(clause(reason, facts, subject, again=again))
            text.say(".")
    return text


def _goes_on(before: ReasonDraft, reason: ReasonDraft) -> bool:
    """True where a clause compares the same fact with another one, so that it need not be named."""
    return bool(before.beside and reason.beside and before.fact == reason.fact and not before.why)


def clause(
    reason: ReasonDraft, facts: FactIndex, subject: str = "", *, again: bool = False
) -> Prose:
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
    own = [named for named in (fact, beside) if named is not None]
    words = _in_own_words(reason.why, own, difference)
    return text.say(" (").add(words).say(")") if words.text else text


def stated(facts: Iterable[Fact], subject: str = "") -> Prose:
    """Facts as they are, without a judgement: `next report in 5 days; expected EPS 1.20 USD`."""
    return Prose().join((_labelled(fact, subject) for fact in facts), "; ")


def _labelled(fact: Fact, subject: str) -> Prose:
    whose = "" if fact.key.entity in (subject, "account", "market") else f"{fact.key.entity} "
    day = f" of {fact.key.on}" if fact.key.on and fact.unit != TEXT else ""
    text = Prose(f"{whose}{fact.label}{day} ")
    text.cite(value_of(fact), fact.number, fact)
    return text.say(f" of {fact.key.on}") if fact.key.on and fact.unit == TEXT else text


def own_words(words: str) -> Prose:
    """A model's words that stand on no fact: every number in them is loose."""
    return _in_own_words(words, (), None)


def names_in(words: str) -> tuple[str, ...]:
    """The names that a sentence has in braces."""
    return tuple(match[1] for match in _NAMED.finditer(plain_digits(words)))


def filled(words: str, facts: FactIndex) -> Prose:
    """A model's sentence, with the facts that it names in braces written out.

    A name that no fact has stays as it was written and is loose, and so is every number that none
    of the facts named has.
    """
    sentence = plain_digits(clean_line(words, SENTENCE_CHARS_MAX))[:SENTENCE_CHARS_MAX]
    named = [fact for name in names_in(sentence) if (fact := facts.get(name)) is not None]
    text, done = Prose(), 0
    for match in _NAMED.finditer(sentence):
        text.add(_lexed(sentence[done : match.start()], named, None))
        done = match.end()
        fact = facts.get(match[1])
        if fact is None:
            text.doubt(match[0])
        else:
            text.cite(value_of(fact), fact.number, fact)
    return text.add(_lexed(sentence[done:], named, None))


def _in_own_words(why: str, own: Sequence[Fact], difference: float | None) -> Prose:
    """A model's few words, with the numbers in them told apart.

    They stay as long as the model wrote them: one letter may be the short form of eighteen.
    """
    phrase = plain_digits(clean_line(why, len(why)))[: len(why)].strip(" .;()")
    return _lexed(phrase, own, difference)


def _lexed(phrase: str, own: Sequence[Fact], difference: float | None) -> Prose:
    """Words, with the numbers in them told apart."""
    names = [text for fact in own for text in (fact.name, fact.label, str(fact.value))]
    text, done = Prose(), 0
    for start, written in numbers_in(phrase):
        text.say(phrase[done:start])
        done = start + len(written)
        source = next((fact for fact in own if _is(written, fact.number)), None)
        if source is not None:
            text.cite(written, source.number, source)
        elif _is(written, difference):
            text.cite(written, difference, *own)
        elif passes(written, names):
            text.say(written)
        else:
            text.doubt(written)
    return text.say(phrase[done:])


def _is(written: str, value: float | None) -> bool:
    return value is not None and same(written, value)
