"""Fill a virtual environment from a lock, showing how far it is: `make` runs this.

    python deploy/environment.py .venv requirements.lock [--editable]

uv does it where it is found (five to ten times faster); else, or where uv cannot, pip. Both check
every package against the lock's hashes. On a terminal one line says what is being fetched, how much
of it there is, and about how long it takes; elsewhere, as in CI, a line is printed at every fourth
part. Needs nothing but Python itself.
"""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LOCKED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(\[[^\]]*\])?==", re.MULTILINE)
COLLECTED = re.compile(r"^(?:Collecting|Requirement already satisfied:) ([A-Za-z0-9._-]+)")
FETCHED = re.compile(
    r"^\s*(?:Downloading|Using cached) \S+ \((?P<size>[\d.]+) ?(?P<unit>[kMG]?B)\)"
)
UNITS_MB = {"B": 1e-6, "kB": 1e-3, "MB": 1.0, "GB": 1e3}
INSTALLING = "Installing collected packages"
FETCH_PART = 0.6
"""The part of the whole time that fetching takes, as a rule; the rest is unpacking."""
ETA_FROM = 0.05
"""Before this part is done nobody knows how long the rest takes."""
BAR_WIDTH = 20
TICK_S = 0.5
QUIET_PARTS = 4
LINES_KEPT_MAX = 40


@dataclass
class Install:
    """How far pip is with a lock: told of its lines, and of how many packages are unpacked."""

    total: int
    collected: set[str] = field(default_factory=set)
    megabytes: float = 0.0
    name: str = ""
    unpacking: bool = False
    unpacked: int = 0
    lines: list[str] = field(default_factory=list)

    def heard(self, line: str) -> None:
        """A line of pip's."""
        self.lines = [*self.lines[-LINES_KEPT_MAX:], line.rstrip()]
        if match := COLLECTED.match(line):
            self.name = match[1]
            self.collected.add(self.name.lower())
        elif match := FETCHED.match(line):
            self.megabytes += float(match["size"]) * UNITS_MB[match["unit"]]
        elif line.startswith(INSTALLING):
            self.unpacking = True

    @property
    def part(self) -> float:
        """The part of the work that is done, 0 to 1."""
        if not self.total:
            return 1.0
        fetched = min(len(self.collected) / self.total, 1.0)
        unpacked = min(self.unpacked / self.total, 1.0) if self.unpacking else 0.0
        return FETCH_PART * (1.0 if self.unpacking else fetched) + (1 - FETCH_PART) * unpacked

    def line(self, elapsed_s: float) -> str:
        """The state in one line: the part that is done, of what, and for how long."""
        done = int(self.part * BAR_WIDTH)
        bar = "#" * done + "-" * (BAR_WIDTH - done)
        what = f"unpacking {self.total} packages" if self.unpacking else f"fetching {self.name}"
        size = f", {self.megabytes:.0f} MB" if self.megabytes >= 1 else ""
        return (
            f"  [{bar}] {self.part:4.0%}  {what}{size}  {clock(elapsed_s)}{self._left(elapsed_s)}"
        )

    def _left(self, elapsed_s: float) -> str:
        if self.part < ETA_FROM or self.part >= 1:
            return ""
        return f", about {clock(elapsed_s / self.part - elapsed_s)} left"


def clock(seconds: float) -> str:
    """`1:05`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def main(words: Sequence[str]) -> int:
    """Make the environment and fill it; the exit code."""
    folder, lock = Path(words[0]), Path(words[1])
    total = len(LOCKED.findall(lock.read_text()))
    if not (folder / "bin" / "python").exists():
        say(f"1/3 making a Python environment in {folder}")
        made = subprocess.run([sys.executable, "-m", "venv", str(folder)], check=False)  # noqa: S603
        if made.returncode:
            return made.returncode
    say(f"2/3 installing {total} packages of {lock.name}, each checked by its hash")
    began = time.monotonic()
    code = fill(folder, ["--require-hashes", "--requirement", str(lock)], total)
    if not code and "--editable" in words[2:]:
        code = fill(folder, ["--no-deps", "--no-build-isolation", "--editable", "."], 0)
    if not code:
        say(f"3/3 installed in {clock(time.monotonic() - began)}; all of it is in {folder}")
    return code


def say(text: str) -> None:
    """A line of our own."""
    print(f"deskbus: {text}", flush=True)


def fill(folder: Path, what: Sequence[str], total: int) -> int:
    """Install by uv, else by pip; the exit code."""
    uv = shutil.which("uv")
    python = folder / "bin" / "python"
    if uv is not None:
        quiet = [] if total and sys.stdout.isatty() else ["--quiet"]
        command = [uv, "pip", "install", "--python", str(python), *quiet, *what]
        if subprocess.run(command, check=False).returncode == 0:  # noqa: S603 - what the user has
            return 0
        say("uv could not; trying pip")
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--progress-bar=off"]
    return piped([*pip, *what], Install(total), lambda: installed_in(folder))


def installed_in(folder: Path) -> int:
    """How many packages the environment has."""
    return sum(1 for _ in folder.glob("lib/python3*/site-packages/*.dist-info"))


def piped(command: Sequence[str], state: Install, count: Callable[[], int]) -> int:
    """Run pip and show how far it is; its last lines only where it fails."""
    before, began = count(), time.monotonic()
    show = Terminal() if sys.stdout.isatty() else QuietInstall()
    with subprocess.Popen(  # noqa: S603 - pip of the environment that is filled
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as child:
        output = child.stdout
        if output is None:
            raise RuntimeError("a pipe was asked for")
        reading = threading.Thread(target=lambda: [state.heard(line) for line in output])
        reading.start()
        while reading.is_alive():
            reading.join(TICK_S)
            if state.unpacking:
                state.unpacked = count() - before
            show.now(state, time.monotonic() - began)
    show.end()
    if child.returncode:
        print("\n".join(state.lines), file=sys.stderr)
    return child.returncode


class Terminal:
    """One line that changes."""

    def now(self, state: Install, elapsed_s: float) -> None:
        """Show the state."""
        if state.total:
            columns = shutil.get_terminal_size().columns - 1
            print(f"\r\x1b[2K{state.line(elapsed_s)[:columns]}", end="", flush=True)

    def end(self) -> None:
        """Take the line away."""
        print("\r\x1b[2K", end="", flush=True)


class QuietInstall:
    """A line at every fourth part: a log need not hold more."""

    def __init__(self) -> None:
        self._told = 0

    def now(self, state: Install, elapsed_s: float) -> None:
        """Print the state where another part is done."""
        reached = int(state.part * QUIET_PARTS)
        if state.total and self._told < reached < QUIET_PARTS:
            self._told = reached
            print(state.line(elapsed_s), flush=True)

    def end(self) -> None:
        """Nothing is left to take away."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
