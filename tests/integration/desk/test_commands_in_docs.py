"""The commands of the how-to pages run as they stand, on a real desk, and end well.

Each page has accounts of its own, so that none sees what another did. Ids, folders and files that
a page invents are those that its commands have made, or its reader would have.
"""

import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.site.sources import parts
from tests.docs_commands import DOCS, ShownCommand, in_blocks, options_of
from tests.fakes import warm_command
from tests.integration.desk.command_line import PATIENCE_S, CommandLine, Said, ended, up

pytestmark = pytest.mark.slow

ROOT = DOCS.parent
NOT_RUN: Sequence[tuple[str, str]] = (
    (r"up|down|open|run|mcp", "starts or stops a desk or a server"),
    (r".*--provider (?!rules)|doctor --call", "asks a model"),
    (r"account |orders |market record|.*--prices yahoo", "asks a broker or Yahoo"),
    (r"market show ACME", "needs a source that the page has its reader write"),
    (r"market import|portfolio import schwab", "needs a download of the reader's"),
    (r"notify ", "needs a channel"),
    (r"exit now .*--approval", "waits for a person"),
    (r"approvals approve \S+ --quantity GOOG", "needs the proposal of the page's agent"),
    (r"proposer (add|revoke)", "changes HTTP for every other page"),
    (r"cycle show --stage file", "needs a stage that the page has its reader write"),
    (r"dlq (show|retry|discard)", "needs a dead letter"),
    (r"db (restore|migrate)", "needs servers without a desk"),
    (r"study (run|status|stop|score |cells|report)|schedule replay", "takes a minute"),
    (r"agent |strategies |operations status", "a strategy takes half a minute"),
    (r".*--hash", "needs the hash that was shown before"),
)
"""How commands begin that are only read by the parser (test_commands_in_docs.py of
tests/architecture), and why. Other tests of this folder run them."""
ACCOUNTS = {"main", "mine", "growth", "lab", "bot"}
HALTS = ("halt", "resume")
"""Without an account these mean all of them."""
HELD = "portfolio import holdings.csv --as-of 2012-06-28 --cash 20000 --yes"
DECIDED = "cycle request --as-of 2012-06-29 --wait"
HOLDINGS = """ticker,quantity,cost,opened_on
AAPL,40,201.35,2010-03-01
MSFT,150,24.10,2009-06-15
"""
ASKED = "cycle request --as-of 2012-06-29 --approval"
BEFORE: Mapping[str, Sequence[str]] = {
    "exit-signals": [
        *(f"{HELD} --account {name}" for name in ("main", "mine")),
        f"{HELD} --account growth".replace("2012-06-28", "2012-10-31"),
    ],
    "performance": [DECIDED, f"{DECIDED} --account mine"],
    "report": [DECIDED, f"{DECIDED} --account lab"],
    "export": [DECIDED],
    "proposals": [f"{DECIDED} --account bot"],
    "risk": [f"{DECIDED} --account growth"],
}
"""What a page's reader has done before."""
JOBS = """
[schedule]
clock = "replay"
[schedule.jobs.decide]
kind = "decision"
when = "close+40m"
"""


def _is_run(shown: ShownCommand) -> bool:
    line = " ".join(shown.words)
    return not shown.variables and not any(re.match(begins, line) for begins, _ in NOT_RUN)


PAGES: Mapping[str, Sequence[ShownCommand]] = {
    name: [shown for shown in in_blocks(DOCS / f"{name}.md") if _is_run(shown)]
    for part in parts()
    if part.title == "How-to"
    for group in part.groups
    for _, name in group.entries
}


@dataclass
class Reader:
    """Somebody who types what one page shows, while a desk runs."""

    deskbus: CommandLine
    page: str
    cycle: str = ""
    waits: bool = False
    names: int = 0

    def types(self, words: Sequence[str]) -> None:
        """Run one command; it has to end well."""
        if words[:2] in (["approvals", "approve"], ["approvals", "reject"]):
            self._has_a_proposal()
        meant = [self._meant(word) for word in words]
        if meant[0] not in HALTS and "--account" in options_of(meant) and "--account" not in meant:
            meant += ["--account", self._meant("main")]
        said = self._run(meant)
        assert said.code == 0, f"deskbus {' '.join(meant)}\n{said.out}\n{said.err}"
        if words[:2] == ["cycle", "request"]:
            self.cycle, self.waits = self._newest(), "--approval" in words

    def _has_a_proposal(self) -> None:
        """A proposal waits: the page's own, or another, as each is answered once."""
        if not self.waits:
            self.types([*ASKED.split(), "--account", self._new_name()])
        until, self.waits = time.monotonic() + PATIENCE_S, False
        while self.cycle not in (waiting := self._run(["approvals", "list", "--json"]).out):
            assert time.monotonic() < until, waiting

    def _new_name(self) -> str:
        self.names += 1
        return f"{self.page}-{self.names}"

    def _newest(self) -> str:
        return self._run(["cycle", "list", "--limit", "1", "--json"]).rows[0]["cycle_id"]

    def _meant(self, word: str) -> str:
        if re.fullmatch(r"[0-9a-f]{8}|ID", word):
            return self.cycle
        if word == "DIR":
            return self._new_name()
        return f"{word}-{self.page}" if word in ACCOUNTS else word

    def _run(self, words: Sequence[str]) -> Said:
        folder, environment = self.deskbus.cwd, self.deskbus.environment
        done = warm_command.run(words, folder, environment, PATIENCE_S)
        return Said(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def deskbus(
    make_open_dir: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CommandLine]:
    """A desk that is up, in a folder with the files that the pages name."""
    folder = tmp_path_factory.mktemp("reader")
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copy(ROOT / "examples/decisions/weights.csv", folder / "decisions.csv")
    (folder / "holdings.csv").write_text(HOLDINGS)
    settings = (("DESKBUS_LIMITS", '{"exits_veto_buys": false}'),)
    command_line = CommandLine(make_open_dir() / "data", folder, settings)
    assert command_line("init .").code == 0
    (folder / "data").rename(folder / "my-data")
    (folder / "deskbus.toml").write_text(JOBS)
    with up(command_line) as (process, _):
        yield command_line
        ended(process, signal.SIGTERM)


@pytest.mark.parametrize("page", [name for name, shown in PAGES.items() if shown])
def test_the_commands_of_a_how_to_page_run(page: str, deskbus: CommandLine) -> None:
    reader = Reader(deskbus, page)
    for line in BEFORE.get(page, ()):
        reader.types(line.split())
    for shown in PAGES[page]:
        reader.types(shown.words)
    if any(shown.words[0] == "halt" for shown in PAGES[page]):
        reader.types(["resume"])  # for the pages that come
