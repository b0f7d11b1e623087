"""Opens accounts that hold shares, as their owner does at the command line."""

from collections.abc import Mapping

from tests.integration.desk.caller import Caller, Json


async def holding(owner: Caller, account: str, shares: Mapping[str, int], cash: str) -> Json:
    """Open an account with these shares and this cash at the newest session."""
    lines = [
        {
            "line": line,
            "ticker": ticker,
            "quantity": str(count),
            "cost": "1",
            "opened_on": "2013-01-02",
        }
        for line, (ticker, count) in enumerate(shares.items(), start=1)
    ]
    wish = {"account": account, "holdings": lines, "cash": cash}
    shown = await owner.ask(wish, "import_holdings", "execution")
    assert not shown.get("findings"), shown
    done = await owner.ask({**wish, "confirmed": shown["hash"]}, "import_holdings", "execution")
    assert done["opened"], done
    return done
