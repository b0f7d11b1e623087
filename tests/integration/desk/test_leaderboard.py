"""Some days of two providers that take turns, on real prices: the table as calculated by hand."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest

from libs.llm.rules.provider import RulesProvider
from libs.market.replay.market import ReplayMarket, ReplayStore
from tests.fakes.paid_rules import USED, PaidRules
from tests.integration.conftest import OwnEnvironmentIn
from tests.integration.desk.caller import Json, wish
from tests.integration.desk.command_line import CommandLine, Said
from tests.integration.desk.conftest import Desk, desk_in

D = Decimal
DAYS = tuple(date(2012, *day) for day in ((6, 29), (7, 2), (7, 3), (7, 5), (7, 6), (7, 9), (7, 10)))
PIPELINES = [
    {"name": "paid", "provider": "paid"},
    {"name": "rules"},
]
LOOKER = {"name": "looker", "provider": "rules", "account": "run-0badcafe"}
IDLE = {"name": "idle", "provider": "rules", "account": "idle"}
ROTATION = {"account": "main", "order": ["paid", "rules"]}
COUNTED = len(DAYS) - 1
"""Of the last day's closes one account's is not known: nobody has moved its clock there."""
UNIVERSE = ["AAPL", "IBM", "MSFT"]


@dataclass
class Week:
    """What seven sessions have left: the cycles by day, the board, and the accounts' closes."""

    views: dict[date, Json] = field(default_factory=dict)
    board: Json = field(default_factory=dict)
    one: Json = field(default_factory=dict)
    lasting: Json = field(default_factory=dict)
    everything: Json = field(default_factory=dict)
    chosen: Json = field(default_factory=dict)
    equity: dict[str, dict[date, Decimal]] = field(default_factory=dict)
    said: Said = Said(0, "", "")
    nobody: Said = Said(0, "", "")

    def account(self, day: date, pipeline: str) -> str:
        found = {each["name"]: each["account"] for each in self.views[day]["pipelines"]}
        return str(found[pipeline])


@pytest.fixture(scope="module")
def week(make_open_dir: Callable[[], Path], own_environment_in: OwnEnvironmentIn) -> Iterator[Week]:
    """Seven sessions, each decided on by both pipelines; the last one only moves the clocks on."""
    with pytest.MonkeyPatch.context() as patch:
        providers = {"rules": RulesProvider(), "paid": PaidRules()}
        patch.setattr("libs.llm.registry.all_providers", lambda _: providers)
        folder = make_open_dir()
        with desk_in(folder, own_environment_in) as desk:
            lived = asyncio.run(live(desk))
            deskbus = CommandLine(desk.settings.data_dir, folder)
            lived.said = deskbus("leaderboard")
            lived.nobody = deskbus("leaderboard --pipeline nobody")
            yield lived


async def live(desk: Desk) -> Week:
    found = Week()
    async with desk.calling("user") as user:
        for day in DAYS:
            found.views[day] = await user.run(body(day))
        found.board = await user.query("leaderboard", pipelines=["paid", "rules"])
        for day in DAYS[:3]:
            await user.run(wish(as_of=str(day), universe=UNIVERSE, pipelines=[LOOKER]))
        # No rule buys what has no history: the account is opened and never trades.
        await user.run(wish(as_of=str(DAYS[0]), universe=["FB"], pipelines=[IDLE]))
        found.lasting = await user.query("leaderboard")
        found.everything = await user.query("leaderboard", everything=True)
        found.chosen = await user.query("leaderboard", rows=["looker@run-0badcafe", "paid@main"])
        found.one = await user.query("leaderboard", pipelines=["rules"], until=str(DAYS[3]))
    async with desk.postgres() as db:
        rows = await db.fetch("select account, session, equity from snapshots order by session")
    for row in rows:
        found.equity.setdefault(row["account"], {})[row["session"]] = row["equity"]
    return found


def body(day: date) -> Json:
    return wish(
        as_of=str(day), universe=UNIVERSE, pipelines=PIPELINES, rotation=ROTATION, timeout_s=120
    )


def expected(week: Week, pipeline: str) -> list[Decimal]:
    """The returns by the accounts' closes: of the account that was its own the session before."""
    returns = []
    for before, session in pairwise(DAYS[:COUNTED]):
        closes = week.equity[week.account(before, pipeline)]
        returns.append(closes[session] / closes[before])
    return returns


def row(week: Week, name: str) -> Json:
    return next(each for each in week.board["rows"] if each["name"] == name)


def chained(returns: list[Decimal]) -> Decimal:
    worth = D(1)
    for each in returns:
        worth *= each
    return ((worth - 1) * 100).quantize(D("0.0001"))


def test_the_pipelines_take_turns_on_the_main_account_and_else_trade_their_own(week: Week) -> None:
    for day, other in pairwise(DAYS):
        on_main = [name for name in ("paid", "rules") if week.account(day, name) == "main"]
        assert len(on_main) == 1
        assert week.account(other, on_main[0]) == on_main[0]
    assert all(view["status"] == "completed" for view in week.views.values())


@pytest.mark.parametrize("name", ["paid", "rules"])
def test_a_pipelines_return_is_that_of_the_accounts_it_decided_for(week: Week, name: str) -> None:
    found = row(week, name)

    assert (week.board["first"], week.board["last"]) == (str(DAYS[0]), str(DAYS[COUNTED - 1]))
    assert week.board["sessions"] == COUNTED - 1
    assert D(found["return_pct"]) == chained(expected(week, name)) != 0
    worth = [D(1)]
    for each in expected(week, name):
        worth.append(worth[-1] * each)
    deepest = max(1 - low / max(worth[: place + 1]) for place, low in enumerate(worth))
    assert D(found["max_drawdown_pct"]) == (deepest * 100).quantize(D("0.0001"))
    assert set(found["accounts"]) == {"main", name}


async def test_cash_stays_and_holding_is_equal_parts_of_the_candidates(week: Week) -> None:
    market = ReplayMarket(ReplayStore())

    async def close(ticker: str, day: date) -> Decimal:
        bars = await market.bars(ticker, day, 1)
        return D(str(bars["close"][-1]))

    # No split and no dividend lies in these days: the raw closes are the adjusted ones.
    first, last = DAYS[0], DAYS[COUNTED - 1]
    parts = [await close(name, last) / await close(name, first) for name in UNIVERSE]
    worth = sum(parts, D(0)) / len(parts)

    assert D(row(week, "cash")["return_pct"]) == D(row(week, "cash")["max_drawdown_pct"]) == 0
    assert D(row(week, "buy-and-hold")["return_pct"]) == chained([worth])
    assert sorted(week.board["universe"]) == UNIVERSE


def test_the_best_return_stands_first(week: Week) -> None:
    returns = [D(each["return_pct"]) for each in week.board["rows"]]

    assert returns == sorted(returns, reverse=True)
    assert len(returns) == 4


@pytest.mark.parametrize("name", ["paid", "rules"])
def test_counts_are_those_of_the_decisions_whose_sessions_are_counted(
    week: Week, name: str
) -> None:
    found, days = row(week, name), DAYS[: COUNTED - 1]
    made = [contracts(week, day, name) for day in days]
    picks = sum(
        len(each["daily_picks"]["picks"]) + len(each["daily_picks"]["sell_recommendations"])
        for each in made
    )
    vetoed = sum(len(each.get("decision_validation", NOTHING)["vetoed_tickers"]) for each in made)

    assert (found["decisions"], found["failed"]) == (len(days), 0)
    assert (found["picks"], found["vetoes"]) == (picks, vetoed)
    assert picks > 0, "nothing was picked, so nothing was shown"


NOTHING: Json = {"vetoed_tickers": []}


def contracts(week: Week, day: date, name: str) -> Json:
    found = next(each for each in week.views[day]["pipelines"] if each["name"] == name)
    made: Json = found["contracts"]
    return made


def test_only_what_was_paid_costs(week: Week) -> None:
    free, paid = row(week, "rules"), row(week, "paid")
    days = DAYS[: COUNTED - 1]

    assert free["usage"]["cost_usd"] == "0"
    assert sum(paid["usage"][sort] for sort in SORTS) == sum(
        week.views[day]["tokens"] for day in days
    )
    calls = D(paid["usage"]["cost_usd"]) / USED.cost_usd
    assert calls == calls.to_integral_value() > len(days) * 7
    assert paid["usage"]["cache_read_tokens"] == calls * USED.cache_read_tokens


SORTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


@pytest.mark.parametrize("name", ["paid", "rules"])
def test_hits_are_filled_picks_that_went_their_way_in_five_sessions(week: Week, name: str) -> None:
    outcomes: dict[tuple[str, str], bool] = {}
    for view in week.views.values():
        for pipeline in view["pipelines"]:
            for told in pipeline["contracts"]["agent_memory"]["outcomes"]:
                if told["pipeline"] != name or told["sessions"] != 5:
                    continue
                for pick in told["picks"]:
                    if pick["fate"] == "filled":
                        sold, moved = pick["action"] == "sell", D(pick["return_pct"])
                        key = (told["cycle_id"], pick["ticker"])
                        outcomes[key] = moved < 0 if sold else moved > 0

    found = row(week, name)
    assert (found["hits"], found["judged"]) == (sum(outcomes.values()), len(outcomes))
    assert outcomes, "no pick was judged, so nothing was shown"


def test_one_pipeline_up_to_a_day_is_compared_on_the_sessions_of_its_own(week: Week) -> None:
    board = week.one

    assert [each["name"] for each in board["rows"] if each["kind"] == "pipeline"] == ["rules"]
    assert board["last"] <= str(DAYS[3])
    mine = next(each for each in board["rows"] if each["name"] == "rules")
    assert D(mine["return_pct"]) == chained(expected(week, "rules")[: board["sessions"]])


def test_the_command_shows_the_table(week: Week) -> None:
    assert week.said.code == 0, week.said.err
    lines = [" ".join(line.split()) for line in week.said.out.splitlines()]
    assert lines[0].startswith(f"leaderboard {COUNTED - 1} sessions, ")
    shown = [line.split()[0] for line in lines[3:7]]
    assert sorted(shown) == ["buy-and-hold", "cash", "paid", "rules"]
    assert any("equal parts of" in line for line in lines)


def test_a_pipeline_that_never_ran_is_not_found_and_the_others_are_named(week: Week) -> None:
    assert week.nobody.code == 3
    assert "there are paid, rules" in week.nobody.err


def keys(board: Json) -> set[tuple[str, str]]:
    """The pipelines of the board, each with the account that it trades."""
    rows = board["rows"]
    return {(each["name"], each["account"]) for each in rows if each["kind"] == "pipeline"}


def test_throw_away_accounts_and_those_that_never_traded_are_out_of_sight_but_counted(
    week: Week,
) -> None:
    turns = {("paid", "main"), ("rules", "main")}
    others = {("looker", "run-0badcafe"), ("idle", "idle")}

    assert (keys(week.lasting), week.lasting["hidden"]) == (turns, 2)
    assert (keys(week.everything), week.everything["hidden"]) == (turns | others, 0)


def test_a_row_with_few_sessions_is_not_ranked_and_leaves_the_others_theirs(week: Week) -> None:
    looker = next(each for each in week.everything["rows"] if each["name"] == "looker")

    assert not looker["compared"]
    assert (looker["sessions"], week.everything["sessions"]) == (2, COUNTED - 1)
    assert D(looker["return_pct"]) == chained(account_returns(week, "run-0badcafe"))
    assert "not ranked" in week.everything["message"]
    assert "looker@run-0badcafe" in week.everything["message"]


def account_returns(week: Week, account: str) -> list[Decimal]:
    closes = week.equity[account]
    return [closes[day] / closes[before] for before, day in pairwise(sorted(closes))]


def test_rows_that_are_chosen_are_compared_on_what_they_share(week: Week) -> None:
    assert keys(week.chosen) == {("looker", "run-0badcafe"), ("paid", "main")}
    assert week.chosen["sessions"] == 2
    assert all(each["compared"] for each in week.chosen["rows"])


def test_curves_have_a_value_a_day_that_ends_at_the_return(week: Week) -> None:
    days = week.lasting["days"]

    assert (days[0], days[-1]) == (week.lasting["first"], week.lasting["last"])
    for each in week.lasting["rows"]:
        if each["kind"] != "cash":
            assert len(each["curve"]) == len(days) == COUNTED
            gained = (D(each["curve"][-1]) - 1) * 100
            assert abs(gained - D(each["return_pct"])) <= D("0.01")
