"""`deskbus demo`: filled by real cycles on servers of its own, whatever the environment says."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import orjson
import pytest

from tests.chaos.questions import ask, reader
from tests.fakes.channel_server import channel_server
from tests.integration.desk.command_line import DESKBUS

SESSIONS = 20
PATIENCE_S = 240
ON_ITS_OWN = ("--no-browser", "--port", "0")
"""Whatever else listens on this machine, or begins to meanwhile."""
ELSEWHERE = {
    "DESKBUS_NATS_URL": "nats://127.0.0.1:1",
    "DESKBUS_POSTGRES_DSN": "postgresql://deskbus@127.0.0.1:1/deskbus",
    "DESKBUS_MARKET_SOURCE": "yahoo",
    "DESKBUS_HTTP_TOKEN": "a" * 40,
    "ANTHROPIC_API_KEY": "sk-ant-of-somebody",
    "HTTPS_PROXY": "http://127.0.0.1:1",
}
CHANNELS = ("PHONE", "DEMO_INBOX", "DEMO_PAGER")
"""Of the environment, two by the names that the demo's own have."""


@pytest.fixture
def folder(make_open_dir: Callable[[], Path]) -> Path:
    return make_open_dir() / "demo"


def demo(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DESKBUS, "demo", "--dir", str(folder), *ON_ITS_OWN, "--once", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, **ELSEWHERE},
        cwd=folder.parent,
        check=False,
    )


def read(url: str, path: str) -> str:
    with urlopen(f"{url}{path}", timeout=30) as answer:
        return str(answer.read().decode())


def test_it_is_filled_once_and_tells_what_to_look_at(folder: Path) -> None:
    (folder.parent / "deskbus.toml").write_text("nonsense = [")
    filled = demo(folder, "--sessions", str(SESSIONS))
    assert filled.returncode == 0, filled.stderr
    assert "Headlines are synthetic" in " ".join(filled.stderr.split())
    for words in ("/leaderboard", "approve the waiting proposal", "a cycle that failed"):
        assert words in filled.stdout
    assert orjson.loads((folder / "demo.json").read_bytes())["filled"] is True
    assert "sk-ant-of-somebody" not in b"".join(
        path.read_bytes() for path in (folder / "logs").rglob("*") if path.is_file()
    ).decode(errors="replace")

    again = demo(folder)
    assert again.returncode == 0, again.stderr
    assert "of 2" not in again.stderr, "nothing is filled twice"
    assert "approve the waiting proposal" in again.stdout

    # Stopped in the last moment, when the proposal waits already.
    mark = folder / "demo.json"
    mark.write_bytes(orjson.dumps({**orjson.loads(mark.read_bytes()), "filled": False}))
    resumed = demo(folder)
    assert resumed.returncode == 0, resumed.stderr
    assert orjson.loads(mark.read_bytes())["filled"] is True

    (folder / "thesis.txt").write_text("mine")
    anew = demo(folder, "--fresh", "--sessions", "5")
    assert anew.returncode == 0, anew.stderr
    assert (folder / "thesis.txt").read_text() == "mine", "what others keep there stays"
    assert orjson.loads((folder / "demo.json").read_bytes())["sessions"] == 5


def test_somebody_elses_directory_is_refused_and_left_alone(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    refused = demo(folder, "--fresh")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "is not a demo's directory" in refused.stderr
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]


@pytest.fixture(scope="module")
def running(make_open_dir: Callable[[], Path]) -> Iterator[str]:
    """The address of a demo that runs; at its end no channel of the environment has heard of it."""
    with channel_server() as others:
        environment = {
            **ELSEWHERE,
            **{f"DESKBUS_NOTIFY_{name}": others.url for name in CHANNELS},
            **{f"DESKBUS_NOTIFY_{name}_KEY": "k" * 32 for name in CHANNELS},
            "DESKBUS_NOTIFY": '{"channels": {"phone": {"service": "webhook"}}}',
        }
        with running_demo(make_open_dir() / "demo", environment) as url:
            yield url
        assert others.heard == []


def test_messages_go_to_the_demos_own_receiver_and_to_no_channel_of_the_environment(
    running: str,
) -> None:
    channels = until(running, "/api/v1/notifications?limit=100", is_told)["channels"]
    page = read(running, "/notifications")
    by_name = {each["channel"]: each for each in channels}
    assert set(by_name) == {"demo-inbox", "demo-pager"}
    assert (by_name["demo-inbox"]["failures"], by_name["demo-inbox"]["waiting"]) == (0, 0)
    assert by_name["demo-pager"]["sent"] == 0
    assert "demo-pager is out of order on purpose" in page


def is_told(page: Any) -> bool:
    """Whether all is sent that can be, and the channel that is out of order was tried."""
    states = {each["channel"]: each for each in page["channels"]}
    kinds = {each["notice"]["kind"] for each in page["notifications"]}
    return (
        len(states) == 2
        and states["demo-inbox"]["waiting"] == 0
        and states["demo-pager"]["failures"] > 0
        and states["demo-pager"]["waiting"] > 0
        and {"approval", "failure", "halt", "dead_letter"} <= kinds
    )


def until(url: str, path: str, done: Callable[[Any], bool]) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while not done(page := orjson.loads(read(url, path))):
        assert time.monotonic() < deadline, page
        time.sleep(0.2)
    return page


@contextmanager
def running_demo(folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """A filled demo, while the block runs; its address."""
    process = subprocess.Popen(
        [*DESKBUS, "demo", "--dir", str(folder), *ON_ITS_OWN, "--sessions", "5"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        # On a busy machine a line of the log may come first.
        url = next(line.split()[-1] for line in process.stderr if "The demo is open" in line)
        while "/leaderboard" not in process.stdout.readline():
            assert process.poll() is None
        yield url
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_every_page_says_that_it_is_a_demo_and_that_scripted_is_a_script(running: str) -> None:
    for page in ("/", "/cycles", "/leaderboard", "/costs", "/tickers/AAPL?account=main"):
        assert "no model was asked, nothing was paid" in read(running, page)
    cycles = orjson.loads(read(running, "/api/v1/cycles"))["cycles"]
    assert {"decision", "exit", "strategy"} <= {cycle["kind"] for cycle in cycles}
    strategies = read(running, "/strategies")
    assert "backtest gate" in strategies
    assert "mediocre" in strategies, "one is assessed"
    assert ask(reader(running)).empty == []
