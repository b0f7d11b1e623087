"""A plug-in's process: whatever the plug-in does, the desk goes on and says what was wrong."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from libs.runtime.own_code import source_file, source_sha256
from libs.runtime.plugin_process import ANSWER_BYTES_MAX, PluginAnswers, ask

SOURCE = """
import os, time

def half(buy):
    return buy["quantity"] // 2, "half of it"

def raises(buy):
    raise RuntimeError("not today")

def hangs(buy):
    time.sleep(60)

def huge(buy):
    return 0, "x" * 10_000_000

def nan(buy):
    return float("nan"), "x"

def prints(buy):
    print("noise", flush=True)
    os.write(1, b"noise")
    return 1, "printed"

def looks(buy):
    return [sorted(os.environ), os.getcwd(), len(os.listdir("/proc/self/fd"))]

def forks(buy):
    child = os.fork()
    if not child:
        time.sleep(60)
    return child, "forked"

def crashes(buy):
    os._exit(3)

def changes(buy):
    buy["quantity"] = 5

def writes(buy):
    with open(buy["file"], "w") as file:
        file.write("x")

def leaves(buy):
    raise SystemExit("bye")

def fills(buy):
    return [len(bytearray(4 * 1024**3))]
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DESKBUS_POSTGRES_DSN", "postgres://secret")
    file = tmp_path / "my_rules.py"
    file.write_text(SOURCE)
    return file


def asked(function: str, times: int = 1, **fields: object) -> PluginAnswers:
    question = {"quantity": 10, **fields}
    return asyncio.run(ask(f"my_rules:{function}", [question] * times))


def test_it_answers_each_question() -> None:
    answers = asked("half", times=2)
    assert [it.value for it in answers.answers] == [[5, "half of it"]] * 2
    assert answers.sha256 == source_sha256("my_rules")


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        ("raises", "RuntimeError: not today (line 8)"),
        ("nan", "its result holds NaN or an infinite number"),
        ("crashes", "its process ended before it did answer"),
        ("huge", f"its answer is longer than {ANSWER_BYTES_MAX:,} bytes"),
        ("hangs", "it did not answer within 1 s"),
        ("leaves", "SystemExit: bye"),
        ("fills", "MemoryError"),
        ("changes", "does not support item assignment"),
        ("nothing", "it cannot be loaded: AttributeError"),
    ],
)
def test_what_is_no_answer_is_a_problem_for_each_question(function: str, problem: str) -> None:
    began = time.monotonic()
    answers = asked(function, times=2).answers
    assert len(answers) == 2
    assert all(problem in it.problem for it in answers)
    assert time.monotonic() - began < 20


def test_a_line_that_cannot_be_parsed_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "my_rules.py").write_text("def half(buy):\n    return (\n")
    problem = asked("half").answers[0].problem
    assert "cannot be loaded: SyntaxError" in problem
    assert problem.count("line ") == 1


def test_what_it_prints_is_no_answer() -> None:
    assert asked("prints").answers[0].value == [1, "printed"]


def test_it_has_no_variable_of_the_desk_no_open_file_and_another_directory() -> None:
    variables, directory, files = asked("looks").answers[0].value  # type: ignore[misc]
    assert variables == ["LANG", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PATH"]
    assert directory == "/"
    # Its own three, the way back, the listing, and the request's.
    assert files <= 6  # type: ignore[operator]


def test_what_it_starts_ends_with_it() -> None:
    (answer,) = asked("forks").answers
    if answer.problem:  # no further process is allowed to anyone but root
        assert "BlockingIOError" in answer.problem
        return
    child = int(answer.value[0])  # type: ignore[index,arg-type,call-overload]
    for _ in range(100):
        stat = Path(f"/proc/{child}/stat")
        if not stat.exists() or stat.read_text().split()[2] == "Z":
            return
        time.sleep(0.05)
    os.kill(child, 9)
    pytest.fail("the process that it forked lives on")


def test_it_writes_nothing_into_a_file(tmp_path: Path) -> None:
    target = tmp_path / "out"
    assert "File too large" in asked("writes", file=str(target)).answers[0].problem
    assert target.read_text() == ""


def test_a_module_that_is_not_there_is_said(module: Path) -> None:
    module.unlink()
    answers = asked("half")
    assert answers.answers[0].problem == "module my_rules has no file here"
    assert answers.sha256 == ""


def test_a_broken_module_is_said_and_its_hash_is_known(module: Path) -> None:
    module.write_text("import nothing_of_this_name\n")
    assert "ModuleNotFoundError" in asked("half").answers[0].problem
    assert asked("half").sha256 == source_sha256("my_rules")


def test_a_source_is_found_without_loading_its_package(tmp_path: Path) -> None:
    package = tmp_path / "my_desk"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('it was loaded')")
    (package / "rules.py").write_text("x = 1")
    assert source_file("my_desk.rules") == package / "rules.py"
    assert source_file("my_desk.others") is None
