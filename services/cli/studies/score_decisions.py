"""`deskbus study score-decisions`: decisions that were made elsewhere, beside coins and holding."""

import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from libs.facts import amounts
from libs.files.finding import BadFile
from libs.market.choice import SourceName, source_of
from libs.market.errors import MarketError
from libs.runtime.extras import require
from libs.runtime.settings import Settings
from libs.runtime.whole_file import write_whole
from services.cli.shell.invalid import day_of, pairs_of, writing
from services.cli.shell.options import DateOrder, DecimalMark, JsonOption
from services.cli.shell.problem import CliProblem, WrongUsage
from services.cli.shell.progress import ETA_FROM_S, CycleProgress
from services.cli.shell.running import asking, load_settings
from services.cli.shell.terminal import aside, emit, err, out

if TYPE_CHECKING:
    from libs.study.decisions.file import DecisionReading
    from libs.study.decisions.priced import PriceSource
    from libs.study.decisions.score import DecisionScore
    from libs.study.decisions.stated import StatedFile

COLUMNS = frozenset({"time", "ticker", "weight", "action", "quantity"})
DRAWS_MAX = 10_000
CASH_MAX = 1_000_000_000
HELP = "docs/scoring.md shows the columns, and how times are read"


def score_decisions(
    file: Annotated[
        Path,
        typer.Argument(help="CSV of decisions, or TradingAgents' trading_memory.md."),
    ],
    prices: Annotated[
        str | None,
        typer.Option(help="A folder of prices, or a source: replay, yahoo, alpaca."),
    ] = None,
    zone: Annotated[
        str | None, typer.Option(help="Time zone of times without one, e.g. America/New_York.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Headings of the columns: time=Date,weight=Target.")
    ] = None,
    unnamed: Annotated[
        bool,
        typer.Option(
            "--sell-unnamed/--keep-unnamed",
            help="Sell a ticker that has no weight at a time, or keep it.",
        ),
    ] = True,
    until: Annotated[str | None, typer.Option(help="The last session that counts.")] = None,
    cash: Annotated[float, typer.Option(min=1, max=CASH_MAX, help="Starting cash.")] = 100_000,
    cost_bps: Annotated[
        float | None,
        typer.Option(
            min=0, max=1_000, help="Basis points per trade; by default the paper broker's."
        ),
    ] = None,
    draws: Annotated[
        int, typer.Option(min=100, max=DRAWS_MAX, help="How many coin-flip portfolios to draw.")
    ] = 1_000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the coin flips.")] = 1,
    dates: Annotated[
        DateOrder | None, typer.Option(help="How to read dates such as 03/04/2024.")
    ] = None,
    decimal: Annotated[DecimalMark | None, typer.Option(help="The decimal mark.")] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Also write the report to this HTML file.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Score any decisions against a coin flip, buy-and-hold and equal weights.

    It needs no desk, account or model. Each decision trades at the next open after it was known, at
    the source's prices; it does not use prices in the file.
    """
    require("strategies", "a score of decisions")
    from libs.study.decisions.file import DecisionReading  # noqa: PLC0415 - loads polars

    reading = DecisionReading(
        pairs_of("--columns time=Date,weight=Target", columns.split(","), COLUMNS)
        if columns
        else {},
        _zone(zone),
        None if dates is None else dates is DateOrder.MONTH_FIRST,
        None if decimal is None else decimal is DecimalMark.COMMA,
    )
    read = _read(file, reading)
    last, settings = day_of("--until", until), load_settings()
    score = _scored(
        file.name,
        read,
        settings,
        _Terms(prices, last, unnamed, cash, cost_bps, draws, seed),
    )
    if html is not None:
        _write_page(score, html)
    if json:
        emit([score])
        return
    from libs.study.report.decisions import compose_decisions  # noqa: PLC0415 - loads numpy
    from services.cli.studies.score import show  # noqa: PLC0415

    page = "" if html is not None else "as a page: --html FILE; "
    show(compose_decisions(score), out(), f"{page}for programs: --json")


@dataclass(frozen=True)
class _Terms:
    """The options of a score."""

    prices: str | None
    until: date | None
    sells_unnamed: bool
    cash: float
    cost_bps: float | None
    draws: int
    seed: int


def _zone(name: str | None) -> ZoneInfo | None:
    try:
        return None if name is None else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        message = f"--zone {name[:40]!r} is not a time zone" if name else "--zone is empty"
        raise WrongUsage(message, "write one such as America/New_York or UTC") from None


def _read(file: Path, reading: "DecisionReading") -> "StatedFile":
    """The decisions of a file. Raises `CliProblem` where a row cannot be used, and names each."""
    from libs.study.decisions.file import read_decisions  # noqa: PLC0415 - loads polars

    try:
        read = read_decisions(file, reading)
    except BadFile as error:
        raise WrongUsage(error.message, HELP) from error
    for finding in read.findings:
        aside(f"✗ {finding}", "red")
    if read.bad_rows:
        more = read.bad_rows - len(read.findings)
        if more:
            aside(f"✗ and {more:,} more", "red")
        rows = amounts.count(read.bad_rows, "row")
        raise WrongUsage(f"{rows} of {file.name} are invalid, so nothing was scored", HELP)
    return read


def _scored(name: str, read: "StatedFile", settings: Settings, options: _Terms) -> "DecisionScore":
    from libs.study.decisions.priced import NothingToScore, priced  # noqa: PLC0415 - loads polars
    from libs.study.decisions.score import score_decisions as scored  # noqa: PLC0415
    from libs.study.statistics.walks import WalkTerms  # noqa: PLC0415

    bps = options.cost_bps
    if bps is None:
        bps = float(settings.broker.fee_bps + settings.broker.slippage_bps)
    try:
        source = _source(options.prices, settings)
        of = asking(priced(read, source, until=options.until, sells_unnamed=options.sells_unnamed))
    except NothingToScore as error:
        raise CliProblem(str(error), error.remedy) from error
    except MarketError as error:
        raise CliProblem(error.message, "deskbus market sources") from error
    began, times = time.monotonic(), len(of.orders)
    with CycleProgress(err(), lambda _: "") as progress:

        def tell(part: float) -> None:
            # Most files are scored before anybody would read it.
            if time.monotonic() - began > ETA_FROM_S:
                progress.counts(round(part * times), times, "times, the coins at each")

        return scored(
            name,
            read,
            of,
            WalkTerms(options.cash, bps),
            source.market.label.in_words,
            (options.draws, options.seed),
            tell,
        )


def _source(prices: str | None, settings: Settings) -> "PriceSource":
    """The source of prices that was named, else that of the settings. Raises `CliProblem` and
    MarketError."""
    from libs.market.sources import fills_of, market_of, recorded_in, sessions_of  # noqa: PLC0415
    from libs.study.decisions.priced import PriceSource  # noqa: PLC0415

    name = source_of(settings) if prices is None else prices
    directory = settings.market.replay_dir
    if name not in set(SourceName):
        directory, name = Path(name), SourceName.REPLAY
        if not directory.is_dir():
            names = ", ".join(SourceName)
            message = f"--prices {prices!r} is neither a folder nor a source ({names})"
            raise WrongUsage(
                message, "`deskbus market import FILE` creates a folder of your prices"
            )
    if name == SourceName.REPLAY:
        return PriceSource(*recorded_in(directory))
    live = settings.changed(market={"source": name})
    return PriceSource(market_of(live), fills_of(live), sessions_of(live))


def _write_page(score: "DecisionScore", path: Path) -> None:
    from libs.study.report.decisions import compose_decisions  # noqa: PLC0415 - loads numpy
    from libs.study.report.page import page  # noqa: PLC0415 - loads the templates

    text = page(compose_decisions(score))
    hint = "name a file in an existing, writable folder with --html"
    with writing(path, hint):
        write_whole(path, text.encode())
    aside(f"wrote {path}")
