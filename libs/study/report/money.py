"""The money of a study's path, in words. Pure."""

from collections.abc import Sequence

from contracts.study_score import (
    RATIO_SESSIONS_LEAST,
    ConfigurationKind,
    Configurations,
    Equity,
    OverfittingScore,
    StudyScore,
)
from libs.facts import amounts
from libs.report.tones import Tone
from libs.report.view import Cell, Table, table
from libs.study.report import words
from libs.study.report.parts import Curve, ReportCurves, StudySection, numbers, text

SKILL_FROM = 0.95
"""The deflated Sharpe ratio from which on luck is ruled out."""
KINDS = {
    ConfigurationKind.OWN: "accounts of this study",
    ConfigurationKind.PATH: "accounts of other studies",
    ConfigurationKind.STRATEGY: "backtests of strategies",
    ConfigurationKind.PICKS: "arms of studies without accounts",
}
ROBUST, LUCK = 0.1, 0.5
"""Probabilities of overfitting below and above which a choice of the best is robust, and luck."""


def money(score: StudyScore) -> StudySection:
    """Each account after costs beside its controls, and how much of it was luck."""
    columns = (
        *text("Account"),
        *numbers("Return"),
        *numbers("A year", spare=1),
        *numbers("Sharpe ratio"),
        *numbers("95% interval", spare=1),
        *numbers("Max drawdown", "Deflated"),
        *text("Verdict"),
        *numbers("Sessions", "Needed"),
    )
    tables = [table(columns, map(_row, score.equity))] if score.equity else []
    if any(it.tokens_decision for it in score.equity):
        tables.append(_spent(score.equity))
    if score.configurations:
        tables.append(_configurations(score.configurations))
    return StudySection(
        "Money",
        "Each account after costs beside its controls. Deflated: the probability that the Sharpe"
        " ratio is above that of the luckiest of all configurations on record; 95% and more is more"
        " than luck. Needed: how many sessions would show that it is above 0 (minimum track record"
        " length). A return a year needs a year.",
        tables,
        ReportCurves(
            "What 1 has become, less 1, in percent",
            score.points,
            [Curve(it.name, [(value - 1) * 100 for value in it.curve]) for it in score.equity],
        )
        if len(score.points) > 1
        else None,
        notes=(_overfitting(score),),
    )


def in_short(score: StudyScore) -> Sequence[Cell]:
    """Which accounts did better than the luckiest of all would."""
    own = [it for it in score.equity if not it.control]
    if not own:
        return ()
    among = (
        f"luck among {amounts.count(sum(it.count for it in score.configurations), 'configuration')}"
    )
    better = [it for it in own if _is_skill(it)]
    if not any(it.deflated_sharpe is not None for it in own):
        return ()
    if not better:
        return (words.quiet(f"no account's Sharpe ratio can be told from {among}"),)
    return [
        Cell(f"{it.name}: its Sharpe ratio is more than {among}", tone=Tone.GOOD) for it in better
    ]


def _is_skill(it: Equity) -> bool:
    return it.deflated_sharpe is not None and it.deflated_sharpe >= SKILL_FROM


def _row(it: Equity) -> Sequence[str | Cell]:
    low, high = it.sharpe_low, it.sharpe_high
    needed = "" if low is None else "none would do"
    if it.sessions_needed is not None:
        needed = f"{it.sessions_needed:,}"
    return (
        words.arm(it.name) if it.arm == it.name else it.name,
        words.gain(it.total_return),
        "" if it.annual_return is None else words.gain(it.annual_return),
        "" if it.sharpe is None else f"{it.sharpe:.2f}",
        "" if low is None or high is None else f"{low:.2f} to {high:.2f}",
        words.share(it.drawdown),
        "" if it.deflated_sharpe is None else words.share(it.deflated_sharpe),
        _verdict(it),
        f"{it.sessions:,}",
        needed,
    )


def _spent(equity: Sequence[Equity]) -> Table:
    """The cost of models, for a decision and for each basis point above the benchmark."""
    columns = (
        *text("Account"),
        *numbers("Tokens a decision", "Cost a decision"),
        *numbers("Tokens a basis point", "Cost a basis point"),
    )
    none = "none above it"
    rows = [
        (
            it.name,
            amounts.thousands(it.tokens_decision),
            _usd(it.usd_decision),
            none if it.tokens_bp is None else amounts.thousands(round(it.tokens_bp)),
            none if it.tokens_bp is None else _usd(it.usd_bp),
        )
        for it in equity
        if it.tokens_decision
    ]
    return table(
        columns, rows, "Models, a decision and a basis point of return above the benchmark"
    )


def _usd(amount: float | None) -> str:
    return amounts.UNKNOWN_COST if amount is None else f"${amount:.4f}"


def _verdict(it: Equity) -> Cell:
    if it.control:
        return words.quiet("control")
    if it.sharpe is None:
        return words.quiet("not shown: it did not vary")
    if it.deflated_sharpe is None:
        needs = f"needs {RATIO_SESSIONS_LEAST} sessions and a second configuration"
        return words.quiet(f"not shown: {needs}")
    return Cell("more than luck", tone=Tone.GOOD) if _is_skill(it) else words.quiet("may be luck")


def _configurations(counted: Sequence[Configurations]) -> Table:
    """How many configurations of which kind the desk has tried, and from where."""
    columns = (*text("Configurations"), *numbers("Tried", "With daily returns"), *text("From"))
    rows = [
        (
            KINDS[it.kind],
            f"{it.count:,}",
            f"{it.with_returns:,}",
            ", ".join(it.sources) + (f" and {it.more:,} more" if it.more else ""),
        )
        for it in counted
    ]
    tried, known = (sum(getattr(it, name) for it in counted) for name in ("count", "with_returns"))
    total = ("all", f"{tried:,}", f"{known:,}", "")
    return table(columns, [*rows, total], "Configurations on record, on these assets and sessions")


def _overfitting(score: StudyScore) -> str:
    of = score.overfitting
    if not isinstance(of, OverfittingScore):
        return f"probability of overfitting: {words.not_shown(of)}"
    word = "robust" if of.probability < ROBUST else "luck" if of.probability > LUCK else "uncertain"
    return (
        f"probability that the best of {of.configurations} configurations with daily returns was"
        f" the best by luck: {words.share(of.probability)} ({word}), over {of.splits:,} splits"
    )
