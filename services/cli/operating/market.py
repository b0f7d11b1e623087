"""`deskbus market`: where market data comes from, what it says, and recording it."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel, TypeAdapter, ValidationError
from rich.console import Group, RenderableType
from rich.text import Text

from contracts.types import Ticker
from libs.facts import amounts
from libs.market.choice import CAN, DataKind, PartName, SourceName, chosen, named, source_of
from libs.market.errors import MarketError, NotASession, UnknownTicker
from libs.market.kinds import MADE_UP
from libs.market.recording import (
    FROM_ALPACA,
    FROM_YAHOO,
    YEARS_DEFAULT,
    Recorder,
    TickerRecording,
)
from libs.market.source import require_session
from libs.market.sources import (
    alpaca_feed_of,
    alpaca_of,
    edgar_of,
    latest_session_of,
    market_of,
    tickers_of,
    yahoo_of,
)
from libs.market.tools.answers import ODD
from libs.market.tools.toolbox import MarketTools
from libs.report import view
from libs.report.tones import Tone
from libs.report.view import Column, Table
from libs.runtime.nearest import did_you_mean, nearest
from libs.runtime.settings import Settings
from services.cli.operating.market_import import import_files
from services.cli.operating.market_sources import NOTHING_ELSE, SourceRow, source_rows
from services.cli.render import described as answer
from services.cli.render import market as market_answers
from services.cli.shell.invalid import invalid
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import CliProblem, ExitCode
from services.cli.shell.progress import CycleProgress
from services.cli.shell.request_options import UniverseOption
from services.cli.shell.running import asking, load_settings
from services.cli.shell.terminal import aside, emit, err, facts, out, put, write

app = group()

SHOWN = {
    "get_stock_price": "price",
    "get_technical_indicators": "indicators",
    "get_fundamentals": "figures",
    "get_filings": "filings",
    "get_earnings": "earnings",
    "get_news": "news",
}
"""The tools that are asked, and what their answers are called."""
TERMS = {
    SourceName.YAHOO: "Yahoo's data is unofficial here and for your own use only: see "
    "docs/live-sources.md before you rely on it or pass it on",
    SourceName.ALPACA: "Alpaca's data is for your own use only and may not be passed on: see "
    "docs/live-sources.md",
}

SourceOption = Annotated[
    SourceName | None, typer.Option(help="Use this source instead of the configured one.")
]


class TickerAnswer(BaseModel):
    """One tool's answer about a ticker: a result, or why there is none."""

    tool: str
    result: dict[str, Any] | None = None
    code: str | None = None
    message: str | None = None


# --- import ----------------------------------------------------------------------------------

app.command("import")(import_files)


# --- sources ------------------------------------------------------------------------------------


@app.command()
def sources(json: JsonOption = False) -> None:
    """Show the market sources: what each is used for, what it offers, and whether it is ready.

    It uses no network. DESKBUS_MARKET_SOURCE selects the source; DESKBUS_MARKET_FUNDAMENTALS,
    DESKBUS_MARKET_EVENTS, DESKBUS_MARKET_HEADLINES and DESKBUS_MARKET_CALENDAR select another one
    for their kind of data.
    """
    rows = asking(source_rows(load_settings()))
    answer.show(rows, _sources(rows), json=json)


def _sources(rows: Sequence[SourceRow]) -> Iterable[Table]:
    yield view.table(
        ("Source", "Tickers", "Newest session", Column("What it is", wraps=True)),
        (
            (
                view.say(
                    f"{'✓' if row.usable else '✗'} {row.name}{' (chosen)' if row.chosen else ''}",
                    Tone.GOOD if row.usable else Tone.BAD,
                ),
                view.BLANK if row.tickers is None else view.count(row.tickers),
                str(row.latest_session or ""),
                row.said or row.label,
            )
            for row in rows
        ),
    )
    yield view.table(
        ("Data", "From", Column("Could come from", wraps=True)),
        (
            (
                kind,
                next((row.name for row in rows if kind in row.used_for), "nowhere"),
                ", ".join(row.name for row in rows if kind in row.can and kind not in row.used_for),
            )
            for kind in DataKind
        ),
    )


# --- show ---------------------------------------------------------------------------------------


@app.command()
def show(
    ticker: Annotated[str, typer.Argument(help="As the source writes it: AAPL, SAP.DE, BRK.B.")],
    as_of: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="A session; by default the source's newest."),
    ] = None,
    source: SourceOption = None,
    json: JsonOption = False,
) -> None:
    """Show the desk's data of a ticker at a session's close, and what is missing.

    Exit 1 if there is no price.
    """
    settings = load_settings()
    if source is not None:
        settings = settings.changed(market={"source": source, **NOTHING_ELSE})
    try:
        ticker = TypeAdapter[str](Ticker).validate_python(ticker)
    except ValidationError as error:
        raise invalid("ticker", error) from error
    day, answers = asking(_answers(settings, ticker, as_of.date() if as_of else None))
    first = answers[0]
    if json:
        emit(answers)
    elif first.code == UnknownTicker.code:
        raise _no_such_ticker(ticker, first, settings)  # every tool would say the same
    else:
        label = market_of(settings).label
        synthetic = ", synthetic prices" if label.synthetic else ""
        put(f"{ticker} at the close of {day}, from {label.name}{synthetic}")
        rows: list[tuple[str, RenderableType]] = [
            (SHOWN[answer.tool], _with_source(answer, label.name)) for answer in answers
        ]
        if odd := _odd(answers):
            rows.insert(1, ("odd", Text("\n".join(odd), style="yellow")))
        write(facts(rows), out())
    if first.code is not None:
        raise typer.Exit(ExitCode.FAILED)


async def _answers(
    settings: Settings, ticker: str, as_of: date | None
) -> tuple[date, Sequence[TickerAnswer]]:
    day, data = as_of or await latest_session_of(settings)(), market_of(settings)
    try:
        require_session(data.calendar, day)
    except NotASession as error:
        raise CliProblem(f"{error.message} [{error.code}]") from None
    tools = MarketTools(data, day, frozenset(SHOWN))

    async def ask(name: str) -> TickerAnswer:
        try:
            return TickerAnswer(tool=name, result=await tools.call(name, {"ticker": ticker}))
        except MarketError as error:
            return TickerAnswer(tool=name, code=error.code, message=error.message)

    return day, await asyncio.gather(*(ask(name) for name in SHOWN))


def _no_such_ticker(ticker: str, answer: TickerAnswer, settings: Settings) -> CliProblem:
    near = nearest(ticker, tickers_of(settings))
    return CliProblem(f"{answer.message}{did_you_mean(near)} [{answer.code}]")


def _odd(answers: Sequence[TickerAnswer]) -> Sequence[str]:
    """The oddities of the prices, each sentence once."""
    notes = (note for answer in answers if answer.result for note in answer.result.get(ODD, ()))
    return list(dict.fromkeys(notes))


def _with_source(answer: TickerAnswer, prices: str) -> RenderableType:
    """The answer, and who gave it where that is not the source of `prices` alone."""
    drawn = _render(answer)
    source = prices if answer.result is None else answer.result["source"].removesuffix(MADE_UP)
    return drawn if source == prices else Group(Text(f"from {source}", style="dim"), drawn)


def _render(answer: TickerAnswer) -> RenderableType:
    if answer.result is None:
        return Text(f"{answer.message} [{answer.code}]", style="yellow")
    return market_answers.answer(answer.tool, answer.result)


# --- record -------------------------------------------------------------------------------------


@app.command()
def record(
    directory: Annotated[Path, typer.Argument(help="A folder: new, or one recorded before.")],
    universe: UniverseOption = None,
    since: Annotated[
        datetime | None,
        typer.Option(
            "--from",
            formats=["%Y-%m-%d"],
            help=f"The first day of prices; by default {YEARS_DEFAULT} years ago.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Record live data of the newest session as a directory for DESKBUS_MARKET_REPLAY_DIR.

    Prices since --from come from Yahoo, or from Alpaca if DESKBUS_MARKET_SOURCE says so. All other
    data is the source's current data, with the time it became known. Run it every evening on the
    same folder to build a history for point-in-time replay. An interrupted run continues where it
    stopped. Headlines come from Alpaca if DESKBUS_MARKET_HEADLINES says so; filings, and figures by
    filing, from EDGAR if DESKBUS_MARKET_EVENTS or DESKBUS_MARKET_FUNDAMENTALS says so. Exit 1 if a
    ticker has no prices or a page fails.
    """
    settings = load_settings()
    source = source_of(settings)
    if source is not SourceName.ALPACA:
        source = SourceName.YAHOO
    settings = settings.changed(market={"source": source})
    names = [name for part in universe or () for name in named(part)]
    aside(TERMS[source])
    rows = asking(_record(settings, directory, names, since.date() if since else None, json=json))
    failed = [_missing(row) for row in rows if row.failure is not None or not row.is_final]
    if not rows:
        aside("nothing new: every ticker of this session is recorded")
    if failed:
        shown = ", ".join(failed[:10])
        raise CliProblem(
            f"{len(failed)} of {len(rows)} were not recorded, or only in part: {shown}",
            "run the same command again to retry those without an answer",
        )


async def _record(
    settings: Settings, directory: Path, names: Sequence[str], since: date | None, *, json: bool
) -> Sequence[TickerRecording]:
    done = total = 0

    def begin(count: int) -> None:
        nonlocal total
        total = count

    def tell(recorded: TickerRecording) -> None:
        nonlocal done
        if "all" not in recorded.absent:  # those of an earlier run are no work of this one
            done += 1
            progress.counts(done, total, f"{recorded.ticker} recorded")
        if json:
            emit([recorded])
        else:
            _line(recorded)

    source = FROM_ALPACA if source_of(settings) is SourceName.ALPACA else FROM_YAHOO

    def pause(wait_s: float) -> None:
        text = f"{source.said} reports too many requests; waiting {amounts.duration(wait_s)}"
        aside(text, "yellow")

    used = {kind for kind in CAN[PartName.EDGAR] if chosen(settings, kind) is PartName.EDGAR}
    edgar = edgar_of(settings) if used else None
    if edgar is not None:
        edgar.require_contact()
    is_alpaca = source is FROM_ALPACA
    has_alpaca = is_alpaca or chosen(settings, DataKind.HEADLINES) is SourceName.ALPACA
    if has_alpaca:
        alpaca_feed_of(settings).require_keys()
    recorder = Recorder(
        alpaca_of(settings) if is_alpaca else yahoo_of(settings),
        directory,
        source=source,
        headlines=alpaca_of(settings) if has_alpaca else None,
        edgar=edgar,
        figures_of_edgar=DataKind.FUNDAMENTALS in used,
        tell=tell,
        pause=pause,
        begin=begin,
    )
    with CycleProgress(err(), _continued_by_itself, live=False) as progress:
        return await recorder.run(names or None, since)


def _continued_by_itself(_cycle: str) -> str:
    return "stopped; run the same command to continue without repeating requests"


def _missing(recorded: TickerRecording) -> str:
    """A ticker, and which pages of it are missing where it is not all."""
    return (
        recorded.ticker
        if recorded.failure
        else f"{recorded.ticker} without {', '.join(recorded.absent)}"
    )


def _line(recorded: TickerRecording) -> None:
    if recorded.failure is not None:
        put(f"✗ {recorded.ticker:<10} {recorded.failure}", "red")
        return
    parts = [f"{count} {kind}" for kind, count in recorded.rows.items() if kind != "sectors"]
    parts += [f"no {kind} ({why})" for kind, why in recorded.absent.items()]
    span = (
        f"{recorded.sessions:,} sessions {recorded.first} to {recorded.last}"
        if recorded.sessions
        else ""
    )
    mark = "✓" if recorded.is_final else "~"
    put(f"{mark} {recorded.ticker:<10} {', '.join(filter(None, [span, *parts]))}")
