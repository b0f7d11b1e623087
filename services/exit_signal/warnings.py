"""Warnings about names in `exit_signals.toml` that nothing has, and on whose stops are. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from contracts.exit_signal import Holdings
from contracts.types import Failure, shortened
from contracts.venue import DESK_STOPS
from libs.quant.exits.history import NAMED_MAX, PriceHistory
from libs.runtime.errors import few
from libs.runtime.nearest import did_you_mean, nearest

UNKNOWN_TICKER = "unknown_ticker"
WARNING_CHARS_MAX = 400


def warnings_of(
    named: Mapping[str, str], histories: Mapping[str, PriceHistory | Failure], held: Iterable[str]
) -> list[str]:
    """The places of the positions' rules that name a ticker which the market source has not."""
    warnings, there = [], sorted(held)
    for ticker, place in named.items():
        had = histories.get(ticker)
        if isinstance(had, Failure) and had.code == UNKNOWN_TICKER:
            meant = did_you_mean(nearest(ticker, there))
            warnings.append(
                shortened(f"exit rules, {place}: {had.message}{meant}", WARNING_CHARS_MAX)
            )
    return warnings


def of_the_desk(holdings: Holdings) -> list[str]:
    """That stops are the desk's, of an account at a broker."""
    return [DESK_STOPS] if holdings.venue is not None else []


def accounts_unknown(owners: Mapping[str, str], known: Sequence[str]) -> list[str]:
    """The places of the positions' rules that name an account which there is not: nobody's
    position would ever be sold by them. Nothing where it is not told which there are."""
    return [
        shortened(
            f"exit rules, {place}: no account is named {owner}; there are {few(known)}"
            f"{did_you_mean(nearest(owner, known))}",
            WARNING_CHARS_MAX,
        )
        for owner, place in list(owners.items())[:NAMED_MAX]
        if known and owner not in known
    ]
