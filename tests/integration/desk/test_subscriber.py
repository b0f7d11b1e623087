"""What a program outside hears: the decision by the document alone, and events without a gap."""

import ast
import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
PAGE = ROOT / "docs" / "extending.md"
SECTION = "Your own service that hears decisions"


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


def page_section() -> str:
    """What the page says of a service of one's own."""
    _, _, rest = PAGE.read_text().partition(f"## {SECTION}\n")
    section, _, _ = rest.partition("\n## ")
    assert section
    return section


def blocks(language: str) -> list[str]:
    """The section's blocks of code."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page_section(), re.MULTILINE | re.DOTALL)


def commands() -> list[list[str]]:
    """The section's commands, in order."""
    lines = [line for block in blocks("console") for line in block.splitlines()]
    return [shlex.split(line.removeprefix("$ ")) for line in lines if line.startswith("$ ")]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the environment that the page says how to make, and nothing else."""
    folder = tmp_path_factory.mktemp("clean")
    make, install, _ = commands()
    subprocess.run([sys.executable, *make[1:]], cwd=folder, check=True, timeout=INSTALL_S)
    subprocess.run([*install, "--quiet"], cwd=folder, check=True, timeout=INSTALL_S)
    return folder


def test_the_page_shows_the_program_whole_in_thirty_lines() -> None:
    (program,) = blocks("python")
    _, _, body = EXAMPLE.read_text().partition('"""\n\n')
    assert body == program
    assert len(program.splitlines()) <= 30


@contextmanager
def running(desk: Desk, clean: Path, noise: Path) -> Iterator[subprocess.Popen[str]]:
    """The page's last command as it is written, but for the checkout's and the desk's places."""
    _, _, (variable, python, example, _, _) = commands()
    assert variable == "PYTHONPATH=."
    with (
        noise.open("a") as said,
        subprocess.Popen(
            [python, ROOT / example, desk.url, desk.secrets_dir / "user.nk"],
            cwd=clean,
            env={"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        ) as program,
    ):
        try:
            yield program
            program.terminate()
            assert program.wait(timeout=30) == 0
        finally:
            program.kill()


def lines_until(program: subprocess.Popen[str], beginning: str) -> str:
    """The program's next line that begins so."""
    assert program.stdout is not None
    return next(line for line in program.stdout if line.startswith(beginning))


async def decided(user: Caller) -> str:
    """A cycle that has ended, and with it its decision."""
    cycle_id = await user.accepted(wish())
    await user.ended(cycle_id)
    return cycle_id


async def test_the_pages_program_prints_each_decision_once_also_those_that_it_missed(
    desk: Desk, clean: Path, user: Caller, tmp_path: Path
) -> None:
    noise = tmp_path / "noise"
    with running(desk, clean, noise) as program:
        await asyncio.to_thread(lines_until, program, "listening")
        heard = await decided(user)
        assert "buy" in await asyncio.to_thread(lines_until, program, heard)
    missed = await decided(user)
    with running(desk, clean, noise) as program:
        assert program.stdout is not None
        first = await asyncio.to_thread(program.stdout.readline)
        assert first.startswith(missed)
        await asyncio.to_thread(lines_until, program, "listening")
        last = await decided(user)
        next_line = await asyncio.to_thread(program.stdout.readline)
        assert next_line.startswith(last)
    said = await asyncio.to_thread(noise.read_text)
    assert "warning" not in said, said
    assert "error" not in said, said


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


@pytest.fixture
def anothers_key(desk: Desk, tmp_path: Path) -> Path:
    """A key under a name that is not its own."""
    copied = tmp_path / "user.nk"
    shutil.copy(desk.secrets_dir / "cli.nk", copied)
    return copied


def test_a_program_that_nats_does_not_take_ends_with_a_sentence(desk: Desk, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLE, desk.url, tmp_path / "user.nk"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"NATS at {desk.url} refuses the key of 'user'")
    assert f"key {tmp_path / 'user.nk'} does not exist" in last


def test_the_node_program_that_nats_does_not_take_ends_with_a_sentence(
    node_command: list[str], desk: Desk, anothers_key: Path
) -> None:
    done = subprocess.run(
        [*node_command, desk.url, str(anothers_key)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    (line,) = done.stderr.splitlines()
    assert done.returncode == 1
    assert line.startswith(f"{desk.url} does not take user: Permissions Violation")
