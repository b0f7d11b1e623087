"""A desk on a model whose price nobody set: its cost is unknown everywhere, and tokens bound it."""

import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.fakes import model_process
from tests.fakes.model_process import Manner
from tests.integration.desk.caller import Json
from tests.integration.desk.command_line import CommandLine, Said, ended, up

KEY = "planted-lab-0123456789"
ASKED = "cycle request --as-of 2012-06-29 --provider lab --provider paid --wait --json"


@dataclass(frozen=True)
class Shown:
    """What was said about a cycle of a model without a price, and of one beside it with one."""

    view: Json
    tree: list[Json]
    budget: Json
    texts: dict[str, str]
    pages: dict[str, str]
    over_tokens: Said
    no_money: Said


@pytest.fixture(scope="module")
def shown(
    make_open_dir: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("unpriced")
    with model_process.running(folder / "asked.jsonl", (KEY,), Manner()) as model:
        names = ("lab", "paid")
        providers = {
            name: {
                "base_url": f"{model.url}/v1",
                "models": dict.fromkeys(("small", "medium", "large"), f"{name}-1"),
            }
            for name in names
        }
        settings = (
            *((f"{name.upper()}_API_KEY", KEY) for name in names),
            ("DESKBUS_PROVIDERS", json.dumps(providers)),
            ("DESKBUS_PRICES", json.dumps({"paid-1": {"input": 1, "output": 2}})),
        )
        deskbus = CommandLine(make_open_dir() / "data", folder, settings)
        with up(deskbus) as (process, ready):
            said = deskbus(ASKED)
            assert said.code == 0, said.err
            (view,) = said.rows
            cycle = view["cycle_id"]
            texts = {
                command: deskbus(command).out
                for command in (
                    f"cycle show {cycle}",
                    f"operations tree {cycle}",
                    "cycle list",
                    "budget --days 7",
                    "leaderboard",
                    "doctor",
                    f"cycle show {cycle} --stage plan",
                )
            }
            with httpx2.Client(base_url=ready["http_url"], verify=False) as http:
                paths = (f"/cycles/{cycle}", "/cycles", "/costs", "/")
                pages = {path: http.get(path).text for path in paths}
            yield Shown(
                view=view,
                tree=deskbus(f"operations tree {cycle} --json").rows,
                budget=deskbus("budget --json").rows[0],
                texts=texts,
                pages=pages,
                over_tokens=deskbus(f"{ASKED} --max-tokens 20000"),
                no_money=deskbus(f"{ASKED} --max-cost 0"),
            )
            ended(process, signal.SIGINT)


def test_json_has_null_where_a_cost_is_unknown_and_the_cost_where_it_is_not(shown: Shown) -> None:
    assert (shown.view["status"], shown.view["cost_usd"]) == ("completed", None)
    assert shown.view["usage"]["cost_usd"] is None
    lanes = {node["name"]: node for node in shown.tree if node["type"] == "pipeline"}
    assert shown.tree[0]["cost_usd"] is None
    assert lanes["lab"]["cost_usd"] is None
    assert float(lanes["paid"]["cost_usd"]) > 0
    assert shown.budget["days"][0]["usage"]["cost_usd"] is None
    assert 0 < float(shown.budget["cost_usd_left"]) < 100


def test_every_command_and_page_says_unknown_and_never_0(shown: Shown) -> None:
    cycle = shown.view["cycle_id"]
    for command in (
        f"cycle show {cycle}",
        f"operations tree {cycle}",
        "cycle list",
        "budget --days 7",
        "leaderboard",
    ):
        assert "unknown" in shown.texts[command], (command, shown.texts[command])
        assert "$0.0000" not in shown.texts[command]
    for path in (f"/cycles/{cycle}", "/cycles", "/costs", "/"):
        assert "unknown" in shown.pages[path], path
    assert "lab-1 without a price" in shown.texts["doctor"]
    assert "paid-1 $1 in and $2 out" in shown.texts["doctor"]


def test_a_budget_in_tokens_bounds_a_model_without_a_price(shown: Shown) -> None:
    assert shown.over_tokens.code != 0
    (view,) = shown.over_tokens.rows
    assert "budget is used up" in json.dumps(view)
    assert "--max-tokens" in json.dumps(view)


def test_a_budget_of_no_money_refuses_what_costs_an_unknown_amount(shown: Shown) -> None:
    (view,) = shown.no_money.rows
    assert "an unknown cost" in json.dumps(view)
    assert view["tokens"] == 0


def test_the_tree_says_how_fast_a_model_writes(shown: Shown) -> None:
    calls = [node for node in shown.tree if node["type"] == "model"]
    assert calls
    assert all(call["metadata"]["output_tokens_s"] > 0 for call in calls)
    assert "tokens/s" in shown.texts[f"operations tree {shown.view['cycle_id']}"]
