"""The tree explains the system: same files, same names, small files, small functions."""

import ast
import importlib
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.launcher import BACKBONE, SERVICES

Defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

FILE_LINES_MAX = {"contracts": 400, "libs": 400, "services": 400, "tests": 650, "benchmarks": 400}
FUNCTION_LINES_MAX = {
    "contracts": 60,
    "libs": 60,
    "services": 60,
    "tests": 100,  # a fixture may hold a page of data
    "benchmarks": 60,
}
COMMON = {"__init__.py", "__main__.py", "app.py", "handler.py", "logic.py"}
COMMON |= {"tools.py", "store.py", "queries.sql", "prompts"}

# What a service has beyond the common files. A new file here is a decision, not an accident.
FURTHER = {
    "orchestrator": {
        "workflow.py",  # what a workflow is, and whether it can end
        "workflows.py",  # the desk's own, as data
        "inputs.py",  # what reaches it, each with its future
        "measured.py",  # what a commit adds to the metrics
        "commit.py",  # the group transaction's loop
        "group.py",  # one group of inputs, folded
        "leases.py",  # claims, epochs, records within a group
        "budgets.py",  # what an operation, a cycle and a day may spend on models, pure
        "paces.py",  # how fast each model endpoint may be asked, pure
        "refusals.py",  # how many refused messages of a caller are kept, pure
        "changes.py",  # what a group leaves to write
        "rows.py",  # rows between loading and writing
        "approvals.py",  # what a person's answer to a proposal comes to
        "answers.py",  # what becomes of a request, as its sender is told
        "outlook.py",  # whether pipelines can begin, asked of who has the keys
        "rotation.py",  # who trades the main account at which session, pure
        "recent.py",  # rows as they were written last, kept in memory
        "relay.py",  # events out, in order
        "sweep.py",  # what was lost or is late
        "desk_clock.py",  # the time by which limits and leases run out
        "awaited.py",  # past decisions whose outcomes are still to come
        "strategies.py",  # every strategy ever tried: kept, counted
        "strategies.sql",  # its statements
        "bodies.py",  # trained models and other large bodies
        "letters.py",  # dead letters: send again, throw away
        "schedule.py",  # the clock that asks for jobs' cycles
        "schedule.sql",  # its statements
        "missed.py",  # which of the slots that have passed run, pure
    },
    "execution": {
        "books.py",  # double entry, pure
        "account.py",  # an account as the rules see it, pure
        "errors.py",  # why it says no
        "approvals.py",  # what may be executed: validated, approved, in time
        "record.py",  # whether a command is the one on record, pure
        "clock.py",  # an account moves on to a session, pure
        "changes.py",  # what that leaves to write, pure
        "stops.py",  # stop orders on what exits leave, pure
        "snapshots.py",  # what it was worth at each close, pure
        "reads.py",  # all that is read from the market
        "rows.py",  # the tables' rows, and back
        "halt.py",  # the kill switch
    },
    "risk": {
        "review.py",  # the model's half; logic.py is the rules' half
        "exits.py",  # the rules on proposed exits, pure
    },
    "assessment": {
        "reads.py",  # the journalled reads behind past decisions' outcomes
        "strategy.py",  # the other half: what a strategy is worth
    },
    "exit_signal": {
        "rules.py",  # the table of exit rules, pure
        "distance.py",  # how far a position is from each, pure
        "terms.py",  # what is set for single positions
        "history.py",  # months and peaks from closes, pure
        "report.py",  # results, snapshots, flags and formats, pure
        "reads.py",  # the closes it reads
        "files.py",  # results saved as files
    },
    "strategy_training": {"compute.py"},  # the CPU work, a process that can be ended
    "strategy_backtest": {"compute.py"},  # the same
    "reporter": {"files.py"},  # reports saved as files
    "sentiment": {"sources.py", "reads.py"},  # candidate sources; their journalled reads
    "console": {
        "tree.py",  # the operation tree
        "accounts.py",  # an account's books as people see them
        "leaderboard.py",  # how pipelines did, beside cash and holding
        "schedule.py",  # the schedule's jobs and their newest runs
        "report.py",  # what a session brought to an account
        "report_text.py",  # the same as Markdown, pure
        "strategy.py",  # its shape for strategy cycles
        "strategies.py",  # every strategy tried
        "sizes.py",  # answers that fit a message
        "api.py",  # the HTTP API's paths
        "books.py",  # those about accounts and budgets
        "boards.py",  # those about what pipelines, strategies and sessions brought
        "upkeep.py",  # those about dead letters, schedule, halts, costs, the bus
        "costs.py",  # what models were paid for
        "bus.py",  # streams, consumers, who is there
        "bodies.py",  # what they take and say, and how that is described
        "asked_schema.py",  # how strict that description is
        "named.py",  # which cycle an address means
        "problems.py",  # what goes wrong, as it is told
        "session.py",  # a browser's way in
        "prices.py",  # bars for whoever draws them
        "watched.py",  # figures of the whole desk for whoever scrapes
        "watched.sql",  # its statements
        "events.py",  # the path of the live tail
        "tail.py",  # all events to many clients, without loss
        "event_log.py",  # events in the relay's order, from any position on
        "frames.py",  # how they travel: positions, filters, frames, pure
        "passing_on.py",  # what people want, over NATS to its owner
        "pages",  # the same as a person sees it: a file and a template a page
    },
    "provisioner": {"secrets.py"},  # keys and passwords for own servers
}
EDGES = {"cli", "mcp_server"}
"""Edges are shaped by their users, not by messages."""

# Files that are longer than the rest, each with its ceiling and its reason.
LONG_FILES = {
    "services/orchestrator/logic.py": 505,  # the state machine: one class, read in one sitting
}
LONG_FUNCTIONS: dict[str, int] = {}
FORBIDDEN_NAMES = {"utils", "helpers", "manager", "base", "common", "misc"}


def _python(root: Path) -> list[Path]:
    return [path for package in FILE_LINES_MAX for path in sorted((root / package).rglob("*.py"))]


def _folders(root: Path) -> list[Path]:
    return [p for p in sorted((root / "services").iterdir()) if (p / "__init__.py").is_file()]


def test_every_service_has_only_the_files_that_services_have(root: Path) -> None:
    for folder in _folders(root):
        if folder.name in EDGES:
            continue
        allowed = COMMON | FURTHER.get(folder.name, set())
        found = {path.name for path in folder.iterdir() if path.name != "__pycache__"}
        assert found <= allowed, f"{folder.name}: {sorted(found - allowed)}"
        assert {"__init__.py", "__main__.py"} <= found, folder.name


def test_the_list_of_further_files_is_not_longer_than_the_tree(root: Path) -> None:
    for service, names in FURTHER.items():
        for name in names:
            assert (root / "services" / service / name).exists(), f"{service}/{name} is gone"


def test_every_service_is_started_by_the_launcher(root: Path) -> None:
    folders = {folder.name for folder in _folders(root)} - EDGES
    assert folders == {*BACKBONE, *SERVICES}


def test_every_prompt_stands_beside_the_service_that_uses_it(root: Path) -> None:
    prompts = list((root / "services").rglob("*.md"))
    assert prompts
    assert {path.parent.name for path in prompts} == {"prompts"}


@pytest.mark.parametrize("package", ["contracts", "libs", "services"])
def test_no_module_is_named_after_nothing(root: Path, package: str) -> None:
    names = {path.stem for path in (root / package).rglob("*.py")}
    names |= {path.name for path in (root / package).rglob("*") if path.is_dir()}
    assert names & FORBIDDEN_NAMES == set()


def test_no_file_is_longer_than_can_be_read_in_one_sitting(root: Path) -> None:
    long = {}
    for path in _python(root):
        lines = len(path.read_text().splitlines())
        name = path.relative_to(root).as_posix()
        if lines > LONG_FILES.get(name, FILE_LINES_MAX[name.partition("/")[0]]):
            long[name] = lines
    assert long == {}


def test_no_function_is_longer_than_a_screen(root: Path) -> None:
    long = {}
    for path in _python(root):
        text = path.read_text()
        if len(text.splitlines()) <= FUNCTION_LINES_MAX[path.relative_to(root).parts[0]]:
            continue  # no room for a long one
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                name = f"{path.relative_to(root).as_posix()}:{node.name}"
                if lines > LONG_FUNCTIONS.get(name, FUNCTION_LINES_MAX[name.partition("/")[0]]):
                    long[name] = lines
    assert long == {}


def test_what_is_private_to_a_module_is_used_in_it(root: Path) -> None:
    needless = []
    for path in _python(root):
        tree = ast.parse(path.read_text())
        named = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        used = {node.id for node in named if isinstance(node.ctx, ast.Load)}
        # What a decorator hands on (a route, a fixture) is used elsewhere.
        own = {
            node.name for node in tree.body if isinstance(node, Defined) and not node.decorator_list
        }
        own |= {name for node in tree.body for name in _assigned(node)}
        private = {name for name in own if name.startswith("_") and not name.startswith("__")}
        needless += [f"{path.relative_to(root)}: {name}" for name in sorted(private - used)]
    assert needless == []


def _assigned(node: ast.stmt) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    yield from (each.id for each in targets if isinstance(each, ast.Name))


def test_the_exceptions_are_still_needed(root: Path) -> None:
    for name in LONG_FILES:
        usual = FILE_LINES_MAX[name.partition("/")[0]]
        assert len((root / name).read_text().splitlines()) > usual, name


def test_every_first_party_package_is_in_the_wheel(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert wheel == ["contracts", "libs", "services"]


@pytest.mark.parametrize("name", [*BACKBONE, *SERVICES])
def test_a_services_first_words_say_what_it_decides(name: str) -> None:
    words = importlib.import_module(f"services.{name}").__doc__ or ""
    assert len(words.strip().splitlines()) <= 4
    assert len(words.split()) >= 6


def test_every_migration_has_a_number_of_its_own(root: Path) -> None:
    names = sorted(p.name for p in (root / "libs/postgres/migrations").glob("*.sql"))
    numbers = [name[:4] for name in names]
    assert numbers == sorted({*numbers})
    assert all(number.isdigit() for number in numbers)
