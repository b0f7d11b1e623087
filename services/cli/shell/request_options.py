"""The options that make up a request, for every command that sends one."""

from typing import Annotated

import typer

from contracts.constraints import ENFORCED
from services.cli.shell import completion

AS_OF_DEFAULT = "2010-05-06"
AS_OF_CHOSEN = (
    "the first session after the newest filing of the sample (10-Q of GOOG, 2010-05-05) at which"
    " the desk both buys and is cut by a rule"
)
"""Why that one. Found by trying: a change of the rules may move it."""

AsOfOption = Annotated[
    str | None,
    typer.Option(
        help=f"Decide as of this session's close, e.g. {AS_OF_DEFAULT}; no newer data is used."
    ),
]
UniverseOption = Annotated[
    list[str] | None,
    typer.Option(help="Only these tickers: AAPL,MSFT.", autocompletion=completion.tickers),
]
SourceOption = Annotated[
    list[str] | None,
    typer.Option(help="Only these candidate sources: screener,news,earnings, or one of your own."),
]
ProviderOption = Annotated[
    list[str] | None,
    typer.Option(help="Provider: NAME or PIPELINE=PROVIDER@ACCOUNT; may be repeated."),
]
TimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--timeout-s",
        help="The cycle's time limit in seconds; by default the desk's (setting `cycles`).",
    ),
]
ConstraintOption = Annotated[
    list[str] | None,
    typer.Option(
        help="KEY=VALUE, may be repeated. Enforced: " + ", ".join(ENFORCED) + "; others are notes."
    ),
]
MaxMoneyOption = Annotated[str | None, typer.Option(help="Most cash to spend on buys, e.g. 5000.")]
MaxTokensOption = Annotated[int | None, typer.Option(help="Most tokens the models may use.")]
MaxCostOption = Annotated[str | None, typer.Option(help="Most US dollars to spend on models.")]
