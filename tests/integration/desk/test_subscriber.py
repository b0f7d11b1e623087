"""What a program outside hears: the decision by the document alone, and events without a gap."""

import ast
import asyncio
import json
import os
import shlex
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.desk import plain_subscriber
from tests.integration.desk.caller import Caller, Json, picked, wish
from tests.integration.desk.conftest import Desk

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "contracts" / "schemas" / "asyncapi.json"
PROGRAM = Path(plain_subscriber.__file__)
EXAMPLES = ROOT / "docs" / "examples"
INSTALL_S = 300
EXAMPLE = EXAMPLES / "faststream_subscriber.py"


def test_the_subscriber_knows_nothing_of_ours() -> None:
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(PROGRAM.read_text()))
        for name in (
            [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported - sys.stdlib_module_names == {"nats", "jsonschema"}


@pytest.fixture
def subscribers_output(desk: Desk, tmp_path: Path) -> str:
    """What the program printed for a request of its own."""
    arguments = [DOCUMENT, desk.url, desk.secrets_dir / "user.nk", json.dumps(wish())]
    done = subprocess.run(
        [sys.executable, "-I", PROGRAM, *map(str, arguments)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


async def test_a_subscriber_with_nothing_but_the_document_gets_the_decision(
    subscribers_output: str, user: Caller
) -> None:
    event = json.loads(subscribers_output)
    assert event["type"] == "decision"
    view = await user.query("cycle", cycle_id=event["cycle_id"])
    assert event["data"] == picked(view, "decision_validation")
    assert {each["asset"] for each in event["data"]["decisions"]} >= {"AAPL", "MSFT"}


@pytest.fixture
async def cycle(user: Caller) -> list[Json]:
    """The events of a whole cycle as they were heard."""
    cycle_id = await user.accepted(wish())
    await user.ended(cycle_id)
    return user.events.of(cycle_id)


async def test_a_cycles_events_come_in_order_each_once_and_without_a_gap(
    cycle: list[Json],
) -> None:
    assert [event["sequence"] for event in cycle] == list(range(1, len(cycle) + 1))
    assert len({event["event_id"] for event in cycle}) == len(cycle)
    assert (cycle[0]["type"], cycle[-1]["type"]) == ("cycle_accepted", "cycle_ended")
    assert [e["type"] for e in cycle].count("order_filled") == 2


async def test_every_event_is_what_the_document_says(cycle: list[Json]) -> None:
    document = plain_subscriber.Document(str(DOCUMENT))
    for event in cycle:
        document.validate(f"evt.{event['owner']}.{event['type']}", event)


@pytest.mark.parametrize("sequence", [0, 7, 10_000])
async def test_a_gap_is_filled_by_asking_for_what_comes_after(
    sequence: int, cycle: list[Json], user: Caller
) -> None:
    found: list[Any] = []
    last, more = sequence, True
    while more:
        page = await user.query("events", cycle_id=cycle[0]["cycle_id"], sequence=last, limit=9)
        assert len(page["events"]) <= 9
        found += page["events"]
        last, more = (found[-1]["sequence"] if found else last), page["more"]

    assert found == cycle[sequence:]


@pytest.fixture(scope="module")
def clean_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that has what the example says, and nothing else."""
    root = tmp_path_factory.mktemp("clean")
    venv.create(root, with_pip=True)
    python = root / "bin/python"
    (line,) = (each for each in EXAMPLE.read_text().splitlines() if "pip install" in each)
    subprocess.run([python, "-m", *shlex.split(line), "--quiet"], check=True, timeout=INSTALL_S)
    return python


@pytest.fixture
def noise(tmp_path: Path) -> Path:
    """Where what the program says beside its output goes."""
    return tmp_path / "noise"


@pytest.fixture
def faststream_program(
    desk: Desk, clean_python: Path, noise: Path
) -> Iterator[subprocess.Popen[str]]:
    """The documentation's example as it is written, hearing."""
    with (
        noise.open("w") as said,
        subprocess.Popen(
            [clean_python, EXAMPLE, desk.url, desk.secrets_dir / "user.nk"],
            cwd=ROOT,
            env={"PYTHONPATH": "."},
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        ) as program,
    ):
        lines_until(program, "listening")
        yield program
        program.terminate()


def lines_until(program: subprocess.Popen[str], beginning: str) -> str:
    """The program's next line that begins so; it also logs."""
    assert program.stdout is not None
    return next(line for line in program.stdout if line.startswith(beginning))


async def test_the_documented_faststream_program_prints_decisions_without_a_warning(
    faststream_program: subprocess.Popen[str], noise: Path, user: Caller
) -> None:
    for _ in range(2):  # what the first one brought about is said by the second
        cycle_id = await user.accepted(wish())
        await user.ended(cycle_id)
        assert "buy" in await asyncio.to_thread(lines_until, faststream_program, cycle_id)
    said = await asyncio.to_thread(noise.read_text)
    assert "WARNING" not in said, said
    assert "ERROR" not in said, said


@pytest.fixture
def node_command(tmp_path: Path) -> list[str]:
    """The documentation's example for Node, beside the package that it needs; else a skip."""
    node = shutil.which("node")
    folders = (Path(each) for each in os.environ.get("PATH", "").split(os.pathsep))
    found = (each.parent for each in folders if each.name == ".bin")
    modules = next((each for each in found if (each / "@nats-io/transport-node").is_dir()), None)
    if node is None or modules is None:
        pytest.skip("node or @nats-io/transport-node is missing (docs/subscribing.md says how)")
    (tmp_path / "node_modules").symlink_to(modules)
    return [node, str(shutil.copy(EXAMPLES / "subscribe.mjs", tmp_path))]


@pytest.fixture
async def missed(user: Caller) -> str:
    """A cycle that was decided before the program below began to hear."""
    cycle_id = await user.accepted(wish())
    await user.ended(cycle_id)
    return cycle_id


@pytest.fixture
def node_program(
    node_command: list[str], missed: str, desk: Desk
) -> Iterator[subprocess.Popen[str]]:
    """It, started; what it prints is still to be read."""
    with subprocess.Popen(
        [*node_command, desk.url, str(desk.secrets_dir / "user.nk")],
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        yield program
        program.terminate()


async def test_the_documented_node_program_prints_what_it_missed_and_what_comes(
    node_program: subprocess.Popen[str], missed: str, user: Caller
) -> None:
    assert "buy" in await asyncio.to_thread(lines_until, node_program, missed)
    await asyncio.to_thread(lines_until, node_program, "listening")
    heard = await user.accepted(wish())
    await user.ended(heard)
    assert "buy" in await asyncio.to_thread(lines_until, node_program, heard)
