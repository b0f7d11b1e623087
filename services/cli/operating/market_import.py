"""`deskbus market import`: files of prices as vendors write them, into the desk's own folder."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from pydantic import BaseModel

from contracts.types import spelled
from libs.facts import amounts
from libs.files.dates import months_first, year_last
from libs.files.finding import BadFile
from libs.files.numbers import CURRENCIES
from libs.market.calendar import exchange_calendar
from libs.market.choice import SourceName, source_of
from libs.market.errors import BadReplayData
from libs.market.imports.folder import (
    DIFFERING_NAMED_MAX,
    Change,
    Folder,
    TradingPlace,
    change_of,
    labels_for,
    open_folder,
    write,
    write_prices,
)
from libs.market.imports.series import (
    BY_NAME,
    ImportedSeries,
    ImportForm,
    files_in,
    is_ticker,
    series_in,
)
from libs.market.listed_calendars import known_calendar
from libs.market.replay.files import FilePrices
from libs.market.replay.formats import ADJUSTED, LEAN, SPLITS, SPLITS_AND_DIVIDENDS, VENDORS
from libs.market.replay.layout import TICKERS_MAX
from libs.market.symbols import HUNDREDTHS, currency, venue_of
from libs.report import view
from libs.report.view import Column
from libs.runtime.errors import few
from libs.runtime.settings import Settings
from services.cli.render.described import show
from services.cli.shell.invalid import pairs_of, writing
from services.cli.shell.options import DateOrder, DecimalMark, JsonOption
from services.cli.shell.problem import CliProblem, WrongUsage
from services.cli.shell.questions import CommandQuestions, is_confirmed
from services.cli.shell.running import find_desk, load_settings
from services.cli.shell.terminal import aside, emit

DEFAULT_FOLDER = Path("data")
SETTINGS_FILE = Path("deskbus.toml")
COLUMNS = frozenset(
    {"date", "open", "high", "low", "close", "volume", "dividend", "split_factor", "ticker"}
)
NOTES_MAX = 12
NOTHING_WRITTEN = "nothing was written"
NAMED_MAX = 5
"""Tickers that a note names."""
COST = (
    "a stop or limit of that day had another price, and dividends included in prices are not paid "
    "in cash"
)
Vendor = StrEnum("Vendor", {name: name for name in VENDORS})  # type: ignore[misc]


class Adjusted(StrEnum):
    """The later events that prices are adjusted for."""

    NONE = "none"
    SPLITS = "splits"
    ALL = "all"


ADJUSTED_FOR = {Adjusted.NONE: "", Adjusted.SPLITS: SPLITS, Adjusted.ALL: SPLITS_AND_DIVIDENDS}


class ImportedRow(BaseModel):
    """One ticker: what was read, what is assumed of it, and what came of its file."""

    ticker: str
    file: str
    form: str
    is_tried: bool
    rows: int
    first: date
    last: date
    exchange: str
    currency: str
    place_from: str
    adjusted: str
    added: int
    differing: tuple[str, ...]
    into: str
    written: bool


@dataclass
class _Read:
    """A ticker that can be imported."""

    series: ImportedSeries
    ticker: str
    place: TradingPlace
    change: Change
    days: Sequence[date]


@dataclass
class _Answers:
    """The answers that options give."""

    ticker: str | None
    adjusted: Adjusted | None
    exchange: str | None
    currency: str | None


@dataclass
class _Import:
    """An import: what could be read, and why the rest could not."""

    folder: Folder
    answers: _Answers
    questions: CommandQuestions = field(default_factory=CommandQuestions)
    reads: list[_Read] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    nameless: list[Path] = field(default_factory=list)
    """Files whose ticker nobody could be asked for."""
    is_of_suffixes: bool = False
    """Whether the option's currency is for tickers with a suffix alone."""


def import_files(
    files: Annotated[
        list[Path],
        typer.Argument(help="Files of daily prices, or folders of them (also Lean's data folder)."),
    ],
    vendor: Annotated[
        Vendor | None,
        typer.Option("--from", help="The program that wrote them, if the headings do not show it."),
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder to write to; by default the one in the settings, or ./data."
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Headings of the desk's columns: date=Date,close=Close/Last."),
    ] = None,
    ticker: Annotated[
        str | None, typer.Option(help="The ticker, if the file does not have it.")
    ] = None,
    adjusted: Annotated[
        Adjusted | None,
        typer.Option(help="What prices are adjusted for, if the file does not say."),
    ] = None,
    exchange: Annotated[
        str | None,
        typer.Option(help="Exchange (ISO 10383) of tickers without a suffix; XNYS by default."),
    ] = None,
    money: Annotated[
        str | None,
        typer.Option(
            "--currency",
            help="Currency of tickers without a suffix; GBX for prices in pence.",
        ),
    ] = None,
    dates: Annotated[
        DateOrder | None, typer.Option(help="How to read dates such as 03/04/2024.")
    ] = None,
    decimal: Annotated[
        DecimalMark | None,
        typer.Option(help="The decimal mark, if numbers such as 1,234 are ambiguous."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Write without asking.")] = False,
    json: JsonOption = False,
) -> None:
    """Import price files into the desk's folder: shows them first, then writes them.

    It reads yfinance (`download()` and `history()`, CSV and Parquet), Yahoo's CSV, Stooq,
    Nasdaq.com, Investing.com, Alpha Vantage, Tiingo, Lean's data folder, and any file whose columns
    you name. It keeps existing rows. It lists rows with other values and replaces them only if you
    agree. Exit 1 if a file cannot be used.
    """
    settings = load_settings()
    where = target or settings.market.replay_dir or DEFAULT_FOLDER
    is_first = target is None and settings.market.replay_dir is None
    order = None if dates is None else dates is DateOrder.MONTH_FIRST
    wanted = ImportForm(
        vendor.value if vendor else None,
        pairs_of("--columns date=Date,close=Close/Last", columns.split(","), COLUMNS)
        if columns is not None
        else None,
        order,
        None if decimal is None else decimal is DecimalMark.COMMA,
    )
    money = currency(money) if money else None
    with _whole():
        work = _Import(open_folder(where), _Answers(ticker, adjusted, exchange, money))
    _read_all(work, files, wanted)
    work.questions.settle(_again())
    if not work.reads:
        raise CliProblem(_first(work.refused), NOTHING_WRITTEN)
    with _whole():
        labels = dict(labels_for(work.folder, {read.ticker: read.place for read in work.reads}))
    if is_first and not SETTINGS_FILE.exists():
        labels[SETTINGS_FILE] = (
            "# Every command in this folder reads these prices.\n"
            f'[market]\nreplay_dir = "{where}"\n'
        )
    if not json:
        _preview(work, labels, where)
    is_there = not labels and all(read.change.is_nothing for read in work.reads)
    is_done = yes or is_there or (not json and is_confirmed("Write this?"))
    if is_done:
        _write(work, labels)
    if json:
        emit([_row(read, is_done=is_done) for read in work.reads])
    _end(work, settings, where, is_done=is_done, is_set=SETTINGS_FILE in labels)


@contextmanager
def _whole() -> Iterator[None]:
    """Raises `CliProblem` where the folder cannot be used."""
    try:
        yield
    except (BadReplayData, BadFile) as error:
        raise CliProblem(error.message, NOTHING_WRITTEN) from error


def _read_all(work: _Import, files: Sequence[Path], wanted: ImportForm) -> None:
    series: list[ImportedSeries] = []
    for file in files:
        try:
            for path in files_in(file):
                try:
                    series += series_in(path, wanted)
                except BadFile as error:
                    work.refused.append(_in_place(error))
        except (BadFile, BadReplayData) as error:
            work.refused.append(error.message)
    nameless = [one for one in series if not one.ticker]
    if work.answers.ticker and not nameless:
        # Only then it is for a file whose name says another one.
        series = [replace(one, ticker="") if one.source == BY_NAME else one for one in series]
        nameless = [one for one in series if not one.ticker]
    if len(series) > TICKERS_MAX:
        raise CliProblem(f"more than {TICKERS_MAX:,} tickers, the limit")
    if work.answers.ticker and len(nameless) > 1:
        raise _several([one.path for one in nameless])
    tickers = [one.ticker or spelled(work.answers.ticker or "") for one in series]
    work.is_of_suffixes = _is_of_suffixes(work.answers, tickers)
    for one in series:
        _read(work, one)
    if len(work.nameless) > 1:
        raise _several(work.nameless)


def _several(files: Sequence[Path]) -> WrongUsage:
    """No one option can name the tickers of these files."""
    names = few([path.name for path in files], most=NAMED_MAX)
    return WrongUsage(
        f"which ticker does each of {names} hold? --ticker is for one file",
        "import each with a command of its own: "
        f"deskbus market import {shlex.quote(str(files[0]))} --ticker TICKER",
    )


def _in_place(error: BadFile) -> str:
    """The fault, with the options that may settle it."""
    text = error.message
    if "could be a day and a month" in text:
        text += ", or use --dates day-first or month-first"
    if "be a decimal mark" in text:
        text += ", or use --decimal comma or --decimal point"
    if "no column" in error.finding.what or "unknown column" in error.finding.what:
        text += ", or name the columns: --columns date=...,close=..."
    return text


def _read(work: _Import, series: ImportedSeries) -> None:
    ask, name = work.questions.ask, series.path.name
    ticker = series.ticker
    if not ticker:
        typed = work.answers.ticker or ask(f"which ticker does {name} hold?", "--ticker TICKER")
        if typed is None:
            work.nameless.append(series.path)
            _adjusted(work, series)
            return
        ticker = spelled(typed)
    if not is_ticker(ticker):
        work.refused.append(
            f"{name}: {ticker} is not a share that the desk can hold; it is left out"
        )
        return
    if any(read.ticker == ticker for read in work.reads):
        work.refused.append(f"{name}: {ticker} appears twice; keep one of the two")
        return
    adjusted = _adjusted(work, series)
    place = _place(work, ticker)
    if adjusted is None or place is None:
        return
    try:
        calendar = known_calendar(place.exchange) or exchange_calendar(place.exchange)
        prices = series.prices(calendar)
        if ADJUSTED not in series.opened.table.frame.columns:
            prices = replace(prices, form=replace(prices.form, adjusted=adjusted))
        change = change_of(work.folder, ticker, prices)
    except BadFile as error:
        work.refused.append(f"{ticker}: {_in_place(error)}")
        return
    if why := _other_currency(prices.signs, place):
        work.refused.append(f"{ticker}: {why}")
        return
    days = prices.frame["date"]
    series = replace(series, notes=[*series.notes, *_read_notes(series, prices)])
    series = replace(series, opened=replace(series.opened, form=prices.form))
    work.reads.append(_Read(series, ticker, place, change, days.to_list()))


def _other_currency(signs: frozenset[str], place: TradingPlace) -> str:
    """Why the signs beside prices are not of the place's currency; "" where they are."""
    for sign in sorted(signs):
        if place.currency not in CURRENCIES[sign]:
            return (
                f"its prices have the sign {sign}, which is not {place.currency} ({place.source}): "
                "use --currency and --exchange, or write the ticker with its suffix"
            )
    return ""


def _read_notes(series: ImportedSeries, prices: FilePrices) -> Sequence[str]:
    """Notes on how a file was read."""
    notes, frame = [], series.opened.table.frame
    if prices.empty:
        notes.append(f"{amounts.count(prices.empty, 'row')} without prices left out")
    if prices.without_volume:
        notes.append(f"{amounts.count(prices.without_volume, 'row')} without a volume: read as 0")
    days = frame["date"].drop_nulls().to_list() if frame["date"].dtype == pl.String else []
    if example := year_last(days):
        order = months_first(days)
        order = prices.form.month_first if order is None else order
        notes.append(f"dates such as {example} are read {'month' if order else 'day'} first")
    columns = {name.partition("@")[0] for name in frame.columns}
    absent = [
        word
        for name, word in (("dividend", "dividends"), ("split_factor", "splits"))
        if name not in columns
    ]
    if absent and not prices.form.adjusted and prices.form.vendor != LEAN.vendor:
        none = " and ".join(f"no {word}" for word in absent)
        notes.append(f"{none} are available: the file has no column for them")
    return notes


def _adjusted(work: _Import, series: ImportedSeries) -> str | None:
    """The later events that prices are adjusted for, by the option, else by their form; None where
    it has to be asked for."""
    if work.answers.adjusted is None and series.opened.says_adjusted:
        return series.opened.form.adjusted
    if work.answers.adjusted is None:
        question = f"what are the prices of {series.path.name} adjusted for? none: as traded"
        typed = work.questions.ask(question, "--adjusted", [*Adjusted])
        if typed is None:
            return None
        work.answers.adjusted = Adjusted(typed)
    return ADJUSTED_FOR[work.answers.adjusted]


def _place(work: _Import, ticker: str) -> TradingPlace | None:
    """Where a ticker trades, and in which currency; None where that has to be asked for."""
    place, answers = work.folder.place_of(ticker), work.answers
    suffix = ticker.rpartition(".")[2]
    if venue_of(ticker) is not None:
        if place.currency:
            return place
        choices = HUNDREDTHS[suffix]
        typed = answers.currency if answers.currency in choices else None
        typed = typed or work.questions.ask(
            f"in which currency are the prices of {ticker}? {choices[0]} are hundredths",
            "--currency",
            choices,
        )
        return None if typed is None else replace(place, currency=typed, source="--currency")
    money = None if work.is_of_suffixes else answers.currency
    if answers.exchange or money:
        exchange = answers.exchange or place.exchange
        return TradingPlace(exchange, money or place.currency, "your options")
    if "." in ticker and len(suffix) > 1 and ticker not in work.folder.listed:
        ask = work.questions.ask
        where = ask(f"where does {ticker} trade? its suffix is unknown", "--exchange MIC")
        typed = ask(f"in which currency are the prices of {ticker}?", "--currency CODE")
        return TradingPlace(where, currency(typed), "your answers") if where and typed else None
    return place


def _is_of_suffixes(answers: _Answers, tickers: Sequence[str]) -> bool:
    """Whether the option's currency is for tickers with a suffix whose prices may be in hundredths,
    and so not for those without a suffix, unless the option names the same exchange for these."""
    venues = [
        venue_of(ticker)
        for ticker in tickers
        if answers.currency in HUNDREDTHS.get(ticker.rpartition(".")[2], ())
    ]
    exchanges = {venue.exchange for venue in venues if venue is not None}
    return bool(exchanges) and answers.exchange not in exchanges


# --- showing and writing ------------------------------------------------------------------------


def _row(read: _Read, *, is_done: bool) -> ImportedRow:
    form, change = read.series.opened.form, read.change
    return ImportedRow(
        ticker=read.ticker,
        file=read.series.path.name,
        form=form.name,
        is_tried=form.is_tried,
        rows=len(read.days),
        first=read.days[0],
        last=read.days[-1],
        exchange=read.place.exchange,
        currency=read.place.currency,
        place_from=read.place.source,
        adjusted=change.adjusted,
        added=change.added,
        differing=tuple(change.differing),
        into=str(change.path),
        written=is_done and not change.is_nothing,
    )


def _preview(work: _Import, labels: dict[Path, str], where: Path) -> None:
    table = view.table(
        (
            "Ticker",
            "Rows",
            "First",
            "Last",
            "Trades at",
            "Prices",
            "Folder",
            Column("Read as", wraps=True),
        ),
        (
            (
                read.ticker,
                view.count(len(read.days)),
                read.days[0].isoformat(),
                read.days[-1].isoformat(),
                f"{read.place.exchange} {read.place.currency}",
                "adjusted" if read.change.adjusted else "as traded",
                _effect(read.change),
                read.series.opened.form.name,
            )
            for read in work.reads
        ),
    )
    show((), [table], json=False)
    for note in _notes(work, labels, where):
        aside(f"- {note}", "yellow")
    for text in work.refused[:NOTES_MAX]:
        aside(f"✗ {text}", "red")
    if len(work.refused) > NOTES_MAX:
        aside(f"✗ and {len(work.refused) - NOTES_MAX} more", "red")


def _effect(change: Change) -> str:
    if change.is_new:
        return "new"
    if change.is_nothing:
        return "nothing new"
    parts = [f"+{change.added:,}"] if change.added else []
    if change.differing:
        parts.append(f"{len(change.differing):,} differ")
    return ", ".join(parts)


def _notes(work: _Import, labels: dict[Path, str], where: Path) -> Sequence[str]:
    """Sentences on what is assumed, and what it costs, each once."""
    notes: list[str] = []
    alike: dict[str, list[str]] = {}
    for read in work.reads:
        form = read.series.opened.form
        if form.adjusted:
            notes.append(f"{form.caveat}; {COST}")
        if form.vendor and not form.is_tried:
            notes.append(f"the form of {form.name} is untested: built from public documentation")
        if read.place.source == "assumed":
            notes.append(
                f"assumed for tickers without a suffix: {read.place.exchange}, "
                f"{read.place.currency} (change with --exchange and --currency)"
            )
        if read.series.opened.unused:
            notes.append(f"not read: {', '.join(read.series.opened.unused)[:100]}")
        for note in read.series.notes:
            alike.setdefault(note, []).append(read.ticker)
        named = read.change.differing[:DIFFERING_NAMED_MAX]
        more = len(read.change.differing) - len(named)
        if named:
            text = "; ".join(named) + (f" and {more:,} more" if more else "")
            notes.append(f"{read.ticker}: past rows would be replaced: {text}")
    notes += [f"{few(tickers, most=NAMED_MAX)}: {note}" for note, tickers in alike.items()]
    nowhere = [read.ticker for read in work.reads if read.ticker not in work.folder.listed]
    if nowhere:
        notes.append(
            f"no sector is known for {few(nowhere, most=NAMED_MAX)}: "
            f"they count as one sector, `unknown`, until {where}/sectors.csv has theirs"
        )
    notes += [f"also written: {path}" for path in labels]
    return [*dict.fromkeys(notes)]


def _write(work: _Import, labels: dict[Path, str]) -> None:
    changes = [read.change for read in work.reads if not read.change.is_nothing]
    hint = "run the same command to continue; written files are complete"
    with writing(work.folder.path, hint):
        # Prices come after what says their currency and exchange: a running desk may look between.
        for path, text in labels.items():
            if path != SETTINGS_FILE:
                write(path, text)
        for change in changes:
            write_prices(change)
        if SETTINGS_FILE in labels:
            write(SETTINGS_FILE, labels[SETTINGS_FILE])


def _end(work: _Import, settings: Settings, where: Path, *, is_done: bool, is_set: bool) -> None:
    """Say what was done, and the next command. Raises `CliProblem` where a file could not be
    used."""
    if not is_done:
        aside("nothing is written yet; to write:")
        aside(f"  {_again(work.questions.options())} --yes", "")
    else:
        count = sum(not read.change.is_nothing for read in work.reads)
        done = f"{amounts.count(count, 'file')} written into {where}" if count else "nothing new"
        aside(f"✓ {done}", "green")
        if source_of(settings) is not SourceName.REPLAY:
            aside("this desk reads another source: set DESKBUS_MARKET_SOURCE=replay", "yellow")
        own = settings.market.replay_dir
        is_read = own is not None and own.resolve() == where.resolve()
        start = "" if is_set or is_read else f"DESKBUS_MARKET_REPLAY_DIR={shlex.quote(str(where))} "
        stop = _stop(settings)
        command = f"{stop}{start}deskbus up --detach"
        if stop and is_read:
            command = "deskbus cycle request --wait (the running desk reads changes within seconds)"
        aside(f"next: {command}")
    if work.refused:
        text = f"{amounts.count(len(work.refused), 'file or ticker')} left out: {work.refused[0]}"
        raise CliProblem(text, "the others are as shown")


def _stop(settings: Settings) -> str:
    """The command before `deskbus up` where a desk runs: it reads its settings when it starts."""
    try:
        find_desk(settings)
    except CliProblem:
        return ""
    return "deskbus down && "


def _first(refused: Sequence[str]) -> str:
    more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
    return (refused[0] if refused else "no prices") + more


def _again(answers: Sequence[str] = ()) -> str:
    """The command that was typed, with further options."""
    typed = (word for word in sys.argv[1:] if word != "--json")
    return shlex.join(["deskbus", *typed, *answers])
