"""A desk's record in a notebook: `deskbus export record`, then `python export_in_polars.py record`.

A second argument is the account; main by default.
"""

import signal
import sys
from pathlib import Path

import polars as pl

# A reader that has seen enough, such as `head`, ends this quietly.
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
folder, account = Path(sys.argv[1]), (*sys.argv[2:], "main")[0]
pl.Config.set_tbl_hide_dataframe_shape(True)


def table(name: str) -> pl.DataFrame:
    """One file of the export."""
    return pl.read_parquet(folder / f"{name}.parquet")


# Equity at each close; money paid in or taken out later is no return.
equity = table("snapshots").filter(pl.col("account") == account).sort("session")
curve = equity.select(
    "session",
    pl.col("equity").cast(pl.Float64),
    ((pl.col("equity") - pl.col("paid_in").diff().fill_null(0)) / pl.col("equity").shift(1) - 1)
    .cast(pl.Float64)
    .fill_null(0)
    .alias("change"),
).with_columns((pl.col("change") + 1).cum_prod().alias("growth"))
curve = curve.with_columns((pl.col("growth") / pl.col("growth").cum_max() - 1).alias("drawdown"))
print(curve.tail(5))

# What was traded: a fill belongs to an order, which knows its account and its decision.
orders = table("orders").select("order_id", "account", "ticker", "side", "cycle_id")
fills = table("fills").join(orders, on="order_id").filter(pl.col("account") == account)
print(
    fills.group_by("ticker", "side")
    .agg(pl.len().alias("fills"), pl.col("quantity").sum(), pl.col("fee").sum())
    .sort("ticker", "side")
)

# What models and tools were asked: an entry is the call as it is on record.
calls = table("journal").select(
    pl.col("entry").str.json_path_match("$.kind").alias("kind"),
    pl.col("entry").str.json_path_match("$.name").alias("name"),
    pl.col("entry").str.json_path_match("$.usage.cost_usd").cast(pl.Float64).alias("usd"),
)
print(calls.group_by("kind", "name").agg(pl.len(), pl.col("usd").sum()).sort("len")[-8:])
