"""The money of a study's path, in words. Pure."""

from contracts.study_score import Equity, OverfittingScore, StudyScore
from libs.facts import amounts
from libs.report.studies import words
from libs.report.studies.parts import Cell, Column, Curve, Curves, Section, Table
from libs.report.tones import Tone

SKILL_FROM = 0.95
"""The deflated Sharpe ratio from which on luck is ruled out."""
ROBUST, LUCK = 0.1, 0.5
"""Probabilities of overfitting below and above which a choice of the best is robust, and luck."""


def money(score: StudyScore) -> Section:
    """Each account after costs beside its controls, and how much of it was luck."""
    columns = (
        *(Column("account"), Column("return", right=True), Column("a year", right=True)),
        *(Column("Sharpe ratio", right=True), Column("max drawdown", right=True)),
        *(Column("deflated Sharpe", right=True), Column("sessions", right=True)),
        *(Column("tokens a decision", right=True, wide=True),),
        *(Column("cost a decision", right=True, wide=True),),
        *(Column("cost a basis point", right=True, wide=True),),
    )
    return Section(
        "Money",
        "Each account after costs beside its controls. Deflated Sharpe: the probability that the"
        " ratio is above that of the luckiest of all accounts here; needed: how many sessions would"
        " show that it is above 0.",
        [Table(columns, [_row(it) for it in score.equity])] if score.equity else (),
        Curves(
            "What 1 has become, less 1, in percent",
            score.points,
            [Curve(it.name, [(value - 1) * 100 for value in it.curve]) for it in score.equity],
        )
        if len(score.points) > 1
        else None,
        notes=(_overfitting(score),),
    )


def _row(it: Equity) -> list[Cell]:
    deflated = it.deflated_sharpe
    needed = "none would do" if it.sessions_needed is None else f"{it.sessions_needed:,} needed"
    enough = it.sessions_needed is not None and it.sessions >= it.sessions_needed
    return [
        Cell(it.name, arm=it.arm),
        Cell(words.gain(it.total_return), arm=it.arm),
        Cell("" if it.annual_return is None else words.gain(it.annual_return)),
        Cell("" if it.sharpe is None else f"{it.sharpe:.2f}"),
        Cell(words.share(it.drawdown)),
        Cell(
            "" if deflated is None else words.share(deflated),
            Tone.GOOD if deflated is not None and deflated >= SKILL_FROM else None,
        ),
        Cell(f"{it.sessions:,}, {needed}", None if enough else Tone.QUIET),
        Cell("" if it.tokens_decision is None else amounts.thousands(it.tokens_decision)),
        Cell("" if it.usd_decision is None else f"${it.usd_decision:.4f}"),
        Cell("" if it.usd_bp is None else f"${it.usd_bp:.4f}"),
    ]


def _overfitting(score: StudyScore) -> str:
    of = score.overfitting
    if not isinstance(of, OverfittingScore):
        return f"probability of overfitting: {words.not_shown(of)}"
    word = "robust" if of.probability < ROBUST else "luck" if of.probability > LUCK else "uncertain"
    return (
        f"probability that the best of {of.configurations} was the best by luck:"
        f" {words.share(of.probability)} ({word}), over {of.splits:,} splits"
    )
