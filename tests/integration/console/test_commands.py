"""Commands on a desk of their own: real prices, exit codes, exact JSON."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

import orjson
import pytest
from pydantic import BaseModel

from contracts.account_query import AccountView
from contracts.audit import Event, EventType
from contracts.cycle import RequestAnswer
from contracts.cycle_query import CycleView, Recording
from contracts.operation import OperationView
from services.cli.shell.problem import ExitCode
from services.replay import ReplayReport
from tests.fakes import warm_command

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
TIMEOUT_S = 120
STOP_S = 30


def _environment(data_dir: Path, columns: int | None = None) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DESKBUS_")}
    return {
        **clean,
        "PYTHONPATH": str(ROOT),
        "DESKBUS_DATA_DIR": str(data_dir),
        "DESKBUS_HTTP_PORT": "0",
        **({} if columns is None else {"COLUMNS": str(columns)}),
    }


def _start(
    data_dir: Path, *arguments: str, stderr: int | TextIO = subprocess.PIPE
) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "services.cli", *arguments],
        cwd=data_dir.parent,
        env=_environment(data_dir),
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )


class Done(BaseModel):
    """How a command ended and what it said where."""

    code: int
    out: str
    err: str


def _run(data_dir: Path, *arguments: str, columns: int | None = None) -> Done:
    environment = _environment(data_dir, columns)
    done = warm_command.run(arguments, data_dir.parent, environment, TIMEOUT_S)
    return Done(code=done.returncode, out=done.stdout, err=done.stderr)


def _exactly(kind: type[BaseModel], out: str) -> Sequence[BaseModel]:
    """Every line is one model, with nothing else on stdout, and says no more than the model."""
    lines = [kind.model_validate_json(line) for line in out.splitlines()]
    assert "".join(f"{line.model_dump_json()}\n" for line in lines) == out
    return lines


@pytest.fixture(scope="module")
def desk(module_dir: Path) -> Iterator[Path]:
    """The data directory of a desk that is up."""
    log = module_dir / "up.log"
    # Into a file: a pipe that nobody reads would fill up and stop the desk.
    with log.open("w") as words, _start(module_dir / "desk", "up", "--json", stderr=words) as child:
        assert child.stdout is not None
        line = child.stdout.readline()
        assert line, log.read_text()
        assert orjson.loads(line)["status"] == "ready"
        yield module_dir / "desk"
        child.send_signal(signal.SIGTERM)
        child.wait(timeout=STOP_S)
    assert child.returncode == 0, log.read_text()
    assert not (module_dir / "desk" / "runtime.json").exists()


@pytest.fixture(scope="module")
def cycle(desk: Path) -> CycleView:
    """A decision that the desk has made on real prices."""
    asked = ("cycle", "request", "--as-of", "2012-06-29", "--key", "first", "--wait", "--json")
    done = _run(desk, *asked)
    assert done.code == 0, done.err
    (view,) = _exactly(CycleView, done.out)
    assert isinstance(view, CycleView)
    return view


def test_run_decides_on_real_prices_with_an_order_and_a_cut_tells_it_and_stops(
    open_dir: Path,
) -> None:
    done = _run(open_dir / "desk", "run")

    assert done.code == 0, done.err
    assert "✓ Decision of Thu 2010-05-06  completed" in done.out
    assert re.search(r"AAPL +cut +risk_per_trade +998\.80", done.out)
    words = " ".join(done.out.split())
    assert "AAPL: 505.39 USD at risk" in words
    assert "1 stop placed" in words
    assert "bought 15 AAPL for 3,657.60 USD" in done.out
    assert "2010-05-06: the first session after the newest filing" in words
    assert "--evidence AAPL" in done.out
    assert "\x1b" not in done.out + done.err
    assert "planning" in done.err
    assert not (open_dir / "desk" / "runtime.json").exists()


def test_after_a_run_its_evidence_is_read_without_a_running_desk(open_dir: Path) -> None:
    _run(open_dir / "desk", "run", "--universe", "AAPL,MSFT")

    told = _run(open_dir / "desk", "cycle", "show", "--evidence", "AAPL")
    exact = _run(open_dir / "desk", "cycle", "show", "--evidence", "aapl", "--json")
    stage = _run(open_dir / "desk", "cycle", "show", "--stage", "validate")
    neither = _run(open_dir / "desk", "cycle", "show", "--stage", "nonsense")

    assert (told.code, stage.code, neither.code) == (0, 0, ExitCode.NOT_FOUND)
    assert "rsi_14" in told.out
    parts = [each for each in _exactly(Recording, exact.out) if isinstance(each, Recording)]
    asked = [str(entry.request) for part in parts for entry in part.journal]
    assert len(asked) > 5
    assert not any("'ticker': 'MSFT'" in each for each in asked)
    assert "whole_shares" in stage.out
    assert "its stages: digest" in neither.err


def test_a_cycle_is_one_exact_line_of_json(cycle: CycleView) -> None:
    validation = cycle.pipelines[0].contracts["decision_validation"]
    assert isinstance(validation, dict)
    assert cycle.status == "completed"
    assert validation["decisions"]


def test_the_same_request_again_is_accepted_and_another_body_is_rejected(
    desk: Path, cycle: CycleView
) -> None:
    same = _run(desk, "cycle", "request", "--as-of", "2012-06-29", "--key", "first", "--json")
    other = _run(desk, "cycle", "request", "--as-of", "2012-06-28", "--key", "first", "--json")

    (answer,) = _exactly(RequestAnswer, same.out)
    assert isinstance(answer, RequestAnswer)
    assert (same.code, answer.cycle_id, answer.status) == (0, cycle.cycle_id, "completed")
    assert (other.code, other.out) == (ExitCode.REJECTED, "")
    assert "key_reused" in other.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("cycle", "show", "00000000"), ExitCode.NOT_FOUND, "00000000"),
        (("cycle", "cancel", "00000000"), ExitCode.NOT_FOUND, "00000000"),
        (("cycle", "cancel", "LAST"), ExitCode.REJECTED, "too_late"),
        (("cycle", "request", "--kind", "weird"), ExitCode.REJECTED, "unknown kind"),
        (("operations", "list", "--type", "pics"), ExitCode.USAGE, "did you mean picks?"),
        (
            ("operations", "list", "--status", "done"),
            ExitCode.USAGE,
            "is not one of 'pending', 'running'",
        ),
        (("tail", "ordr_*"), ExitCode.USAGE, "did you mean order_*?"),
        (("operations", "show", "00000000"), ExitCode.NOT_FOUND, "00000000"),
        (("portfolio", "nobody"), ExitCode.NOT_FOUND, "there is: main"),
        (("dlq", "show", "999"), ExitCode.NOT_FOUND, "dead letter 999 does not exist"),
        (("up",), ExitCode.FAILED, "running in"),
    ],
)
def test_a_no_is_a_sentence_on_stderr_and_an_exit_code(
    desk: Path, cycle: CycleView, arguments: Sequence[str], code: int, said: str
) -> None:
    given = [str(cycle.cycle_id) if each == "LAST" else each for each in arguments]

    done = _run(desk, *given)

    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("typed", "code", "words"),
    [
        ("portfolio mian", ExitCode.NOT_FOUND, "did you mean main?"),
        ("performance nosuch", ExitCode.NOT_FOUND, "deskbus accounts"),
        ("cycle list --kind exits", ExitCode.USAGE, "did you mean exit?"),
        ("cycle list --account mian", ExitCode.NOT_FOUND, "did you mean main?"),
        ("cycle list --provider clade", ExitCode.USAGE, "did you mean claude?"),
        ("cycle show --evidence appl", ExitCode.NOT_FOUND, "did you mean AAPL?"),
        ("operations list --type pics", ExitCode.USAGE, "did you mean picks?"),
        ("operations show abc", ExitCode.USAGE, "deskbus operations list"),
        ("tail ordr_*", ExitCode.USAGE, "did you mean order_*?"),
        ("halt --account mian", ExitCode.NOT_FOUND, "did you mean main?"),
        ("cycle list --before 0000", ExitCode.USAGE, ""),
        ("portfolio Main", ExitCode.USAGE, "deskbus accounts"),
    ],
)
def test_what_is_mistyped_is_told_with_what_there_is(
    desk: Path, cycle: CycleView, typed: str, code: int, words: str
) -> None:
    done = _run(desk, *typed.split())

    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("deskbus: ")
    assert words in done.err
    for leak in ("Value error", "Input should", "string_", "<"):
        assert leak not in done.err


# A cell that begins as a number and is cut: what nobody can read, and some read wrongly.
CUT_FIGURE = re.compile(r"(?:^|  )[+-]?\d[\d,.:]*…")


@pytest.mark.parametrize(
    "typed",
    [
        "cycle list",
        "cycle show",
        "cycle show --stage quant",
        "operations list",
        "operations tree",
        "accounts",
        "portfolio",
        "performance",
        "leaderboard --all",
        "exit-signals distances",
        "budget --days 7",
        "market sources",
        "config",
    ],
)
@pytest.mark.parametrize("width", [80, 100])
def test_no_table_cuts_a_figure_or_is_wider_than_the_terminal(
    desk: Path, cycle: CycleView, typed: str, width: int
) -> None:
    done = _run(desk, *typed.split(), columns=width)

    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= width, max(lines, key=len)
    assert not [line for line in lines if CUT_FIGURE.search(line)]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("cycle list --status expired", "No cycle is expired"),
        (
            "operations list --status failed --type picks",
            "No such operation; completed ones are",
        ),
        ("operations list --type tool", "deskbus operations list --cycle CYCLE --type tool"),
    ],
)
def test_an_empty_list_is_a_sentence_on_stderr(desk: Path, typed: str, said: str) -> None:
    done = _run(desk, *typed.split())

    assert (done.code, done.out) == (ExitCode.OK, "")
    assert said in " ".join(done.err.split())


def test_a_weekend_is_refused_with_the_sessions_around_it(desk: Path) -> None:
    done = _run(desk, "cycle", "request", "--as-of", "2012-06-30", "--wait")

    assert done.code == ExitCode.REJECTED
    assert "use 2012-06-29 or 2012-07-02" in " ".join(done.err.split())


def test_a_cycles_events_come_from_first_to_last_and_the_tail_ends(
    desk: Path, cycle: CycleView
) -> None:
    done = _run(desk, "tail", "--cycle", str(cycle.cycle_id), "--json")

    events = [each for each in _exactly(Event, done.out) if isinstance(each, Event)]
    assert done.code == 0
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert events[0].type is EventType.CYCLE_ACCEPTED
    assert events[-1].type is EventType.CYCLE_ENDED


def test_a_live_tail_hears_a_new_cycle_and_ends_by_ctrl_c_with_130(desk: Path) -> None:
    with _start(desk, "tail", "cycle_accepted", "--json") as tail:
        assert tail.stderr is not None
        assert tail.stdout is not None
        assert "listening" in tail.stderr.readline()
        asked = _run(desk, "cycle", "request", "--as-of", "2012-06-29", "--json")
        heard = Event.model_validate_json(tail.stdout.readline())
        tail.send_signal(signal.SIGINT)
        tail.communicate(timeout=STOP_S)

    assert str(heard.cycle_id) == orjson.loads(asked.out)["cycle_id"]
    assert tail.returncode == ExitCode.INTERRUPTED


def test_the_tree_holds_every_state_and_its_calls(desk: Path, cycle: CycleView) -> None:
    drawn = _run(desk, "operations", "tree", str(cycle.cycle_id))
    exact = _run(desk, "operations", "tree", str(cycle.cycle_id), "--json")

    nodes = [each for each in _exactly(OperationView, exact.out) if isinstance(each, OperationView)]
    assert {"cycle", "pipeline", "operation", "model", "tool"} <= {node.type for node in nodes}
    assert "executing/execute" in drawn.out
    assert "tool get_stock_price" in drawn.out


def test_a_replay_gives_the_same_decision(desk: Path, cycle: CycleView) -> None:
    done = _run(desk, "cycle", "replay", str(cycle.cycle_id), "--json")

    (found,) = _exactly(ReplayReport, done.out)
    assert isinstance(found, ReplayReport)
    assert (done.code, found.same, found.differences) == (0, True, [])


def test_every_line_of_the_log_names_its_service_and_only_the_servers_have_none(
    desk: Path, cycle: CycleView
) -> None:
    words = (desk.parent / "up.log").read_text().splitlines()
    lines = [orjson.loads(line) for line in words if line.startswith("{")]
    named = {(line["event"], line["service"]) for line in lines if "service" in line}
    unnamed = {line["event"].partition(".")[0] for line in lines if "service" not in line}
    assert unnamed == {"server", "postgres"}
    assert {
        ("relay.started", "orchestrator"),
        ("http.listening", "console"),
        ("risk.validated", "risk"),
    } <= named
    assert str(cycle.cycle_id) in {line.get("cycle_id") for line in lines}


def test_the_portfolio_shows_what_was_bought(desk: Path, cycle: CycleView) -> None:
    done = _run(desk, "portfolio", "main", "--json")

    (view,) = _exactly(AccountView, done.out)
    assert isinstance(view, AccountView)
    assert view.portfolio is not None
    assert view.portfolio.positions
    assert view.portfolio.equity.amount < view.starting_cash


def test_the_doctor_finds_a_running_desk_well(desk: Path) -> None:
    done = _run(desk, "doctor")

    assert done.code == 0, done.out
    assert "✗" not in done.out
    assert "COMMANDS, DEAD_LETTERS, DECISIONS" in done.out


def test_the_doctor_names_secrets_that_others_may_read(open_dir: Path) -> None:
    secrets = open_dir / "desk" / "secrets"
    secrets.mkdir(parents=True, mode=0o700)
    (secrets / "cli.nk").write_text("seed")
    (secrets / "cli.nk").chmod(0o644)

    done = _run(open_dir / "desk", "doctor")

    assert done.code == ExitCode.FAILED
    assert "cli.nk is 644" in done.out
    assert "chmod" in done.out


def test_migrations_on_a_migrated_database_change_nothing(desk: Path) -> None:
    done = _run(desk, "db", "migrate", "--json")

    assert (done.code, done.out) == (0, "")
