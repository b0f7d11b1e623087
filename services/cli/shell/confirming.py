"""What changes much is shown first, with a hash; the same command with that hash does it."""

from typing import Annotated

import typer

from services.cli.shell.problem import CliProblem, ExitCode, WrongUsage
from services.cli.shell.terminal import aside

HASH_CHARS = 12
HASH_CHARS_MIN, HASH_CHARS_MAX = 8, 64

HashOption = Annotated[
    str | None,
    typer.Option(
        "--hash", help="The hash shown before, or its first 8 or more characters, to confirm."
    ),
]


def whole_hash(given: str, known: str) -> str:
    """The whole hash. Raises `CliProblem` where another thing is shown than was confirmed."""
    if len(given) < HASH_CHARS_MIN:
        raise WrongUsage(f"--hash needs its first {HASH_CHARS_MIN} characters or more")
    if known.startswith(given.lower()):
        return known
    raise CliProblem(
        f"the hash is {known[:HASH_CHARS] or 'none'}, not {given[:HASH_CHARS]}: it was confirmed "
        "before, or something has changed",
        "nothing was changed; check it again without --hash",
        ExitCode.REJECTED,
    )


def tell_how(command: str, digest: str) -> None:
    """Say how it is done: what was shown, confirmed."""
    aside("\nnothing has changed yet; to do it:")
    aside(f"  {command} --hash {digest[:HASH_CHARS]}", "")
