"""Questions to a person: asked in a terminal; elsewhere an error names the options for them."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import typer

from services.cli.shell.problem import WrongUsage


def is_terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def is_confirmed(question: str) -> bool:
    """The answer to a yes-or-no question; no where nobody can be asked."""
    with _until_it_is_left():
        return is_terminal() and typer.confirm(question, default=False, err=True)


def answer_to(question: str) -> str:
    """The answer that a person types in a terminal."""
    with _until_it_is_left():
        return str(typer.prompt(question, err=True)).strip()


@contextmanager
def _until_it_is_left() -> Iterator[None]:
    """The end of the input ends the command as Ctrl-C does."""
    try:
        yield
    except typer.Abort:
        raise KeyboardInterrupt from None


@dataclass
class CommandQuestions:
    """Questions of one command. Outside a terminal they are gathered, and `settle` raises them all
    at once."""

    open: list[tuple[str, str]] = field(default_factory=list)
    answered: dict[str, set[str]] = field(default_factory=dict)
    """The answers that a person typed, by their option."""

    def ask(self, question: str, option: str, choices: Sequence[str] = ()) -> str | None:
        """The answer, one of `choices` where there are any; None where it has to wait."""
        shown = f"{question} ({', '.join(choices)})" if choices else question
        if not is_terminal():
            value = "|".join(choices)
            self.open.append((shown, f"{option} {value}".strip()))
            return None
        while True:
            answer = answer_to(shown)
            if not choices or answer in choices:
                self.answered.setdefault(option.split(maxsplit=1)[0], set()).add(answer)
                return answer

    def options(self) -> Sequence[str]:
        """The options that give the same answers; none for one that was asked for several times and
        answered in several ways."""
        one = ((option, *answers) for option, answers in self.answered.items() if len(answers) == 1)
        return [word for pair in one for word in pair]

    def settle(self, command: str) -> None:
        """Raise `CliProblem` with the questions that wait, and the options that answer them."""
        if self.open:
            texts = "; ".join(dict.fromkeys(text for text, _ in self.open))
            options = " ".join(dict.fromkeys(option for _, option in self.open))
            raise WrongUsage(texts, f"{command} {options}")
