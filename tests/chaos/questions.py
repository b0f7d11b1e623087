"""Asks a desk over HTTP, of each decision and candidate, why it was not bought and what came of it.

    python -m tests.chaos.questions http://127.0.0.1:8000

Exit 1 with the questions whose answer is empty. It reads only. A short form runs in the suite
(tests/integration/desk/test_demo.py). For the demo's whole year: `deskbus demo`, then this.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.request import urlopen

import orjson

DECISIONS_MAX = 200
Read = Callable[[str], Any]
"""The JSON of a path below /api/v1."""


def unanswered(read: Read) -> list[str]:
    """Each question that a decision on record leaves without an answer; empty where all have one.

    Raises LookupError where no decision has a candidate to be asked about.
    """
    decisions = read(f"/decisions?limit={DECISIONS_MAX}")["decisions"]
    candidates = 0
    empty: list[str] = []
    for cycle_id in dict.fromkeys(decision["cycle_id"] for decision in decisions):
        for lane in read(f"/cycles/{cycle_id}")["pipelines"]:
            if lane["status"] == "running":
                continue  # a buy that waits for a person is neither bought nor refused yet
            where = f"{cycle_id[:8]}/{lane['name']}"
            execution = lane["contracts"].get("execution_result") or {}
            for ticker in _candidates(lane["contracts"], execution):
                candidates += 1
                if not _why_not(lane, ticker):
                    empty.append(f"{where}: why not {ticker}?")
            for order in execution.get("orders", ()):
                if order.get("type", "market") != "market":
                    continue
                if not _result(lane, order):
                    empty.append(f"{where}: what came of {order['side']} {order['asset']}?")
    if not candidates:
        raise LookupError(f"nothing to ask about in {len(decisions)} decisions")
    return empty


def _candidates(contracts: Mapping[str, Any], execution: Mapping[str, Any]) -> Iterator[str]:
    """The candidates that were not bought."""
    digest = contracts.get("signal_digest") or {}
    bought = {fill["asset"] for fill in execution.get("fills", ()) if fill["side"] == "buy"}
    waits = {
        order["asset"]
        for order in execution.get("orders", ())
        if (order["side"], order["status"]) == ("buy", "working")
    }
    for candidate in digest.get("candidates", ()):
        if candidate["ticker"] not in bought | waits:
            yield candidate["ticker"]


def _why_not(lane: Mapping[str, Any], ticker: str) -> bool:
    causes = [cause for cause in lane["not_bought"] if cause["ticker"] == ticker]
    return bool(causes) and all(cause["why"] or cause["value"] for cause in causes)


def _result(lane: Mapping[str, Any], order: Mapping[str, Any]) -> bool:
    """Whether an order has its gain, or the status that says why it has none yet."""
    return any(
        result["gain"] or result["status"] != "filled" or result["as_of"]
        for result in lane["results"]
        if (result["ticker"], result["side"]) == (order["asset"], order["side"])
    )


def reader(url: str) -> Read:
    """Reads from a desk's console."""

    def read(path: str) -> Any:
        with urlopen(f"{url}/api/v1{path}", timeout=60) as answer:
            return orjson.loads(answer.read())

    return read


if __name__ == "__main__":
    without = unanswered(reader(sys.argv[1].rstrip("/")))
    sys.exit("\n".join(without) or 0)
