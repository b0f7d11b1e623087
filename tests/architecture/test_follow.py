"""deploy/kubernetes/cluster/follow.sh: which of two Postgres is the primary, and whose data stay.

psql and pg_basebackup are stand-ins here; with real ones it runs in tests/chaos/machines.py.
"""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

FAKES = {
    "psql": 'printf "%s" "$ROLE"; exit "$CODE"',
    "pg_basebackup": 'echo copied >> "$LOG"; exit "$COPIES"',
}


@dataclass(frozen=True)
class Case:
    """`postgres-NUMBER`, what the other one says it is (None: nothing), and what lies here."""

    about: str
    number: int
    other: str | None
    ends: int
    copies: bool
    here: Sequence[str] = ()
    timelines: Sequence[str] = ()


DATA = ("PG_VERSION",)
STANDBY = ("PG_VERSION", "standby.signal")
CASES = (
    Case("the very first start", 0, None, 0, copies=False),
    Case("a standby before its primary", 1, None, 1, copies=False),
    Case("the first start of a standby", 1, "primary 00000001", 0, copies=True),
    Case("a standby comes back", 1, "primary 00000001", 0, copies=False, here=STANDBY),
    Case("a standby comes back alone: it stays one", 1, None, 0, copies=False, here=STANDBY),
    Case("the primary comes back", 0, "standby", 0, copies=False, here=DATA),
    Case("the primary comes back alone", 0, None, 0, copies=False, here=DATA),
    Case("its disk is gone: a person must promote", 0, "standby", 1, copies=False),
    Case("the old primary after a promotion", 0, "primary 00000002", 0, copies=True, here=DATA),
    Case("and without its disk", 0, "primary 00000002", 0, copies=True),
    Case(
        "the second promotion",
        1,
        "primary 0000000B",
        0,
        copies=True,
        here=DATA,
        timelines=("00000002", "0000000A"),
    ),
    Case(
        "the promoted one, after the old primary has started alone: its data stay",
        1,
        "primary 00000001",
        1,
        copies=False,
        here=DATA,
        timelines=("00000002",),
    ),
    Case("two primaries of one timeline", 0, "primary 00000001", 1, copies=False, here=DATA),
)


@pytest.fixture
def run(root: Path, tmp_path: Path) -> "Run":
    for name, text in FAKES.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "password").write_text("hush")
    return Run(root / "deploy/kubernetes/cluster/follow.sh", tmp_path)


@dataclass(frozen=True)
class Run:
    """The script with its stand-ins."""

    script: Path
    folder: Path

    @property
    def data(self) -> Path:
        return self.folder / "18" / "docker"

    @property
    def copied(self) -> bool:
        return (self.folder / "log").exists()

    def lay(self, names: Sequence[str], timelines: Sequence[str]) -> None:
        (self.data / "pg_wal").mkdir(parents=True)
        for name in (*names, *(f"pg_wal/{each}.history" for each in timelines)):
            (self.data / name).write_text("18")
        (self.data / "pg_wal" / ("0" * 7 + "F" * 17)).touch()

    def __call__(
        self, number: int, other: str | None, copies: int = 0
    ) -> "subprocess.CompletedProcess[str]":
        env = {
            "PATH": f"{self.folder}:{os.defpath}",
            "POD_NAME": f"postgres-{number}",
            "PGDATA": str(self.data),
            "PASSWORD_FILE": str(self.folder / "password"),
            "ROLE": other or "",
            "CODE": "0" if other else "2",
            "COPIES": str(copies),
            "LOG": str(self.folder / "log"),
        }
        return subprocess.run(
            ["sh", str(self.script)], env=env, capture_output=True, text=True, check=False
        )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.about)
def test_a_postgres_becomes_a_standby_where_the_other_is_the_primary(case: Case, run: Run) -> None:
    if case.here:
        run.lay(case.here, case.timelines)

    done = run(case.number, case.other)

    assert done.returncode == case.ends, done.stderr
    assert run.copied == case.copies
    assert "hush" not in done.stdout + done.stderr
    if case.here:
        kept = (run.data / "PG_VERSION").exists()
        assert kept == (not case.copies), "nothing of an old primary is left, and all of another"


def test_a_copy_that_was_interrupted_is_made_anew_and_never_started(run: Run) -> None:
    assert run(0, "primary 00000002", copies=1).returncode == 1
    run.lay(DATA, ())  # what the copy had brought so far

    for other in (None, "standby"):
        done = run(0, other)
        assert done.returncode == 1
        assert "was not finished" in done.stderr
    assert run(0, "primary 00000002").returncode == 0
    assert run(0, None).returncode == 0, "and then it is whole"
