"""A folder of prices whose returns can be computed by hand, and files of decisions on them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from libs.market.sources import recorded_in
from libs.study.decisions.file import read_decisions
from libs.study.decisions.priced import PricedDecisions, PriceSource, priced
from libs.study.decisions.score import DecisionScore, score_decisions
from libs.study.statistics.walks import WalkTerms

DAYS = ("2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05", "2024-01-08", "2024-01-09")
"""Sessions of New York, one after the other but for a weekend."""
Bar = tuple[float, float, float, float]
"""Open, close, dividend, split factor."""
HEAD = "date,open,high,low,close,volume,dividend,split_factor"
UP: Sequence[Bar] = tuple(
    (100 * 1.1 ** max(n - 1, 0), 100 * 1.1**n, 0, 1) for n in range(len(DAYS))
)
"""Ten percent a session, all of it between open and close."""
FLAT: Sequence[Bar] = ((50, 50, 0, 1),) * len(DAYS)


def folder(path: Path, bars: Mapping[str, Sequence[Bar]], days: Sequence[str] = DAYS) -> Path:
    """A folder of prices; a ticker with fewer bars than days stops trading."""
    path.mkdir(exist_ok=True)
    (path / "source.toml").write_text('name = "hand"\ncurrency = "USD"\nexchange = "XNYS"\n')
    for ticker, rows in bars.items():
        lines = [
            f"{day},{a},{max(a, b)},{min(a, b)},{b},1000,{dividend},{split}"
            for day, (a, b, dividend, split) in zip(days, rows, strict=False)
        ]
        (path / f"{ticker}.csv").write_text("\n".join((HEAD, *lines)) + "\n")
    return path


async def placed(prices: Path, file: Path, **options: object) -> PricedDecisions:
    """The decisions of a file on the prices of a folder."""
    chosen = {"until": None, "sells_unnamed": True, **options}
    return await priced(read_decisions(file), PriceSource(*recorded_in(prices)), **chosen)  # type: ignore[arg-type]


async def scored(
    prices: Path,
    text: str,
    *,
    cost_bps: float = 0,
    draws: int = 200,
    seed: int = 1,
    **options: object,
) -> DecisionScore:
    """The score of a file with this text."""
    file = prices.parent / "decisions.csv"
    file.write_text(text)
    of = await placed(prices, file, **options)
    terms = WalkTerms(100_000, cost_bps)
    return score_decisions(file.name, read_decisions(file), of, terms, "it", (draws, seed))


def money(score: DecisionScore, name: str = "the file") -> float:
    """The last money of a path."""
    return next(it.money for it in score.paths if it.name == name)
