"""Strategies as a list, and side by side. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC
from decimal import Decimal

from contracts.strategy_query import StrategyView
from libs.facts import amounts
from libs.report import ending, links, view
from libs.report.tones import Tone
from libs.report.view import Cell, Column, Facts, NoRows, Table, Text

NAME_CHARS_MAX = 28
PART, GAIN, RATIO, COUNT, LOSS = ".1%", "+.2%", ".2f", ",d", ".3f"
LISTED = (
    (Column("Return", right=True), "total_return", GAIN),
    (Column("Sharpe", right=True), "sharpe_ratio", RATIO),
    (Column("Drawdown", right=True), "max_drawdown", PART),
    (Column("Trades", right=True, spare=6), "total_trades", COUNT),
    (Column("Buy-and-hold", right=True, spare=3), "benchmark_return", GAIN),
    (Column("Accuracy", right=True, spare=2), "accuracy", PART),
    (Column("Base rate", right=True, spare=1), "base_rate", PART),
)
"""The figures of a list: column, field of the backtest or the training, and how it is written."""
FIGURES = (
    ("out-of-sample accuracy", "accuracy", PART),
    ("base rate", "base_rate", PART),
    ("first loss", "initial_loss", LOSS),
    ("final loss", "final_loss", LOSS),
    ("return", "total_return", GAIN),
    ("buy-and-hold", "benchmark_return", GAIN),
    ("CAGR", "cagr", GAIN),
    ("Sharpe", "sharpe_ratio", RATIO),
    ("buy-and-hold's Sharpe", "benchmark_sharpe_ratio", RATIO),
    ("Sortino", "sortino_ratio", RATIO),
    ("deflated Sharpe", "deflated_sharpe", PART),
    ("trials", "trials", COUNT),
    ("max drawdown", "max_drawdown", PART),
    ("trades", "total_trades", COUNT),
    ("win rate", "win_rate", PART),
    ("turnover a year", "turnover", RATIO),
    ("exposure", "exposure", PART),
)
"""The figures of one strategy and of a comparison, as in LISTED."""
SHARPE, YEAR_DAYS = "sharpe_ratio", 365.25
RANKED = {
    **dict.fromkeys(("accuracy", "total_return", SHARPE, "sortino_ratio"), 1),
    **dict.fromkeys(("deflated_sharpe", "win_rate"), 1),
    "max_drawdown": -1,
}
"""The figures by which one strategy is better than another: 1 where more is, -1 where less is."""
NOT_RESOLVED = (
    "not resolved: the best Sharpe ratios differ by less than chance makes two ratios over so many "
    "sessions differ (95%)"
)


def listed(of: Sequence[StrategyView]) -> Table:
    """A row a strategy. Names come again: the day and the cycle's first digits tell runs apart."""
    return view.table(
        (
            "Strategy",
            Column("Designed", spare=5),
            "Cycle",
            "Ended",
            *(column for column, *_ in LISTED),
            Column("Equity", spare=4),
        ),
        (
            view.row(
                _name(it),
                f"{it.designed_at.astimezone(UTC):%Y-%m-%d}",
                amounts.short(it.cycle_id),
                _ended(it, "stopped by the "),
                *(_figure(it, field, form) for _, field, form in LISTED),
                _equity(it),
                key=it.name,
            )
            for it in of
        ),
        empty=NoRows("No strategy yet; start a cycle:", todo="deskbus agent trigger --wait"),
    )


def figures(of: StrategyView) -> Facts:
    """What its training and its backtest came to."""
    rows = ((label, _figure(of, field, form)) for label, field, form in FIGURES)
    return Facts(
        tuple((label, cell) for label, cell in rows if cell.value is not None),
        notes=view.notes("deflated Sharpe: 1 - chance of it by luck, the best of so many trials"),
    )


def checks(of: StrategyView) -> Iterable[Text]:
    """What its gates have looked at, a sentence each."""
    tested = (of.training, of.backtest)
    for gate in filter(None, (figures.gate for figures in tested if figures)):
        for check in gate.checks:
            mark, tone = ("✓", Tone.GOOD) if check.passed else ("✗", Tone.BAD)
            yield Text(f"{mark} {gate.gate} gate: {ending.in_words(check.reason)}", tone)


def compared(of: Sequence[StrategyView]) -> Table:
    """A column a strategy: its design, then its figures."""
    differ = len({(it.held_out.first, it.held_out.last) for it in of}) > 1
    notes = ["their held-out periods differ, so their returns are hard to compare"] * differ
    ranked = {} if differ else RANKED
    if ranked and _is_noise(of):
        ranked = {field: way for field, way in RANKED.items() if field != SHARPE}
        notes.append(NOT_RESOLVED)
    return view.table(
        ("", *(Column(_name(it).text, right=True) for it in of)),
        (
            *(view.row(label, *(cell(it) for it in of)) for label, cell in DESIGN),
            *(
                view.row(label, *_figures(of, field, form, ranked.get(field, 0)))
                for label, field, form in FIGURES
            ),
            view.row("equity", *map(_equity, of)),
        ),
        notes=view.notes(*notes, tone=Tone.WARN),
    )


def _name(of: StrategyView) -> Cell:
    return view.say(amounts.cut(of.name, NAME_CHARS_MAX), link=links.strategy(of.name))


def _ended(of: StrategyView, without: str = "") -> Cell:
    ended = ending.of_strategy(of)
    return view.say(ended.words.removeprefix(without), ended.tone)


def _equity(of: StrategyView) -> Cell:
    return view.curve(
        [Decimal(str(value)) for value in (of.backtest.equity if of.backtest else ())]
    )


DESIGN: Sequence[tuple[str, Callable[[StrategyView], Cell | str]]] = (
    ("ended", _ended),
    ("as of", lambda it: str(it.as_of)),
    ("model", lambda it: it.model.replace("_", " ")),
    ("features", lambda it: view.count(len(it.features))),
    ("horizon", lambda it: view.count(it.horizon_bars, "session")),
    ("trained from", lambda it: str(it.train.first)),
    ("held out from", lambda it: str(it.held_out.first)),
    ("held out to", lambda it: str(it.held_out.last)),
)
"""What a comparison says of a strategy before its figures."""


def _figures(of: Sequence[StrategyView], field: str, form: str, way: int) -> Sequence[Cell]:
    """A figure of each, the best marked: the highest where `way` is 1, the lowest where it is -1,
    none where it is 0. What reads the same has no winner."""
    cells = [_figure(it, field, form) for it in of]
    known = [
        (value * way, cell.text)
        for it, cell in zip(of, cells, strict=True)
        if (value := _value(it, field)) is not None
    ]
    if not way or len({text for _, text in known}) < 2:
        return cells
    best = max(known)[1]
    return [replace(it, text=f"★ {best}").strong if it.text == best else it for it in cells]


def _is_noise(of: Sequence[StrategyView]) -> bool:
    """Whether the best two Sharpe ratios differ by less than chance makes two ratios differ."""
    sharpes = sorted(value for it in of if (value := _value(it, SHARPE)) is not None)
    if len(sharpes) < 2:
        return False
    period = of[0].held_out
    # A list needs no numpy and polars, which take long to load.
    from libs.quant.strategy import skill  # noqa: PLC0415
    from libs.quant.strategy.performance import YEAR_SESSIONS  # noqa: PLC0415

    sessions = round((period.last - period.first).days / YEAR_DAYS * YEAR_SESSIONS)
    return not skill.sharpes_differ(sharpes[-1], sharpes[-2], sessions)


def _value(of: StrategyView, field: str) -> float | None:
    tested = next((part for part in (of.backtest, of.training) if hasattr(part, field)), None)
    return getattr(tested, field, None)


def _figure(of: StrategyView, field: str, form: str) -> Cell:
    """A figure of the training or the backtest; a dash where there is none."""
    value = _value(of, field)
    return view.unknown() if value is None else view.say(format(value, form))
