"""Which rules that fired may still sell: a signal acts once, however often it is looked at. Pure.

A signal of a month acts once a position and calendar month, and on no position that was opened
after that month. The risk rule `exit_rules` keeps the desk from buying what the signal would sell;
where that is switched off, or a holding is imported, a sale next day would only undo the buy at a
cost, and its own stop guards it until the month after. Any other rule acts once, and again only
after a close at which it was quiet. An order that sold less than it asked for leaves the rest,
which the next check may ask for while the signal lasts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from contracts.account import ActedExit
from libs.quant.exits.rules import ExitFacts, ExitRule, Fired, NoSignal

_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class SignalStanding:
    """A rule that fired, and its exits for this signal, oldest first: none where it is new.
    `older` says that the signal is older than the position; else it is empty."""

    rule: ExitRule
    finding: Fired
    acts: tuple[ActedExit, ...] = ()
    older: str = ""

    @property
    def left(self) -> Decimal | None:
        """Shares that its last order left unsold, up to what it asked for at first: another rule
        may have asked for more beside it since. None where it has not acted."""
        if not self.acts:
            return None
        first, last = self.acts[0], self.acts[-1]
        return max(_ZERO, min(last.asked - last.sold, first.asked - self.sold))

    @property
    def sold(self) -> Decimal:
        """Shares that were sold on it."""
        return sum((act.sold for act in self.acts), _ZERO)

    @property
    def is_done(self) -> bool:
        """Whether it has sold all that it asked for, or may sell nothing of the position."""
        return bool(self.older) or self.left == 0

    @property
    def sentence(self) -> str:
        """When it acted and what it sold, or why it does not act, for people."""
        if self.older:
            return self.older
        first = self.acts[0]
        again = "it acts again once it has been quiet"
        if self.rule.monthly:
            again = f"the signal of {first.month} acts once"
        elif self.rule.once:
            again = "it acts once on a position"
        return (
            f"{self.rule.name} acted on {first.as_of}, sold {self.sold.normalize():f} of "
            f"{first.held.normalize():f} shares; {again}"
        )


def standing(
    rule: ExitRule, finding: Fired, facts: ExitFacts, exits: Sequence[ActedExit]
) -> SignalStanding:
    """How a rule that fired stands to what was sold of the position before."""
    own = [act for act in exits if rule.name in act.rules]
    if rule.monthly:
        if facts.opened_on is not None and f"{facts.opened_on:%Y-%m}" > facts.month:
            return SignalStanding(rule, finding, older=_older(rule, facts.month, facts.opened_on))
        return SignalStanding(rule, finding, tuple(e for e in own if e.month == facts.month))
    if not own or _quiet_since(rule, facts, own[-1]):
        return SignalStanding(rule, finding)
    return SignalStanding(rule, finding, tuple(own[-1:]))


def _older(rule: ExitRule, month: str, opened_on: date) -> str:
    return (
        f"the {rule.name} signal of {month} is older than the position, opened on {opened_on}: "
        "only the next month's can sell it"
    )


def _quiet_since(rule: ExitRule, facts: ExitFacts, act: ActedExit) -> bool:
    """Whether the rule was quiet at a close after it acted.

    All these rules look at one price, and are the quieter the higher it is or the lower: so it is
    enough to ask at both ends of what the close has been since.
    """
    closes = [close for day, close in facts.closes_since.items() if day > act.as_of]
    if facts.close is None or facts.close <= 0 or not closes:
        return False
    return any(
        isinstance(rule.judge(_at(facts, close / facts.close)), NoSignal)
        for close in (min(closes), max(closes))
    )


def _at(facts: ExitFacts, part: float) -> ExitFacts:
    """The facts had the close been this part of what it is."""
    close = None if facts.close is None else facts.close * part
    return replace(facts, price=facts.price * part, close=close)
