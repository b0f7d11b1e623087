"""`deskbus demo`: filled by real cycles on servers of its own, whatever the environment says."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import orjson
import pytest

from tests.integration.desk.command_line import DESKBUS

SESSIONS = 8
PATIENCE_S = 240
ON_ITS_OWN = ("--no-browser", "--port", "0")
"""Whatever else listens on this machine, or begins to meanwhile."""
ELSEWHERE = {
    "DESKBUS_NATS_URL": "nats://127.0.0.1:1",
    "DESKBUS_POSTGRES_DSN": "postgresql://deskbus@127.0.0.1:1/deskbus",
    "DESKBUS_MARKET": "yahoo",
    "DESKBUS_HTTP_TOKEN": "a" * 40,
    "ANTHROPIC_API_KEY": "sk-ant-of-somebody",
    "HTTPS_PROXY": "http://127.0.0.1:1",
}


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
    for words in ("/leaderboard", "approve the proposal that waits", "a cycle that failed"):
        assert words in filled.stdout
    assert orjson.loads((folder / "demo.json").read_bytes())["filled"] is True
    assert "sk-ant-of-somebody" not in b"".join(
        path.read_bytes() for path in (folder / "logs").rglob("*") if path.is_file()
    ).decode(errors="replace")

    again = demo(folder)
    assert again.returncode == 0, again.stderr
    assert "of 2" not in again.stderr, "nothing is filled twice"
    assert "approve the proposal that waits" in again.stdout

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
    assert "no demo made it" in refused.stderr
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]


def test_every_page_says_that_it_is_a_demo_and_that_scripted_is_a_script(folder: Path) -> None:
    process = subprocess.Popen(
        [*DESKBUS, "demo", "--dir", str(folder), *ON_ITS_OWN, "--sessions", "5"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **ELSEWHERE},
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        while "/leaderboard" not in process.stdout.readline():
            assert process.poll() is None
        for page in ("/", "/cycles", "/leaderboard", "/costs", "/tickers/AAPL?account=main"):
            assert "no model was asked, nothing was paid" in read(url, page)
        cycles = orjson.loads(read(url, "/api/v1/cycles"))["cycles"]
        assert {"decision", "exit", "strategy"} <= {cycle["kind"] for cycle in cycles}
        strategies = read(url, "/strategies")
        assert "stopped by the backtest gate" in strategies
        assert "mediocre" in strategies, "one is assessed"
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0
