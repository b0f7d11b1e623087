"""What all commands share: examples that parse, help, suggestions, completion."""

import re
import shlex
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from typer import Context

from services.cli import main as cli
from services.cli.shell.examples import EXAMPLES
from services.cli.shell.problem import ExitCode
from tests.docs_commands import PROGRAM as ROOT
from tests.docs_commands import parse

LEAKS = re.compile(r"^ +--.*<[^>]*(\b(str|int|float|path|list|UUID)\b|%Y)[^>]*>", re.MULTILINE)

SETTINGS = """
[schedule.jobs.decide]
kind = "decision"
when = "close"
[providers.mine]
preset = "vllm"
"""


def _leaves(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every command by what is typed after `deskbus`."""
    names = cli.ENTRIES if group is ROOT else getattr(group, "commands", {})
    for name in names:
        command = ROOT.get_command(None, name) if group is ROOT else group.commands[name]
        below = f"{path} {name}".strip()
        if getattr(command, "commands", None):
            yield from _leaves(command, below)
        else:
            yield below, command


LEAVES = dict(_leaves(ROOT))


@pytest.mark.parametrize("path", list(LEAVES))
def test_every_command_has_examples_in_its_help(path: str) -> None:
    assert EXAMPLES.get(path), f"services/cli/shell/examples.py has no example of `deskbus {path}`"
    command = LEAVES[path]
    text = command.get_help(command.context_class(command, info_name=path))
    assert "Examples:" in text
    assert all(example in text for example in EXAMPLES[path])


@pytest.mark.parametrize(
    "example", [example for path in LEAVES for example in EXAMPLES.get(path, ())]
)
def test_every_example_can_be_read(example: str) -> None:
    program, *words = shlex.split(example)
    assert program == "deskbus"
    assert "examples/" not in example, "a folder of the checkout, which a wheel does not bring"
    parse(words)


@pytest.mark.parametrize("path", list(LEAVES))
def test_no_option_shows_a_type_of_the_program(path: str) -> None:
    command = LEAVES[path]
    text = command.get_help(command.context_class(command, info_name=path))
    assert LEAKS.search(text.partition("Examples:")[0]) is None, text


@pytest.mark.parametrize("name", list(cli.ENTRIES))
def test_the_help_of_a_group_cuts_no_sentence_and_has_examples(name: str) -> None:
    group = ROOT.get_command(None, name)
    text = group.get_help(group.context_class(group, info_name=name))
    assert "..." not in text.partition("Commands:")[2].partition("Examples:")[0]
    assert f"Examples:\n    deskbus {name}" in text


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("why 1a2b3c4d", "unknown command 'why'; did you mean cycle show?"),
        ("cycl list", "unknown command 'cycl'; did you mean cycle?"),
        ("xyzzy", "`deskbus --help` lists the commands"),
        ("exit AAPL", "unknown command 'exit AAPL'; did you mean exit now AAPL?"),
        ("cycle lst 12", "unknown command 'cycle lst'; did you mean cycle list?"),
        ("cycle list --limt 3", "No such option: --limt (Possible options: --limit)"),
        ("cycle list --status comleted", "'comleted' is not one of 'running', 'completed'"),
        ("cycle cancel", "Missing argument 'cycle_id'"),
        ("portfolio deposit -5", "No such option: -5"),
    ],
)
def test_a_mistake_in_a_command_is_a_sentence_and_exit_2(
    typed: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["deskbus", *typed.split()])
    with pytest.raises(SystemExit) as ended:
        cli.main()

    assert ended.value.code == ExitCode.USAGE
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.out == ""


@pytest.fixture
def _logging_as_before() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.mark.usefixtures("_logging_as_before")
def test_the_shell_completes_names_of_the_settings_and_is_silent_without_a_desk(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "deskbus.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)

    def completed(path: str, name: str, typed: str) -> list[str]:
        param = next(p for p in LEAVES[path].params if p.name == name)
        return [item.value for item in param.shell_complete(Context(LEAVES[path]), typed)]

    assert completed("schedule run", "job", "de") == ["decide"]
    assert completed("cycle list", "status", "comp") == ["completed"]
    assert completed("run", "universe", "AAPL,MS") == ["AAPL,MSFT"]
    assert completed("cycle show", "cycle_id", "") == []
    assert completed("portfolio show", "account", "") == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("path", list(LEAVES))
def test_where_a_cycle_is_named_last_is_the_newest(path: str) -> None:
    named = [param for param in LEAVES[path].params if param.name in {"cycle", "cycle_id", "op_id"}]
    for param in named:
        assert "`last`" in param.help or param.default == "last", f"deskbus {path}: {param.help}"


@pytest.mark.parametrize("usual", sorted(set(cli.ELSEWHERE.values())))
def test_the_usual_word_leads_to_a_command_that_there_is(usual: str) -> None:
    assert usual in LEAVES or usual in cli.ENTRIES
