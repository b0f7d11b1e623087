"""Do the fast tests notice a change? `python -m benchmarks.mutants [ROOT] --count 300 --seed 18`.

Draws places in contracts, libs and services by a fixed seed, changes one at a time in a copy of
the tree, and runs the tests that run its line: unit and flow tests that are not slow. Architecture
tests read source text and decide nothing here. Three outcomes:

- noticed: a test fails, does not end in time, or the changed module cannot be imported;
- survived: all tests that were run pass;
- not run: no fast test runs the line; integration, chaos and browser tests may.

One run under coverage.py says which test runs which line. A line that runs at import is decided by
the tests that run any line of its module, and of the modules that import it. ROOT is another
checkout to compare with. The folder of the work (`--work`) keeps the copy and an outcome a line in
results.jsonl, where an interrupted run goes on; one with more `--seconds` tries the survivors whose
tests took longer than was allowed.
"""

import argparse
import ast
import hashlib
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from benchmarks.mutations import PRODUCT, Mutant, drawn

TESTS: Final = ("tests/unit", "tests/flow")
LEFT_OUT: Final = shutil.ignore_patterns(".*", "__pycache__", "node_modules", "build", "dist")
CPU_S_MIN: Final = 60
"""Processor time that a changed tree gets, or ten times what its tests took, if that is more."""
OUTCOMES: Final = {True: "noticed", False: "survived", None: "not run"}


def in_child(work: Callable[[], int], cpu_s: float | None = None) -> int:
    """A function's exit code, in a fork with its own limit of processor time; -1 if it was ended.

    Waiting is limited as well, since a change can make a test wait for ever.
    """
    child = os.fork()
    if child == 0:
        os.setsid()
        if cpu_s is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s), int(cpu_s) + 1))
        code = 3
        try:
            code = work()
        finally:
            sys.stdout.flush()
            os._exit(code)
    ends_at = None if cpu_s is None else time.monotonic() + 3 * cpu_s
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if ends_at is not None and time.monotonic() > ends_at:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(ended[1]) if os.WIFEXITED(ended[1]) else -1


def run_tests(tree: Path, files: Iterable[str], plugin: object, log: Path) -> int:
    """pytest's exit code on some files of the copy; what it says goes into a log."""
    os.chdir(tree)
    out = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.environ["PYTHONPATH"] = str(tree)
    sys.path.insert(0, str(tree))
    sys.dont_write_bytecode = not isinstance(plugin, Recorder)
    for name in [name for name in sys.modules if name.split(".")[0] == "benchmarks"]:
        del sys.modules[name]  # the copy has its own
    options = ["-q", "-m", "not slow", "-p", "no:cacheprovider", "--hypothesis-seed=18"]
    options += ["--tb=line", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    stop = [] if isinstance(plugin, Recorder) else ["-x", "--timeout=60"]
    return int(pytest.main([*options, *stop, *files], plugins=[plugin]))


class Recorder:
    """A pytest plugin: which test runs which line, how long each takes, and which pass."""

    def __init__(self, tree: Path, into: Path) -> None:
        coverage = importlib.import_module("coverage")
        sources = [str(tree / package) for package in PRODUCT]
        self.coverage = coverage.Coverage(data_file=None, source=sources, config_file=False)
        self.tree, self.into = tree, into
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Lines run from here on are this test's."""
        self.coverage.switch_context(item.nodeid)
        began = time.process_time()
        result = yield
        self.seconds[item.nodeid] = time.process_time() - began
        self.coverage.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that fails or is skipped without a change decides nothing."""
        if not report.passed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write it down."""
        self.coverage.stop()
        data = self.coverage.get_data()
        lines = {
            Path(file).relative_to(self.tree).as_posix(): {
                line: [test for test in tests if test and test not in self.failed]
                for line, tests in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        loaded = [n for n, m in sys.modules.items() if "site-packages" in (m_file(m) or "")]
        facts = {"lines": lines, "seconds": self.seconds, "failed": sorted(self.failed)}
        self.into.write_text(json.dumps({**facts, "loaded": loaded}))


def m_file(module: object) -> str | None:
    """Where a loaded module comes from."""
    return getattr(module, "__file__", None)


class Chosen:
    """A pytest plugin: of the files that were named only these tests, in this order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.order = {test: place for place, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the chosen ones."""
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order),
            key=lambda item: self.order[item.nodeid],
        )


class Tree:
    """A copy of a checkout, and which of its tests decide about a line."""

    def __init__(self, root: Path, work: Path) -> None:
        self.path, self.work = work / "tree", work
        facts = work / "lines.json"
        if not facts.exists():
            shutil.rmtree(self.path, ignore_errors=True)
            shutil.copytree(root, self.path, ignore=LEFT_OUT, symlinks=True)
            print("one run of the tests under coverage.py", flush=True)
            log = work / "coverage.log"
            in_child(lambda: run_tests(self.path, TESTS, Recorder(self.path, facts), log))
            print(log.read_text().splitlines()[-1])
        known = json.loads(facts.read_text())
        self.lines: dict[str, dict[str, list[str]]] = known["lines"]
        self.seconds: dict[str, float] = known["seconds"]
        self.failed = frozenset(known["failed"])
        self.breadth = Counter(
            test for lines in self.lines.values() for tests in lines.values() for test in tests
        )
        self.importers = self._importers()
        for name in known["loaded"]:  # once, for all forks
            if "pytest" not in name and not name.startswith(("_pytest", "hypothesis", "anyio")):
                with suppress(Exception):
                    importlib.import_module(name)

    def _importers(self) -> dict[str, set[str]]:
        """Who imports a module, by its dotted name."""
        importers: dict[str, set[str]] = {}
        for file in (f for top in (*PRODUCT, *TESTS) for f in (self.path / top).rglob("*.py")):
            path = file.relative_to(self.path).as_posix()
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and node.module:
                    names = [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
                else:
                    continue
                for name in names:
                    importers.setdefault(name, set()).add(path)
        return importers

    def deciders(self, mutant: Mutant) -> Sequence[str]:
        """The tests that run the line; those that run the least else come first."""
        lines = self.lines.get(mutant.path, {})
        if not mutant.at_import:
            span = range(mutant.line, mutant.end_line + 1)
            tests = self._narrow_first(test for line in span for test in lines.get(str(line), ()))
            files = {test.split("::")[0] for test in tests}
            # What a fixture of a whole file runs counts for its first test only.
            return list(dict.fromkeys([*tests, *self._narrow_first(self._of_files(files))]))
        module = mutant.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        users = self.importers.get(module, set())
        indirect = (
            test for user in users for tests in self.lines.get(user, {}).values() for test in tests
        )
        groups = (
            (test for tests in lines.values() for test in tests),
            self._of_files(users),
            indirect,
        )
        return list(dict.fromkeys(t for group in groups for t in self._narrow_first(group)))

    def _of_files(self, files: set[str]) -> Iterator[str]:
        return (t for t in self.seconds if t.split("::")[0] in files and t not in self.failed)

    def _narrow_first(self, tests: Iterable[str]) -> Sequence[str]:
        return sorted(set(tests), key=lambda test: (self.breadth[test], test))

    def outcome(self, mutant: Mutant, seconds: float) -> dict[str, Any]:
        """Change the line, run its tests for at most these recorded seconds, change it back."""
        chosen: list[str] = []
        deciders, total = self.deciders(mutant), 0.0
        for test in deciders:
            total += self.seconds[test]
            if chosen and total > seconds:
                break
            chosen.append(test)
        noticed: bool | None = None
        if chosen:
            file = self.path / mutant.path
            before, stat = file.read_text(encoding="utf-8"), file.stat()
            file.write_text(mutant.applied(before), encoding="utf-8")
            os.utime(file, (stat.st_atime, stat.st_mtime + 1000))  # what Python compiled is stale
            files = list(dict.fromkeys(test.split("::")[0] for test in chosen))
            try:
                code = in_child(
                    lambda: run_tests(self.path, files, Chosen(chosen), self.work / "last.log"),
                    max(CPU_S_MIN, 10 * total),
                )
            finally:
                file.write_text(before, encoding="utf-8")
                os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            if code == pytest.ExitCode.NO_TESTS_COLLECTED:
                raise RuntimeError(f"{mutant.name}: its tests were not collected: {chosen[:3]}")
            noticed = code != 0
        counts = {"tests": len(chosen), "of": len(deciders), "seconds": seconds}
        return {"mutant": mutant.name, "noticed": noticed, **counts}


def final(row: dict[str, Any] | None, seconds: float) -> bool:
    """Whether more tests of a mutant would change nothing, or are not asked for."""
    if row is None:
        return False
    return row["noticed"] is not False or row["tests"] == row["of"] or seconds <= row["seconds"]


def content(root: Path) -> str:
    """What a checkout's sources and tests are, as a short hash."""
    digest = hashlib.sha256()
    for file in sorted(f for top in (*PRODUCT, "tests") for f in (root / top).rglob("*.py")):
        digest.update(file.relative_to(root).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def main() -> None:
    """Run, and print how many were noticed, with the others by name."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path.cwd())
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--seconds", type=float, default=20, help="of tests a mutant, as recorded")
    parser.add_argument("--work", type=Path, help="default: a folder for temporary files")
    parser.add_argument("--only", help="only mutants that have this text in their name")
    args = parser.parse_args()
    root = args.root.resolve()
    os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), "1"))
    work = args.work or Path(tempfile.gettempdir()) / f"deskbus-mutants-{content(root)}"
    work.mkdir(parents=True, exist_ok=True)
    draw = drawn(root, args.count, args.seed)
    wanted = [mutant for mutant in draw if (args.only or "") in mutant.name]
    tree, results = Tree(root, work), work / "results.jsonl"
    done = {}
    if results.exists():
        done = {r["mutant"]: r for r in map(json.loads, results.read_text().splitlines())}
    todo = [m for m in wanted if not final(done.get(m.name), args.seconds)]
    began = time.monotonic()
    with results.open("a") as out:
        for number, mutant in enumerate(todo, 1):
            row = done[mutant.name] = tree.outcome(mutant, args.seconds)
            out.write(json.dumps(row) + "\n")
            out.flush()
            left = (time.monotonic() - began) / number * (len(todo) - number)
            percent = 100 * (len(wanted) - len(todo) + number) // len(wanted)
            outcome = OUTCOMES[row["noticed"]]
            print(
                f"{percent:3} % {left / 60:4.0f} min left  {outcome:8}  {mutant.name}", flush=True
            )
    rows = [done[mutant.name] for mutant in wanted]
    counts = Counter(OUTCOMES[row["noticed"]] for row in rows)
    print(", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES.values()))
    for noticed in (False, None):
        print(f"\n{OUTCOMES[noticed]}:")
        for row in rows:
            if row["noticed"] is noticed:
                print(f"  {row['mutant']}  ({row['tests']} of {row['of']} tests)")


if __name__ == "__main__":
    main()
