"""`deskbus logs`: the log of the desk, of all services or of one, and of its servers."""

import json as json_
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from contracts.subjects.subject import BACKBONE, SERVICES
from libs.runtime.nearest import did_you_mean, nearest
from libs.runtime.settings import Settings
from services.cli.desk.background import log_path
from services.cli.shell.options import group
from services.cli.shell.problem import NoSuchThing, WrongUsage
from services.cli.shell.running import SERVERS, load_settings
from services.cli.shell.terminal import aside, out, painter

READ_BYTES_MAX = 4 * 1024 * 1024
"""Of the end of each log, for the first lines that are shown."""
LINES_MAX = 10_000
FOLLOW_EVERY_S = 0.2
OWN_FIELDS = frozenset({"timestamp", "level", "service", "event", "exception"})
LEVEL_STYLES = {"error": "bold red", "critical": "bold red", "warning": "yellow", "debug": "dim"}
_PROCESS = re.compile(r"(?P<service>[a-z_]+)-\d+\.log")

app = group()


@dataclass(frozen=True)
class LogLine:
    """One line of a log; `fields` are None where it is no event, as of a server."""

    text: str
    fields: Mapping[str, Any] | None = None

    @property
    def at(self) -> str:
        """The time, as a text that sorts; empty where the line has none."""
        return str(self.fields.get("timestamp", "")) if self.fields else ""

    def is_of(self, service: str | None) -> bool:
        """Whether it is a line of this service; any is where none is named."""
        return service is None or (self.fields or {}).get("service") == service


@dataclass
class LogReader:
    """Reads what is appended to a log, also after a new one was begun in its place."""

    path: Path
    _position: int = 0
    _inode: int = 0
    _partial: bytes = field(default=b"")

    def read(self) -> Sequence[LogLine]:
        """The whole lines since the last call; at the first call those of the end of the log."""
        try:
            with self.path.open("rb") as file:
                return self._appended(file)
        except OSError:
            return ()

    def _appended(self, file: BinaryIO) -> Sequence[LogLine]:
        state = os.fstat(file.fileno())
        is_first = not self._inode
        if state.st_ino != self._inode or state.st_size < self._position:
            self._inode, self._position, self._partial = state.st_ino, 0, b""
        if is_first:
            self._position = max(0, state.st_size - READ_BYTES_MAX)
        file.seek(self._position)
        body = self._partial + file.read(READ_BYTES_MAX)
        self._position = file.tell()
        *whole, self._partial = body.split(b"\n")
        if is_first and state.st_size > READ_BYTES_MAX:
            del whole[:1]  # its beginning was not read
        return [_line(text.decode(errors="replace")) for text in whole if text.strip()]


@app.command()
def logs(
    service: Annotated[
        str | None,
        typer.Argument(help="Only this service, e.g. risk, or this server: nats, postgres."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new lines until Ctrl-C.")
    ] = False,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, max=LINES_MAX, help="How many lines to show.")
    ] = 50,
    json: Annotated[
        bool, typer.Option("--json", help="Print the lines as they are in the log.")
    ] = False,
) -> None:
    """Show the end of the desk's log, and follow it with -f.

    The desk writes a log file after `deskbus up --detach`, and after `deskbus up` on a terminal.
    With `--processes` each service has its own log; this command shows all of them in order of
    time.
    """
    settings = load_settings()
    readers = [LogReader(path) for path in _paths(settings, service)]
    wanted = None if service in SERVERS else service
    seen = [line for reader in readers for line in reader.read() if line.is_of(wanted)]
    if len(readers) > 1:
        seen.sort(key=lambda line: line.at)
    if not seen and not follow:
        aside(f"nothing in the log yet: {readers[0].path}")
    _print(seen[len(seen) - min(lines, len(seen)) :], json=json)
    while follow:
        time.sleep(FOLLOW_EVERY_S)
        _print(_new(readers, wanted), json=json)


def _new(readers: Sequence[LogReader], service: str | None) -> Iterator[LogLine]:
    return (line for reader in readers for line in reader.read() if line.is_of(service))


def _paths(settings: Settings, service: str | None) -> Sequence[Path]:
    """The logs to read. Raises `CliProblem` where there is no such service, or no log."""
    known = (*BACKBONE, *SERVICES, *SERVERS)
    if service is not None and service not in known:
        raise WrongUsage(
            f"unknown service {service!r}{did_you_mean(nearest(service, known))}",
            f"the services are {', '.join(known)}",
        )
    main = log_path(settings)
    folder = main.parent
    if service in SERVERS:
        paths = [folder / f"{service}.log"]
    else:
        own = [path for path in sorted(folder.glob("*.log")) if _is_of_process(path, service)]
        paths = [main, *own]
    there = [path for path in paths if path.exists()]
    if not there:
        named = f" {service}" if service else ""
        raise NoSuchThing(
            f"there is no log yet ({paths[0]})",
            "`deskbus up --detach` writes one; if standard error is not a terminal, `deskbus up` "
            f"logs there. In containers: `docker compose logs{named}`",
        )
    return there


def _is_of_process(path: Path, service: str | None) -> bool:
    match = _PROCESS.fullmatch(path.name)
    return match is not None and (match["service"] == service or service is None)


def _line(text: str) -> LogLine:
    if text.startswith("{"):
        try:
            fields = json_.loads(text)
        except ValueError:
            return LogLine(text)
        if isinstance(fields, dict):
            return LogLine(text, fields)
    return LogLine(text)


def _print(lines: Iterable[LogLine], *, json: bool) -> None:
    paint = painter(out())
    texts = [line.text if json else _shown(line, paint) for line in lines]
    if texts:
        sys.stdout.write("".join(f"{text}\n" for text in texts))
        sys.stdout.flush()


def _shown(line: LogLine, paint: Callable[[str, str], str]) -> str:
    """A line for people: the time here, the service, the event and its fields."""
    if line.fields is None:
        return line.text
    fields = line.fields
    level = str(fields.get("level", ""))
    style = LEVEL_STYLES.get(level, "")
    event = str(fields.get("event", ""))
    words = [f"{name}={value}" for name, value in fields.items() if name not in OWN_FIELDS]
    head = f"{_time(line.at)} {fields.get('service', '')!s:<17} "
    text = paint(head, "dim") + (paint(event, style) if style else event)
    exception = fields.get("exception")
    return " ".join([text, *words]) + (f"\n{exception}" if exception else "")


def _time(timestamp: str) -> str:
    try:
        return f"{datetime.fromisoformat(timestamp).astimezone():%m-%d %H:%M:%S}"
    except ValueError:
        return timestamp
