"""A desk on Claude, on OpenAI and on the rules at once: the real SDKs, the real bus, a local model.

The model answers as the rules do, so all three pipelines must come to the same decision; some of
its answers are faults. The keys are planted: afterwards they are looked for everywhere, also the
one that an endpoint refuses and quotes whole.
"""

import asyncio
import hashlib
import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import orjson
import polars as pl
import pytest

from libs.postgres.pool import dsn_for
from libs.servers.binaries import find_postgres_bindir
from libs.servers.postgres_server import SUPERUSER
from tests.fakes import model_process
from tests.fakes.model_process import Manner
from tests.integration.desk.caller import Json
from tests.integration.desk.command_line import PATIENCE_S, CommandLine, Said, ended, up

KEYS = {
    "ANTHROPIC_API_KEY": "planted-claude-0123456789",
    "OPENAI_API_KEY": "planted-gpt-0123456789",
}
QUOTED = "planted-lab-0123456789"
"""A key that the model refuses, and names in its refusal."""
ASKED = "cycle request --as-of 2012-06-29 {providers} --key {key} --wait --json"
DESIGN_TOKENS = 30_000
"""What the model says that a design took to write: it leaves nothing of a day that has so many."""
DAY_S = 86_400
LOOK_S = 0.02
THREE = "--provider claude --provider openai --provider rules"


@dataclass(frozen=True)
class Evening:
    """What a desk with models has left behind."""

    view: Json
    evidence: Said
    pages: dict[str, str]
    """The console's page of each pipeline's decision."""
    replayed: Said
    audited: Said
    refused: Said
    designed: Json
    turned_away: httpx2.Response
    triggered: Said
    unpaid: Said
    left: Said
    free: Said
    tree: list[Json]
    budget: Json
    quoting: Said
    doctor: Json
    asked: list[Json]
    tables: dict[str, list[Json]]
    told: str
    dumped: str
    folder: Path


@pytest.fixture(scope="module")
def evening(
    make_open_dir: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Evening]:
    """One cycle by three pipelines; then everything that shows or keeps something is read."""
    folder = tmp_path_factory.mktemp("models")
    faulty = Manner(faulty=True, thirsty={"designer": DESIGN_TOKENS})
    with model_process.running(folder / "asked.jsonl", tuple(KEYS.values()), faulty) as model:
        providers = {
            "claude": {"base_url": model.url, "rate": {}},
            "openai": {"base_url": f"{model.url}/v1", "rate": {}},
            "lab": {
                "base_url": f"{model.url}/v1",
                "models": dict.fromkeys(("small", "medium", "large"), "lab-1"),
                "free": True,
            },
        }
        settings = (
            *KEYS.items(),
            ("LAB_API_KEY", QUOTED),
            ("DESKBUS_PROVIDERS", json.dumps(providers)),
            ("DESKBUS_LOG_LEVEL", "debug"),
        )
        deskbus = CommandLine(make_open_dir() / "data", folder, settings)
        with up(deskbus) as (process, ready):
            request = ASKED.format(providers=THREE, key="models")
            said = deskbus(request)
            assert said.code == 0, said.err
            (view,) = said.rows
            evidence = deskbus(f"cycle show {view['cycle_id']} --evidence AAPL")
            pages = pages_of(ready["http_url"], view)
            shown = [
                deskbus(f"cycle show {view['cycle_id']}"),
                evidence,
                deskbus(f"operations tree {view['cycle_id']}"),
                deskbus("config"),
                deskbus("doctor"),
            ]
            asked = model.asked()
            tree = deskbus(f"operations tree {view['cycle_id']} --json").rows
            before = deskbus("budget --json").rows[0]
            replayed = deskbus(f"cycle replay {view['cycle_id']} --json")
            others = json.dumps({"claude": {"models": {"small": "x", "medium": "y", "large": "z"}}})
            auditor = CommandLine(deskbus.data_dir, folder, (("DESKBUS_PROVIDERS", others),))
            audited = auditor(f"cycle replay {view['cycle_id']} --json")
            assert deskbus("budget --json").rows[0] == before, "a replay costs nothing"
            refused = deskbus(ASKED.format(providers="--provider minimax", key="refused"))
            doctor = {each["name"]: each for each in deskbus("doctor --json").rows}
            assert model.asked() == asked, "a replay asks no model"
            tables = asyncio.run(rows(deskbus.data_dir))
            quoting = deskbus(ASKED.format(providers="--provider lab", key="quoting"))
            shown.append(deskbus(f"cycle show {quoting.rows[0]['cycle_id']}"))
            shown += [deskbus("export parquet"), deskbus("db backup dump")]
            dumped = everything(folder) + repr(asyncio.run(rows(deskbus.data_dir)))
            left = deskbus("budget --json").rows[0]
            spent = left["tokens_max"] - left["tokens_left"]
            log = ended(process, signal.SIGINT)
        day_max = str(spent + DESIGN_TOKENS)
        poorer = CommandLine(
            deskbus.data_dir, folder, (*settings, ("DESKBUS_BUDGET_DAY_TOKENS_MAX", day_max))
        )
        with up(poorer) as (process, ready):
            with httpx2.Client(base_url=f"{ready['http_url']}/api/v1", verify=False) as http:
                designed = designed_by_claude(http)
                turned_away = http.post("/agent/trigger", json={"provider": "claude"})
            triggered = poorer("agent trigger --provider claude --wait")
            unpaid = poorer(ASKED.format(providers=THREE, key="unpaid"))
            left = poorer("budget")
            free = poorer(ASKED.format(providers="--provider rules --max-tokens 0", key="free"))
            ended(process, signal.SIGINT)
        yield Evening(
            view=view,
            evidence=evidence,
            pages=pages,
            replayed=replayed,
            audited=audited,
            refused=refused,
            designed=designed,
            turned_away=turned_away,
            triggered=triggered,
            unpaid=unpaid,
            left=left,
            free=free,
            tree=tree,
            budget=before,
            quoting=quoting,
            doctor=doctor,
            asked=asked,
            tables=tables,
            told="".join(f"{e.out}{e.err}" for e in (said, *shown, log, replayed, quoting)),
            dumped=dumped,
            folder=deskbus.data_dir,
        )


def pages_of(url: str, view: Json) -> dict[str, str]:
    """The page of each pipeline's decision, by its name."""
    names = [each["name"] for each in view["pipelines"]]
    with httpx2.Client(base_url=url, verify=False) as http:
        answers = {name: http.get(f"/decisions/{view['cycle_id']}/{name}") for name in names}
    assert {answer.status_code for answer in answers.values()} == {200}
    return {name: answer.text for name, answer in answers.items()}


def designed_by_claude(http: httpx2.Client) -> Json:
    """The parent operation of a strategy cycle that has its design, and is stopped where its
    training has not ended by itself."""
    answer = http.post("/agent/trigger", json={"provider": "claude"})
    assert answer.status_code == 202, answer.text
    until = time.monotonic() + PATIENCE_S
    while http.get("/agent/status").json()["phase"] == "designing":
        assert time.monotonic() < until
        time.sleep(LOOK_S)
    cancelled = http.delete("/agent/cancel")
    assert cancelled.is_success or cancelled.json()["code"] == "no_active_cycle", cancelled.text
    found: Json = http.get(answer.headers["location"].removeprefix("/api/v1")).json()["data"]
    return found


def everything(folder: Path) -> str:
    """What the export and the backup below a folder hold."""
    restored = subprocess.run(
        [find_postgres_bindir(None) / "pg_restore", "--file=-", folder / "dump"],
        capture_output=True,
        text=True,
        check=True,
    )
    parts = [repr(pl.read_parquet(path).rows()) for path in folder.glob("parquet/*.parquet")]
    return "".join([restored.stdout, *parts])


async def rows(data_dir: Path) -> dict[str, list[Json]]:
    """The rows of every table, as the superuser sees them."""
    desk = json.loads((data_dir / "runtime.json").read_text())
    dsn = dsn_for(desk["postgres_dsn"], SUPERUSER, Path(desk["secrets_dir"]))
    db = await asyncpg.connect(dsn)
    try:
        names = await db.fetch("select tablename from pg_tables where schemaname = 'public'")
        return {
            name: [dict(row) for row in await db.fetch(f'select * from "{name}"')]
            for (name,) in names
        }
    finally:
        await db.close()


def sha256_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def events(evening: Evening, kind: str) -> list[Json]:
    return [
        {**row, "data": orjson.loads(row["data"])}
        for row in evening.tables["state_events"]
        if row["type"] == kind
    ]


def entries(evening: Evening, kind: str) -> list[Json]:
    found = [orjson.loads(row["entry"]) for row in evening.tables["journal"]]
    return [entry for entry in found if entry["kind"] == kind]


def of_models(rows: list[Json], name: str = "name") -> list[Json]:
    return [row for row in rows if str(row[name]).startswith(("claude:", "openai:"))]


def test_three_pipelines_come_to_the_same_decision_on_the_same_digest(evening: Evening) -> None:
    view = evening.view
    assert view["status"] == "completed"
    pipelines = {each["name"]: each for each in view["pipelines"]}
    assert set(pipelines) == {"claude", "openai", "rules"}
    decided = {name: decision(each) for name, each in pipelines.items()}
    assert decided["claude"] == decided["rules"]
    assert decided["openai"] == decided["rules"]
    assert decided["rules"]
    digests = {json.dumps(each["contracts"]["signal_digest"]) for each in view["pipelines"]}
    assert len(digests) == 1


@pytest.mark.parametrize("name", ["claude", "openai", "rules"])
def test_whoever_decides_each_figure_has_its_source_in_json_terminal_and_console(
    evening: Evening, name: str
) -> None:
    (pipeline,) = (each for each in evening.view["pipelines"] if each["name"] == name)
    for report in ("quant_report", "research_report", "daily_picks", "decision_validation"):
        figures = pipeline["contracts"][report]["figures"]
        assert figures, report
        assert [each for each in figures if not (each["facts"] and each["source"])] == []
        assert pipeline["contracts"][report].get("loose", []) == []
    assert re.search(
        r'class="cited" href="/operations/[-0-9a-f]+\?call=E\d+#E\d+"', evening.pages[name]
    )
    _, _, told = evening.evidence.out.partition(f"provider {name}")
    sources = told.partition("provider ")[0].partition("Sources")[2]
    assert re.search(r"584\.00 USD +quant +AAPL\.close; bokeh-sampledata", sources)


def decision(pipeline: Json) -> list[Any]:
    validation = pipeline["contracts"]["decision_validation"]
    return [(each["action"], each["asset"], each["quantity"]) for each in validation["decisions"]]


def test_both_sdks_asked_for_every_agent_with_its_own_key(evening: Evening) -> None:
    for wire in ("claude", "openai"):
        agents = {each["agent"] for each in evening.asked if each["wire"] == wire}
        # The bundled data has no headline, so nobody is asked how its tickers are spoken of.
        assert agents == {"planner", "quant", "analyst", "trader", "risk_review", "memory"}


def test_every_request_is_on_record_before_and_after_its_call(evening: Evening) -> None:
    asked = of_models([e["data"] for e in events(evening, "llm_requested")])
    called = of_models([e["data"] for e in events(evening, "llm_called")])
    assert len(asked) == len(called) == len(evening.asked)
    assert len(of_models(entries(evening, "model"))) == len(evening.asked)


def test_faults_of_the_model_are_on_record_by_their_codes(evening: Evening) -> None:
    faults = [e["data"]["fault"] for e in events(evening, "llm_called") if e["data"]["fault"]]
    assert set(faults) <= {"provider_unavailable", "provider_fault"}
    assert faults, "the model gave no fault"
    repeated = [each["request"] for each in evening.asked]
    assert len(repeated) - len(set(repeated)) == len(faults)


def test_what_each_model_was_sent_is_on_record_word_for_word(evening: Evening) -> None:
    """Over the wires of both SDKs: system prompts, messages and results of tools."""
    texts = {row["sha256"].hex(): row["text"] for row in evening.tables["prompt_texts"]}
    results = {
        sha256_of(orjson.dumps(entry["reply"], option=orjson.OPT_SORT_KEYS).decode())
        for entry in entries(evening, "tool")
    }
    requests = [entry["request"] for entry in entries(evening, "model")]
    messages = {
        sha256_of("\n".join(texts[digest] for digest in message["sha256"]))
        for request in requests
        for message in request.get("messages", ())
        if message["role"] == "user"
    }
    assert len(evening.asked) > 20
    for line in evening.asked:
        assert set(line["sent"]) <= messages | results | texts.keys(), line["agent"]
        assert any(line["system"].startswith(text) for text in texts.values()), line["agent"]
    assert all(sha256_of(text) == digest for digest, text in texts.items())


def test_every_tool_call_has_its_result_and_every_answer_its_check(evening: Evening) -> None:
    tools = entries(evening, "tool")
    assert len(tools) == len(events(evening, "tool_called")) > 10
    assert all(entry["request"]["arguments"] is not None and entry["reply"] for entry in tools)
    checks = [e["data"] for e in events(evening, "answer_checked")]
    assert len(checks) == 3 * 6
    assert all(check["passed"] for check in checks)


def test_an_event_of_a_call_says_what_was_asked_and_what_came_back(evening: Evening) -> None:
    prices = [
        event["data"]
        for event in events(evening, "tool_called")
        if event["data"]["name"] == "get_stock_price"
    ]
    assert {each["arguments"]["ticker"] for each in prices} >= {"AAPL", "MSFT"}
    assert [each for each in prices if "price " not in each["result"] or each["error"]] == []
    turns = [e["data"] for e in events(evening, "llm_called") if not e["data"]["fault"]]
    assert any("get_stock_price(AAPL)" in each["tool_calls"] for each in turns)
    assert [each for each in turns if not each["request"] or not each["stop_reason"]] == []
    lost = [e["data"] for e in events(evening, "llm_called") if e["data"]["fault"]]
    assert all(each["error"].startswith(each["fault"]) for each in lost)


def test_the_log_says_which_tool_was_asked_about_which_ticker_and_what_it_gave(
    evening: Evening,
) -> None:
    lines = [json.loads(line) for line in evening.told.splitlines() if line.startswith("{")]
    called = [line for line in lines if line.get("event") == "tool.called"]
    asked = [line for line in called if line["name"] == "get_stock_price"]
    assert {line["arguments"]["ticker"] for line in asked} >= {"AAPL", "MSFT"}
    assert all("price " in line["result"] for line in asked)


def test_the_log_tells_the_cycle_its_states_and_each_call_of_a_model_and_no_prompt(
    evening: Evening,
) -> None:
    told = [json.loads(line) for line in evening.told.splitlines() if line.startswith("{")]
    lines = [line for line in told if "event" in line and "level" in line]
    (cycle,) = evening.tables["cycles"]
    of_cycle = [line for line in lines if line.get("cycle_id") == str(cycle["cycle_id"])]
    found = [line["event"] for line in of_cycle]
    assert found.count("cycle.accepted") == found.count("cycle.ended") == 1
    states = [line["state"] for line in of_cycle if line["event"] == "cycle.state_entered"]
    assert {"scanning", "planning", "analyzing", "deciding", "memorizing"} <= {*states}
    began = [line for line in of_cycle if line["event"] == "llm.call_began"]
    ended = [line for line in of_cycle if line["event"] == "llm.call_ended"]
    assert len(began) == len(ended) == len(entries(evening, "model"))
    for line in (*began, *ended, *(one for one in of_cycle if one["event"] == "tool.called")):
        assert {"pipeline", "state", "step", "op_id", "service"} <= line.keys(), line
    assert sum(line.get("input_tokens", 0) for line in ended) > 0
    assert all({"provider", "model", "seconds", "outcome"} <= line.keys() for line in ended)
    sent = {json.dumps(line["system"])[1:60] for line in evening.asked}
    assert not [line for line in lines if any(text in json.dumps(line) for text in sent)]


def test_the_tree_says_what_tools_were_asked_about(evening: Evening) -> None:
    tools = [each for each in evening.tree if each["type"] == "tool"]
    asked = {each["name"]: each["metadata"]["arguments"] for each in tools}
    assert asked["get_stock_price"]["ticker"]


def test_what_the_calls_used_is_counted_at_every_level(evening: Evening) -> None:
    calls = sum(tokens(entry["usage"]) for entry in entries(evening, "model"))
    operations = sum(row["tokens"] for row in evening.tables["operations"])
    (cycle,) = evening.tables["cycles"]
    (day,) = evening.tables["day_budgets"]
    assert calls == operations == cycle["tokens_spent"] == day["tokens_spent"] > 1_000
    costs = sum(Decimal(str(e["usage"]["cost_usd"])) for e in entries(evening, "model"))
    assert costs == cycle["cost_usd_spent"] == day["cost_usd_spent"] > 0
    assert cycle["tokens_reserved"] == day["tokens_reserved"] == 0


def tokens(usage: Json) -> int:
    return sum(int(count) for sort, count in usage.items() if sort.endswith("_tokens"))


SORTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


@pytest.mark.parametrize("sort", SORTS)
def test_every_level_has_the_same_tokens_by_sort(evening: Evening, sort: str) -> None:
    calls = sum(entry["usage"][sort] for entry in entries(evening, "model"))
    operations = sum(row[sort] for row in evening.tables["operations"])
    (cycle,) = evening.tables["cycles"]
    (day,) = evening.tables["day_budgets"]
    assert calls == operations == cycle[sort] == day[sort]
    assert evening.view["usage"][sort] == calls
    for level in ("cycle", "pipeline", "operation", "model"):
        of_level = [node["usage"][sort] for node in evening.tree if node["type"] == level]
        assert sum(of_level) == calls, level


def test_the_budget_says_what_the_evening_used_and_what_is_left(evening: Evening) -> None:
    budget, (today,) = evening.budget, evening.budget["days"]
    assert today["usage"] == evening.view["usage"]
    assert budget["tokens_left"] == budget["tokens_max"] - evening.view["tokens"]
    assert Decimal(budget["cost_usd_left"]) == 100 - Decimal(evening.view["cost_usd"])


def test_on_a_spent_day_a_cycle_that_costs_is_refused_with_when_to_come_again(
    evening: Evening,
) -> None:
    assert evening.unpaid.code == 4
    assert "today's budget for models is used up" in evening.unpaid.err
    assert "try again from" in evening.unpaid.err
    assert "00:00 UTC on" in evening.unpaid.err
    assert "[budget_exhausted]" in evening.unpaid.err
    assert "`deskbus budget` shows what is left" in evening.unpaid.err
    assert "reserved" in evening.left.out


def test_over_http_a_strategy_cycle_that_uses_up_the_day_is_the_last_one_that_costs(
    evening: Evening,
) -> None:
    assert evening.designed["result_summary"]["total_tokens"] > DESIGN_TOKENS
    refused = evening.turned_away
    assert refused.status_code == 429, refused.text
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["code"] == "budget_exhausted"
    assert "try again from" in refused.json()["detail"]
    assert 0 < int(refused.headers["retry-after"]) <= DAY_S


def test_the_command_that_asks_for_a_strategy_cycle_says_so_in_words(evening: Evening) -> None:
    assert evening.triggered.code == 4
    assert evening.triggered.out == ""
    assert "[budget_exhausted]" in evening.triggered.err


def test_on_a_spent_day_the_rules_go_on_for_nothing(evening: Evening) -> None:
    assert evening.free.code == 0, evening.free.err
    assert evening.free.rows[0]["status"] == "completed"


def test_a_replay_gives_the_same_decision_and_asks_nobody(evening: Evening) -> None:
    assert evening.replayed.code == 0, evening.replayed.err
    (report,) = evening.replayed.rows
    assert report["same"]


def test_a_replay_needs_no_key_and_no_model_that_the_desk_still_has(evening: Evening) -> None:
    assert evening.audited.code == 0, evening.audited.out
    assert evening.audited.rows == evening.replayed.rows


def test_a_provider_without_a_key_is_refused_at_once_and_the_doctor_says_why(
    evening: Evening,
) -> None:
    assert evening.refused.code == 4
    assert "set MINIMAX_API_KEY" in evening.refused.err
    doctor = evening.doctor
    assert doctor["model claude"]["verdict"] == doctor["model openai"]["verdict"] == "ok"
    assert "MINIMAX_API_KEY" in doctor["model minimax"]["said"]
    assert "rules, coin, claude, openai" in doctor["models"]["said"]


def test_a_refused_key_is_told_as_such(evening: Evening) -> None:
    assert evening.quoting.code == 1
    assert "key_refused" in evening.told
    assert "Incorrect API key provided: [key]" in evening.dumped


def test_no_key_is_found_in_anything_that_was_kept_or_shown(evening: Evening) -> None:
    assert "claude-opus-5-5" in evening.dumped
    files = [path for path in evening.folder.rglob("*") if path.is_file()]
    assert any(path.suffix == ".log" for path in files)
    for key in (*KEYS.values(), QUOTED):
        assert key not in evening.told
        assert key not in evening.dumped
        assert [path for path in files if key.encode() in path.read_bytes()] == []
