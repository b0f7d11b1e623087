"""The command as a whole: its help, its exit codes, and what it loads."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import asyncpg
import pytest

from libs.bus.client import DeskNotReachable
from libs.bus.codec import MessageTooLarge
from libs.postgres.pool import DatabaseDamaged
from libs.runtime.errors import DeskError, StartError
from services.cli import main as cli
from services.cli.shell.problem import CliProblem, ExitCode, NoSuchThing

HEAVY = (
    "apprise",
    "asyncpg",
    "faststream",
    "nats",
    "polars",
    "pydantic",
    "rich",
    "structlog",
    "talib",
)


def _run(
    arguments: Sequence[str], cwd: Path, stdout: int = subprocess.PIPE, **environment: str
) -> "subprocess.CompletedProcess[str]":
    root = str(Path(cli.__file__).parents[2])
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DESKBUS_")}
    return subprocess.run(
        [sys.executable, "-m", "services.cli", *arguments],
        cwd=cwd,
        env={**clean, "PYTHONPATH": root, **environment},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )


DeskbusCall = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def deskbus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> DeskbusCall:
    """Calls the command in this process, in an empty folder and without settings."""
    for name in [name for name in os.environ if name.startswith("DESKBUS_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def call(arguments: Sequence[str], **environment: str) -> "subprocess.CompletedProcess[str]":
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["deskbus", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        written = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, ended.value.code, written.out, written.err)

    return call


def test_the_help_names_every_command_and_the_exit_codes(tmp_path: Path) -> None:
    done = _run(["--help"], tmp_path)

    assert done.returncode == 0
    assert all(f"  {name} " in done.stdout for name in cli.ENTRIES)
    assert "124 time-out" in done.stdout


def _loaded_by(statements: str, packages: Sequence[str], cwd: Path) -> Sequence[str]:
    """Those of the packages that a fresh process has loaded after these statements."""
    return _loaded_by_each({"all": statements}, packages, cwd)["all"]


def _loaded_by_each(
    parts: Mapping[str, str], packages: Sequence[str], cwd: Path
) -> Mapping[str, Sequence[str]]:
    """By part: those of the packages that one fresh process, which runs the parts in turn, has
    loaded after its statements and not before."""
    script = (
        "import json, sys\nloaded = {}\n"
        f"for part, statements in {dict(parts)!r}.items():\n"
        "    exec(statements)\n"
        f"    loaded[part] = [name for name in {packages!r} if name in sys.modules\n"
        "        and not any(name in earlier for earlier in loaded.values())]\n"
        "print(json.dumps(loaded), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return dict(json.loads(done.stderr))


def test_the_help_loads_nothing_heavy(tmp_path: Path) -> None:
    help_ = (
        "sys.argv = ['deskbus', '--help']\nfrom services.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass"
    )

    assert _loaded_by(help_, HEAVY, tmp_path) == []


COMPUTES = (
    "asyncpg",
    "jinja2",
    "numpy",
    "openai",
    "polars",
    "prometheus_client",
    "scipy",
    "sklearn",
    "talib",
    "yaml",
)
"""What takes long to load, and no command needs that only asks the desk and prints."""


READS = (
    "books.accounts",
    "books.trades",
    "desk.status",
    "studies.command",
    "trading.approvals",
    "trading.budget",
    "trading.cycle",
    "trading.exit_signals",
    "trading.halt",
    "trading.leaderboard",
    "trading.operations",
    "trading.performance",
    "trading.portfolio",
    "trading.report",
    "trading.schedule",
    "trading.strategies",
    "trading.tail",
    "operating.config",
    "operating.dlq",
    "operating.doctor",
    "operating.notify",
)
"""Modules below services.cli."""


def test_what_reads_loads_nothing_that_computes(tmp_path: Path) -> None:
    imports = {module: f"import services.cli.{module}" for module in READS}

    loaded = _loaded_by_each(imports, COMPUTES, tmp_path)

    assert not any(loaded.values()), loaded


def test_a_look_at_this_machine_loads_nothing_that_computes(tmp_path: Path) -> None:
    looks = (
        "from libs.runtime.settings import Settings\n"
        "from services.cli.operating.doctor import machine\nmachine(Settings())"
    )

    assert _loaded_by(looks, COMPUTES, tmp_path) == []


def test_the_list_of_cycles_loads_no_story_of_one(tmp_path: Path) -> None:
    stories = ("libs.report.story", "services.cli.render.evidence", "services.cli.render.story")

    assert _loaded_by("import services.cli.trading.cycle", stories, tmp_path) == []


@pytest.mark.parametrize("name", list(cli.ENTRIES))
def test_every_command_has_help(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["deskbus", name, "--help"])

    with pytest.raises(SystemExit) as ended:
        cli.main()

    assert ended.value.code == 0


@pytest.mark.parametrize("command", ["config", "market show AAPL", "market show AAPL --json"])
def test_a_reader_that_has_seen_enough_is_no_failure(command: str, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    run = _run(command.split(), tmp_path, writer)
    os.close(writer)
    assert (run.returncode, run.stderr.count("Traceback")) == (0, 0), run.stderr


def test_a_command_that_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    done = _run(["frobnicate"], tmp_path)

    assert done.returncode == ExitCode.USAGE
    assert done.stdout == ""
    assert "frobnicate" in done.stderr


@pytest.mark.parametrize("command", ["run", "cycle request"])
def test_a_mistyped_constraint_is_refused_by_every_command_that_requests_a_cycle(
    command: str, deskbus: DeskbusCall, tmp_path: Path
) -> None:
    done = deskbus([*command.split(), "--constraint", "max-position=3"])

    assert done.returncode == ExitCode.USAGE
    assert "did you mean max_positions?" in done.stderr
    assert not (tmp_path / ".deskbus").exists(), "no desk was started for it"


def test_without_a_desk_the_exit_code_is_5_and_stdout_stays_empty(tmp_path: Path) -> None:
    done = _run(["cycle", "list", "--json"], tmp_path)

    assert done.returncode == ExitCode.NOT_REACHABLE
    assert done.stdout == ""
    assert "no desk is running here" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["up --detach", "secrets init afile/secrets"])
def test_a_folder_that_cannot_be_made_is_one_sentence(
    command: str, deskbus: DeskbusCall, tmp_path: Path
) -> None:
    (tmp_path / "afile").touch()
    done = deskbus(command.split(), DESKBUS_DATA_DIR="afile")

    assert done.returncode == ExitCode.FAILED
    assert "cannot be used: Not a directory" in done.stderr
    assert "name another folder" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "up --detach",
        "secrets init /proc/nowhere",
        "demo --dir /proc/nowhere --no-browser --once",
        "market record /proc/nowhere --universe AAPL",
    ],
)
def test_a_folder_that_has_no_place_is_one_sentence(command: str, deskbus: DeskbusCall) -> None:
    done = deskbus(command.split(), DESKBUS_DATA_DIR="/proc/nowhere")

    assert done.returncode == ExitCode.FAILED
    assert "cannot be used: No such file or directory" in done.stderr
    assert "name another folder" in done.stderr


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("nowhere/desk.dump", "cannot be read: No such file or directory"),
        (".", "cannot be read: Is a directory"),
        ("empty", "is not a database dump"),
    ],
)
def test_what_is_no_dump_is_refused_before_a_server_is_started(
    file: str, why: str, deskbus: DeskbusCall, tmp_path: Path
) -> None:
    (tmp_path / "empty").touch()
    done = deskbus(["db", "restore", file])

    assert done.returncode == ExitCode.USAGE
    assert f"{file} {why}" in done.stderr
    assert "deskbus db backup" in done.stderr
    assert not (tmp_path / ".deskbus").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["cycle", "request", "--max-money", "1e400"], "budgets.money"),
        (["cycle", "request", "--account", ""], "account: takes a name"),
        (["cycle", "request", "--key", ""], "idempotency_key"),
        (["secrets", "init", "x", "--port", "0"], "Invalid value for '--port'"),
        (["db", "retain", "--months", "999999999"], "Invalid value for '--months'"),
        (["market", "show", ""], "takes a ticker, such as AAPL"),
        (["market", "show", "AAPL", "--as-of", "2099-01-01"], "2099-01-01 lies outside"),
    ],
)
def test_what_nobody_can_mean_is_one_sentence(
    arguments: Sequence[str], says: str, deskbus: DeskbusCall
) -> None:
    done = deskbus(arguments)

    assert done.returncode in {ExitCode.USAGE, ExitCode.FAILED}
    assert says in done.stderr


def test_bad_input_is_found_before_a_desk_is_needed(deskbus: DeskbusCall) -> None:
    done = deskbus(["cycle", "request", "--as-of", "2012-06-31"])

    assert done.returncode == ExitCode.USAGE
    assert "--as-of" in done.stderr


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (NoSuchThing("no such cycle", "look again"), 3),
        (CliProblem("not in time", code=ExitCode.TIMED_OUT), 124),
        (DeskNotReachable("nobody"), 5),
        (MessageTooLarge("too much"), 2),
        (DeskError("no"), 1),
        (StartError("no room"), 1),
        (ConnectionError("risk: closed for good"), 1),
        (KeyboardInterrupt(), 130),
        (RecursionError("nested too deep"), 1),
        (MemoryError("memory"), 1),
        (OSError(errno.EIO, "Input/output error", "data.csv"), 1),
        (OSError("no file is named"), 1),
        (asyncpg.UndefinedTableError("no table"), 1),
        (DatabaseDamaged(asyncpg.DataCorruptedError("invalid page")), 1),
    ],
)
def test_what_stops_a_command_becomes_its_exit_code(
    raised: BaseException,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stops() -> None:
        raise raised

    monkeypatch.setattr(cli, "app", stops)

    with pytest.raises(SystemExit) as ended:
        cli.main()

    assert ended.value.code == code
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err
    assert (str(raised) if not isinstance(raised, OSError) else raised.args[-1]) in said.err
