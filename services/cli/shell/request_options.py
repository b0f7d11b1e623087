"""The options that make up a request, for every command that sends one."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Annotated, TypeVar

import typer

from contracts.constraints import ENFORCED
from services.cli.shell import completion
from services.cli.shell.options import ApprovalOption, with_options

Options = TypeVar("Options", bound="RequestOptions")

AS_OF_DEFAULT = "2010-05-06"
AS_OF_CHOSEN = (
    "the first session after the newest filing of the sample (10-Q of GOOG, 2010-05-05) at which"
    " the desk both buys and is cut by a rule"
)
"""Why that one. Found by trying: a change of the rules may move it."""

UniverseOption = Annotated[
    list[str] | None,
    typer.Option(help="Only these tickers: AAPL,MSFT.", autocompletion=completion.tickers),
]
KeyOption = Annotated[
    str | None,
    typer.Option(help="Idempotency key: repeating the same request with it starts nothing new."),
]
WaitOption = Annotated[
    bool, typer.Option("--wait", help="Wait for the cycle to end, then show it.")
]


@dataclass(frozen=True)
class RequestOptions:
    """The options of every request for a cycle."""

    as_of: Annotated[
        str | None,
        typer.Option(
            help=f"Decide as of this session's close, e.g. {AS_OF_DEFAULT}; no newer data is used."
        ),
    ] = None
    universe: UniverseOption = None
    timeout_s: Annotated[
        float | None,
        typer.Option(
            "--timeout-s",
            help="The cycle's time limit in seconds; by default the desk's (setting `cycles`).",
        ),
    ] = None
    max_tokens: Annotated[int | None, typer.Option(help="Most tokens the models may use.")] = None
    max_cost: Annotated[str | None, typer.Option(help="Most US dollars to spend on models.")] = None


@dataclass(frozen=True)
class DecisionOptions(RequestOptions):
    """The options of a request for a decision."""

    source: Annotated[
        list[str] | None,
        typer.Option(help="Only these candidate sources: screener,news,earnings, or your own."),
    ] = None
    provider: Annotated[
        list[str] | None,
        typer.Option(help="Provider: NAME or PIPELINE=PROVIDER@ACCOUNT; may be repeated."),
    ] = None
    constraint: Annotated[
        list[str] | None,
        typer.Option(
            help="KEY=VALUE, may be repeated. Enforced: "
            + ", ".join(ENFORCED)
            + "; others are notes."
        ),
    ] = None
    max_money: Annotated[
        str | None, typer.Option(help="Most cash to spend on buys, e.g. 5000.")
    ] = None
    approval: ApprovalOption = False


def takes(options: type[Options]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function whose first argument is a dataclass of `options`: it has an
    option for each of their fields, before its own."""

    return with_options(signature(options, eval_str=True).parameters.values(), options)
