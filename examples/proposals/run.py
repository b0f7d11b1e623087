"""A whole walk: an agent proposes, a rule cuts, a person approves, the next session fills.

    python examples/proposals/run.py [--yes] [FOLDER]

It makes a desk of its own in FOLDER (a new one by default), with the prices that come with Deskbus
up to 6 May 2010. You are asked before anything is ordered; --yes says yes. Then the next session's
prices arrive, and the order is filled at its open. docs/proposals.md says what is behind each step.
"""

import argparse
import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from libs.market.replay.layout import find_bundled

FIRST, SESSION, NEXT = "2008-01-02", "2010-05-06", "2010-05-07"
"""Between the first and the last no share was split, so prices as traded are all that is needed."""
SECTORS = {"AAPL": "Information Technology", "IBM": "Information Technology"}
AGENT = Path(__file__).with_name("agent.py")
PROPOSAL = "first"
ACCOUNT = "agent"
WAIT_S = 120.0
DESKBUS = (sys.executable, "-m", "services.cli")
COLUMNS = ("date", "open", "high", "low", "close", "volume")


def main() -> None:
    """The walk, with a line a step."""
    parser = argparse.ArgumentParser(description="An agent proposes, you approve.")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--yes", action="store_true", help="approve without asking")
    asked = parser.parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="deskbus-proposals-"))
    Walk(folder.resolve()).whole(is_approved=asked.yes)


class Walk:
    """A desk in a folder, and the commands that a person gives it."""

    def __init__(self, folder: Path) -> None:
        self.prices = folder / "prices"
        self.prices.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.environment = {
            **{name: value for name, value in os.environ.items() if "DESKBUS" not in name},
            "DESKBUS_DATA_DIR": str(folder / ".deskbus"),
            "DESKBUS_MARKET_REPLAY_DIR": str(self.prices),
        }

    def whole(self, *, is_approved: bool) -> None:
        """Every step, and the desk is stopped at the end whatever happens."""
        self.write_prices(SESSION)
        added = json.loads(
            self.deskbus("proposer", "add", "scripted", "--account", ACCOUNT, "--json")
        )
        self.environment["DESKBUS_MCP_PROPOSER_TOKEN"] = added["token"]
        self.deskbus("up", "--detach", "--no-http")
        try:
            cycle_id = self.proposed()
            if not is_approved and not _yes("Approve it? [y/N] "):
                self.deskbus("approvals", "reject", cycle_id, "--reason", "not today")
                say("You rejected it. Nothing is ordered.")
                return
            self.deskbus("approvals", "approve", cycle_id)
            self.seen("completed")
            say(f"You approved it. The order waits for the open of {NEXT}, whose prices come now.")
            self.write_prices(NEXT)
            self.filled()
        finally:
            self.deskbus("down")

    def proposed(self) -> str:
        """The agent proposes; the cycle that waits for a person."""
        said = self.agent("propose")
        cuts = said["preview"]["cuts"]
        say(f"The agent would buy. Rules of the desk cut it ({len(cuts)}):")
        for cut in cuts:
            say(f"  {cut['rule']}: {cut['reason']}")
        view = self.seen("awaiting_approval")
        say("What waits for you:")
        say(self.deskbus("approvals", "list"))
        return str(view["cycle_id"])

    def filled(self) -> None:
        """Bring the account to the next session, as a scheduled check of its exits would."""
        self.known(NEXT)
        request = ("cycle", "request", "--kind", "exit", "--account", ACCOUNT, "--as-of", NEXT)
        self.deskbus(*request, "--wait")
        orders = self.agent("look")["orders"]
        for order in orders:
            say(f"The agent sees: {order['side']} {order['ticker']} {order['status']}")
        say(self.deskbus("portfolio", ACCOUNT))
        if not any(order["status"] == "filled" for order in orders):
            raise SystemExit("nothing was filled")

    def known(self, session: str) -> None:
        """Until the desk has seen the new prices: it looks every few seconds."""
        request = ("cycle", "request", "--kind", "exit", "--account", "nobody", "--as-of", session)
        until = time.monotonic() + WAIT_S
        while "no_history" in self.tried([*DESKBUS, *request]).stderr:
            if time.monotonic() > until:
                raise SystemExit(f"the desk has not seen the prices of {session}")
            time.sleep(1)

    def seen(self, state: str) -> dict[str, Any]:
        """The proposal, once it is in this state or has this status."""
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            view = self.agent("look")
            if state in {view["state"], view["status"]}:
                return view
            if view["status"] != "running":
                raise SystemExit(f"the proposal is {view['status']}: {view['outcome']}")
            time.sleep(0.5)
        raise SystemExit(f"the proposal was not {state} within {WAIT_S:g} s")

    def write_prices(self, until: str) -> None:
        """The prices of two shares up to a session, in files as the desk reads them."""
        rows: dict[str, list[dict[str, str]]] = {ticker: [] for ticker in SECTORS}
        with gzip.open(find_bundled(), "rt", encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                bar = {name.lower(): value for name, value in row.items()}
                if bar["ticker"] in rows and FIRST <= bar["date"] <= until:
                    rows[bar["ticker"]].append(bar)
        for ticker, bars in rows.items():
            _write(self.prices / f"{ticker}.csv", COLUMNS, bars)
        sectors = [{"ticker": ticker, "sector": sector} for ticker, sector in SECTORS.items()]
        _write(self.prices / "sectors.csv", ("ticker", "sector"), sectors)

    def agent(self, act: str) -> dict[str, Any]:
        """What the agent's program writes."""
        answer: dict[str, Any] = json.loads(self.run([sys.executable, str(AGENT), act, PROPOSAL]))
        return answer

    def deskbus(self, *words: str) -> str:
        """What a command writes."""
        return self.run([*DESKBUS, *words])

    def run(self, command: Sequence[str]) -> str:
        """A program's output. Raises SystemExit with its own words where it fails."""
        done = self.tried(command)
        if done.returncode:
            raise SystemExit(f"{' '.join(command[2:])} failed:\n{done.stderr}")
        return done.stdout

    def tried(self, command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        """A program, whatever comes of it."""
        return subprocess.run(  # noqa: S603 - commands of this file
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )


def _write(path: Path, columns: Sequence[str], rows: Sequence[dict[str, str]]) -> None:
    """Put a file in place in one step: a desk that runs sees the old one or the new one."""
    partial = path.with_suffix(".partial")
    with partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    partial.replace(path)


def say(text: str) -> None:
    """A line for whoever watches."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _yes(question: str) -> bool:
    """The answer of whoever sits there; no where nobody does."""
    try:
        return input(question).strip().lower() == "y"
    except EOFError:
        return False


if __name__ == "__main__":
    main()
