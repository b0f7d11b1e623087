"""The shape that all commands share: examples that parse, help without types, one voice."""

import re
import shlex
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from typer._click.exceptions import BadParameter

from services.cli import main as cli
from services.cli.shell import completion
from services.cli.shell.examples import EXAMPLES
from services.cli.shell.problem import ExitCode
from services.cli.shell.shape import ELSEWHERE, WHOLE_SENTENCE
from services.cli.trading.agent import DESIGN_HINT

ROOT: Any = cli.typer.main.get_command(cli.app)
LEAKS = re.compile(r"<[^>]*(\b(str|int|float|path|list|UUID)\b|%Y)[^>]*>|\d<=x|\{[a-z_]+\}")

ENDS = "running, completed, failed, cancelled, rejected, expired"
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


def _parse(words: list[str]) -> None:
    """Parse a command line without running the command; raises where it cannot be read."""
    context, group = ROOT.make_context("deskbus", list(words)), ROOT
    while getattr(group, "commands", None) is not None or group is ROOT:
        rest = [*context._protected_args, *context.args]
        if not rest:
            return
        name, command, rest = group.resolve_command(context, rest)
        context, group = command.make_context(name, rest, parent=context), command


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
    _parse(words)


@pytest.mark.parametrize("path", list(LEAVES))
def test_no_help_shows_a_type_of_the_program(path: str) -> None:
    command = LEAVES[path]
    text = command.get_help(command.context_class(command, info_name=path))
    assert LEAKS.search(text.partition("Examples:")[0]) is None, text


@pytest.mark.parametrize("name", list(cli.ENTRIES))
def test_the_help_of_a_group_cuts_no_sentence_and_has_examples(name: str) -> None:
    group = ROOT.get_command(None, name)
    text = group.get_help(group.context_class(group, info_name=name))
    assert "..." not in text.partition("Commands:")[2].partition("Examples:")[0]
    assert f"Examples:\n  deskbus {name}" in text
    assert LEAKS.search(text) is None, text
    below = getattr(group, "commands", {}).values()
    assert all(
        len(command.get_short_help_str(WHOLE_SENTENCE)) < WHOLE_SENTENCE for command in below
    )


@pytest.mark.parametrize(
    ("typed", "message", "hint"),
    [
        (
            "why 1a2b3c4d",
            "unknown command 'why': use `deskbus cycle show`",
            "deskbus cycle show 1a2b3c4d",
        ),
        ("cycl list", "unknown command 'cycl'; did you mean cycle?", "deskbus cycle list"),
        ("limits", "the limits are in `deskbus config`", "deskbus config"),
        ("limit", "unknown command 'limit'", "`deskbus --help` lists the commands"),
        ("evnts", "unknown command 'evnts'", "`deskbus --help` lists the commands"),
        (
            "portfolio deposit -5",
            "invalid deposit: amount: must be more than 0",
            "",
        ),
        (
            "portfolio withdraw -1,000.50",
            "AMOUNT must be an amount, e.g. 1000 or 250.50 (got '-1,000.50')",
            "",
        ),
        (
            "report -5",
            "SESSION must be a date, e.g. 2012-06-29 (got '-5')",
            "",
        ),
        (
            "dlq show -5",
            "NUMBER must be a number of at least 1",
            "`deskbus dlq show --help` says how",
        ),
        (
            "portfolio deposit 5 -x",
            "unknown option -x",
            "`deskbus portfolio deposit --help` says how",
        ),
        (
            "cycle shw 12",
            "unknown command 'cycle shw'; did you mean show?",
            "deskbus cycle show 12",
        ),
        (
            "cycle list --limt 3",
            "unknown option --limt; did you mean --limit?",
            "deskbus cycle list --limit 3",
        ),
        (
            "cycle list --limit 500",
            "--limit must be a number from 1 to 200 (got '500')",
            "`deskbus cycle list --help` says how",
        ),
        (
            "cycle list --status comleted",
            f"--status must be one of {ENDS} (got 'comleted'); did you mean completed?",
            "deskbus cycle list --status completed",
        ),
        (
            "up --port x",
            "--port must be a number from 0 to 65535 (got 'x')",
            "`deskbus up --help` says how",
        ),
        (
            "market show AAPL --as-of 2012-13-01",
            "--as-of must be a date, e.g. 2012-06-29 (got '2012-13-01')",
            "`deskbus market show --help` says how",
        ),
        ("cycle cancel", "CYCLE is missing", "deskbus cycle cancel 28f4da97"),
        (
            "agent trigger --spec missing.yaml --wait",
            "missing.yaml cannot be read: No such file or directory",
            DESIGN_HINT,
        ),
        (
            "schedule replay",
            "--since is missing",
            EXAMPLES["schedule replay"][0],
        ),
    ],
)
def test_what_is_typed_wrong_is_said_in_one_voice_with_a_command_that_works(
    typed: str,
    message: str,
    hint: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["deskbus", *typed.split()])
    with pytest.raises(SystemExit) as ended:
        cli.main()

    assert ended.value.code == ExitCode.USAGE
    advice = f"  → {hint}\n" if hint else ""
    assert capsys.readouterr().err == f"deskbus: {message}\n{advice}"


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
        return [item.value for item in param.shell_complete(None, typed)]

    assert completed("schedule run", "job", "de") == ["decide"]
    assert completed("cycle request", "kind", "") == ["decision", "exit"]
    assert completed("run", "universe", "AAPL,ms") == ["AAPL,MSFT"]
    assert completed("tail", "pattern", "order_f") == ["order_filled"]
    assert completed("logs", "service", "post") == ["postgres"]
    assert completed("run", "provider", "mi") == ["mine", "minimax"]
    assert completed("cycle show", "cycle_id", "") == []
    assert completed("portfolio show", "account", "") == []
    assert capsys.readouterr() == ("", "")
    assert set(completion.COMPLETED) >= {"kind", "cycle_id", "account", "ticker", "job", "names"}


TAKE_ARGUMENTS = {
    path: sum(param.param_type_name == "argument" for param in command.params)
    for path, command in LEAVES.items()
}


@pytest.mark.parametrize("path", [path for path, count in TAKE_ARGUMENTS.items() if count])
def test_a_negative_number_is_no_unknown_option_of_a_command_that_takes_arguments(
    path: str,
) -> None:
    command = LEAVES[path]
    try:
        context = command.make_context(path, ["-5.25"] * TAKE_ARGUMENTS[path])
    except BadParameter:
        return  # it is read, and refused for what it is
    assert "-5.25" in str(context.params)


@pytest.mark.parametrize("path", list(LEAVES))
def test_where_a_cycle_is_named_last_is_the_newest(path: str) -> None:
    named = [param for param in LEAVES[path].params if param.name in {"cycle", "cycle_id", "op_id"}]
    for param in named:
        assert "`last`" in param.help or param.default == "last", f"deskbus {path}: {param.help}"


@pytest.mark.parametrize("usual", sorted(set(ELSEWHERE.values())))
def test_the_usual_word_leads_to_a_command_that_there_is(usual: str) -> None:
    assert usual in LEAVES or usual in cli.ENTRIES
