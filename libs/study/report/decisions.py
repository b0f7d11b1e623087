"""The report on decisions that were made elsewhere, composed of their score. Pure."""

from collections.abc import Sequence

from contracts.study_score import NotShown, Shown
from libs.facts import amounts
from libs.report.tones import Tone
from libs.report.view import Cell, Column, table
from libs.study.decisions.score import COIN, FILE, CoinScore, DecisionScore, MoneyPath
from libs.study.decisions.stated import FINDINGS_MAX
from libs.study.report import words
from libs.study.report.parts import (
    Curve,
    ReportCurves,
    StudyReport,
    StudySection,
    numbers,
    text,
)

TICKERS_CHARS_MAX, NAME_CHARS_MAX = 120, 80
LINES_MAX = 3
LIFETIME_WEEKS = 5_218
"""100 years: more weeks than these say nothing further."""


def compose_decisions(score: DecisionScore) -> StudyReport:
    """The report of a score."""
    return StudyReport(
        name=amounts.cut(score.file, NAME_CHARS_MAX),
        asked=[amounts.plain(line) for line in _asked(score)],
        answer=_answer(score),
        sections=[it for it in (_luck(score), _money(score), _left_out(score)) if it is not None],
        kind="score of",
    )


def _asked(score: DecisionScore) -> Sequence[str]:
    """The choice that is not judged first: who does not know it reads all below wrongly."""
    decided = amounts.count(score.decisions, "decision")
    times = amounts.count(score.times, "time")
    tickers = amounts.cut(", ".join(score.tickers), TICKERS_CHARS_MAX)
    return [
        (
            "Only tickers of the file are compared. Whoever chose them may have known how they did,"
            " and that choice is not judged: coin, holding and equal parts choose among the same."
        ),
        f"{score.written_by}: {decided} at {times} on {tickers}",
        (
            "A decision counts at the next open after it was known; a date alone is known after"
            f" that day's close. From the open of {score.first} to the close of {score.last}:"
            f" {amounts.count(score.trades, 'trade')}, each at {score.cost_bps:g} basis points."
            " Long only, no loans."
        ),
        f"prices, adjusted for splits and dividends: {score.prices}",
        *score.notes,
    ]


def _answer(score: DecisionScore) -> Sequence[Cell]:
    verdict = _coin_verdict(score.coin)
    if isinstance(score.coin, CoinScore):
        coin = score.coin
        less = f"{words.share(coin.earned_less)} of {coin.draws:,} coins earned less"
        verdict = Cell(f"{verdict.text}; {less}", tone=verdict.tone)
    cells = [_headed(COIN, verdict)]
    cells += [_headed(name, _verdict(it)) for name, it in score.differences.items()]
    left = len(score.untraded) + score.untraded_more
    if left:
        one = amounts.count(left, "decision")
        cells.append(Cell(f"{one} not traded as in the file: see the end", tone=Tone.WARN))
    return cells


def _headed(name: str, verdict: Cell) -> Cell:
    return Cell(f"{name}: {verdict.text}", tone=verdict.tone)


def _coin_verdict(coin: CoinScore | NotShown) -> Cell:
    if isinstance(coin, NotShown):
        return words.quiet(words.not_shown(coin))
    if not coin.resolved:
        return words.quiet(f"not told from luck{_needed(coin.needed, coin.weeks)}")
    if coin.difference > 0:
        return Cell("better than luck", tone=Tone.GOOD)
    return Cell("worse than luck", tone=Tone.BAD)


def _needed(weeks: int | None, there: int) -> str:
    """The weeks that would show a difference of this size, which those that there are did not."""
    if weeks is None:
        return ""
    has = f"has {amounts.count(there, 'week')}"
    if weeks > LIFETIME_WEEKS:
        return f": needs more than 100 years, {has}"
    return f": needs {max(weeks, there + 1):,}, {has}"


def _verdict(of: Shown) -> Cell:
    if isinstance(of, NotShown):
        return words.quiet(f"not shown: {amounts.count(of.dates or 0, 'week')}, needs {of.needed}")
    if of.low == of.high == 0:
        return words.quiet("no difference")
    if not of.resolved:
        return words.quiet(f"not resolved{_needed(of.needed, of.dates)}")
    if of.estimate > 0:
        return Cell("the file is better", tone=Tone.GOOD)
    return Cell("the file is worse", tone=Tone.BAD)


def _luck(score: DecisionScore) -> StudySection:
    columns = (
        *text("Beside"),
        *numbers("Difference", "95% interval"),
        *numbers("p", spare=1),
        Column("Verdict", wraps=True),
    )
    coin = score.coin
    rows: list[Sequence[str | Cell]] = []
    if isinstance(coin, CoinScore):
        rows.append(
            (
                COIN,
                words.gain(coin.difference),
                f"{words.gain(coin.low)} to {words.gain(coin.high)}",
                words.probability(coin.p),
                _coin_verdict(coin),
            )
        )
    for name, it in score.differences.items():
        figure, interval = words.measured(it, words.gain)
        p, _ = words.tested(it)
        rows.append((f"{name}, a year", figure, interval, p, _verdict(it)))
    return StudySection(
        "More than luck?",
        f"{_lot(coin)}Beside holding and equal parts the difference is of growth a year, by weeks"
        " of both.",
        [table(columns, rows)],
        notes=[f"{COIN}: {words.not_shown(coin)}"] if isinstance(coin, NotShown) else [],
    )


def _lot(coin: CoinScore | NotShown) -> str:
    """The lot that a coin draws, and what its difference is of; empty where there is no coin."""
    if isinstance(coin, NotShown):
        return ""
    drawn = (
        "A coin gives the file's decisions to its times anew, all turned by the same number of"
        " places: there is one ticker."
        if coin.is_timing
        else "A coin does what the file does, at the same opens and of the same sizes, for as long;"
        " which ticker is drawn by lot."
    )
    return f"{drawn} The difference is of the whole return, the file less the middle coin. "


def _money(score: DecisionScore) -> StudySection:
    columns = (
        *text("Path"),
        *numbers("Money", "Return"),
        *numbers("A year", spare=3),
        *numbers("Max drawdown", "In shares"),
        *numbers("Turnover", spare=2),
        *numbers("Costs", spare=1),
    )
    coins = [it for it in score.paths if it.low is not None and it.high is not None]
    band = [
        f"9 of 10 coins ended between {it.low:,.0f} and {it.high:,.0f}; the row is the middle of"
        " each figure"
        for it in coins
    ]
    return StudySection(
        "Money",
        f"From {score.cash:,.0f} {score.currency}, after costs. Holding buys equal parts of the"
        " tickers at the first open; equal parts makes them equal again at each open that the file"
        " decides for. In shares: the mean part of the money. Turnover: what was traded, as times"
        " of the mean money.",
        [table(columns, map(_row, score.paths))],
        ReportCurves(
            "What 1 has become, less 1, in percent",
            score.points,
            [Curve(it.name, [(value - 1) * 100 for value in it.curve]) for it in score.paths],
        ),
        notes=band,
    )


def _row(it: MoneyPath) -> Sequence[str | Cell]:
    return (
        Cell(it.name, is_strong=it.name == FILE),
        f"{it.money:,.0f}",
        words.gain(it.total_return),
        "" if it.annual_return is None else words.gain(it.annual_return),
        words.share(it.drawdown),
        words.share(it.exposure),
        f"{it.turnover:.1f}x",
        f"{it.costs:,.0f}",
    )


def _first(lines: Sequence[str]) -> str:
    """`13, 61, 109 ...`: the first of some lines."""
    return ", ".join(lines[:LINES_MAX]) + (" ..." if len(lines) > LINES_MAX else "")


def _left_out(score: DecisionScore) -> StudySection | None:
    """Everything of the file that is not in the figures as it stands there."""
    notes = [f"no prices: {why}" for why in score.absent.values()]
    notes += [
        f"{name} traded last on {day}: it keeps that close, and whoever held it could not sell"
        for name, day in score.ended.items()
    ]
    count = len(score.untraded) + score.untraded_more
    if not count and not notes:
        return None
    alike: dict[tuple[str, str], list[str]] = {}
    for it in score.untraded:
        alike.setdefault((it.ticker, it.why), []).append(f"{it.line}" if it.line else "not named")
    listed = list(alike.items())[:FINDINGS_MAX]
    rows = [(ticker, f"{len(at):,}", _first(at), why) for (ticker, why), at in listed]
    shown = sum(len(at) for _, at in listed)
    if count > shown:
        notes.insert(0, f"and {count - shown:,} more; --json has {len(score.untraded):,}")
    columns = (
        *text("Ticker"),
        *numbers("Decisions"),
        *text("Lines"),
        Column("Why", wraps=True),
    )
    return StudySection(
        "Not as in the file",
        f"{amounts.count(count, 'decision')} not traded, or not whole: the money stayed in cash or"
        " in what was held. Nothing is tried again at a later open.",
        [table(columns, rows)] if rows else [],
        notes=notes,
    )
