"""Findings of the risk rules, in reading order. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from contracts.risk import Check, RuleOutcome
from libs.report import view
from libs.report.sections import ShownItems
from libs.report.tones import Tone, tone
from libs.report.view import Column, Table

WORST_FIRST = (RuleOutcome.VETOED, RuleOutcome.CUT, RuleOutcome.KEPT)


@dataclass(frozen=True)
class RuleFinding:
    """One rule's finding, once for all tickers of which it says the same numbers."""

    checks: Sequence[Check]

    @property
    def check(self) -> Check:
        """The first of them: rule, outcome, value and limit are all the same."""
        return self.checks[0]

    @property
    def names(self) -> str:
        """`AAPL MSFT`; `all` where it is about the whole proposal."""
        return " ".join(check.ticker for check in self.checks if check.ticker) or "all"

    @property
    def reason(self) -> str:
        """Why, once for each ticker that has a reason of its own."""
        return "; ".join(dict.fromkeys(check.reason for check in self.checks))

    @property
    def tone(self) -> Tone:
        """Good where the rule held, else by how much it took away."""
        return tone(self.check.outcome)


def against(checks: Sequence[Check]) -> Sequence[RuleFinding]:
    """The rules that cut or vetoed, vetoes first."""
    return _gathered([check for check in checks if not check.passed])


def kept(checks: Sequence[Check]) -> Sequence[RuleFinding]:
    """The rules that held."""
    return _gathered([check for check in checks if check.passed])


def table(findings: ShownItems[RuleFinding], *, with_reasons: bool = False) -> Table:
    """The value against the limit, a row for equal findings; where there is room, why."""
    reason = (Column("Reason", wraps=True),) if with_reasons else ()
    return view.table(
        (
            Column("Tickers", wraps=True),
            "Outcome",
            "Rule",
            Column("Value", wraps=True),
            Column("Limit", wraps=True),
            *reason,
        ),
        (
            (
                it.names,
                view.say(it.check.outcome.value, it.tone),
                it.check.rule,
                it.check.value,
                it.check.limit,
                *(view.say(it.reason, Tone.QUIET) for _ in reason),
            )
            for it in findings.shown
        ),
        notes=view.notes(findings.rest),
    )


def worst_first(checks: Sequence[Check]) -> Sequence[Check]:
    """Vetoes, then cuts, then what held."""
    return sorted(checks, key=lambda check: WORST_FIRST.index(check.outcome))


def _gathered(checks: Sequence[Check]) -> Sequence[RuleFinding]:
    same: dict[tuple[str, ...], list[Check]] = {}
    for check in worst_first(checks):
        key = (check.rule, check.outcome.value, check.value, check.limit)
        same.setdefault(key, []).append(check)
    return [RuleFinding(group) for group in same.values()]
