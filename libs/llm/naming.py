"""Problems of the tickers that an answer names, in words that never quote them. Pure."""

from collections.abc import Collection, Sequence

from libs.runtime.errors import few

THIS_TICKER = "this ticker"
"""Stands in a tool's error for a ticker that the model made up."""


def strangers(
    field: str, names: Sequence[str], known: Collection[str], why: str
) -> tuple[str, ...]:
    """A sentence for each name of a list that is not `known`: its place, `why`, and what there is.

    `assets.1: neither in the digest nor held; choose from AAPL, MSFT`.
    """
    choice = f"choose from {few([*known])}" if known else "leave it out"
    return tuple(
        f"{field}.{place}: {why}; {choice}" for place, name in enumerate(names) if name not in known
    )


def repeated(field: str, names: Sequence[str]) -> tuple[str, ...]:
    """A sentence for each name of a list that stands there before: `assets.2: the same ticker as
    assets.0; name it once`."""
    return tuple(
        f"{field}.{place}: the same ticker as {field}.{names.index(name)}; name it once"
        for place, name in enumerate(names)
        if name in names[:place]
    )
