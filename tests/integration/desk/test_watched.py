"""A desk as whoever watches it sees it: `deskbus up`, and a service in a process of its own."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest
import yaml
from nats.aio.msg import Msg
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from contracts.subjects.subject import BACKBONE, SERVICES
from libs.runtime.ports import choose_port
from libs.telemetry.metrics import ACCOUNTS_SHOWN_MAX, all_metrics
from tests.fakes.channel_server import channel_server
from tests.integration.desk.caller import calling, wish
from tests.integration.desk.command_line import CommandLine, ended, up

CYCLES = 3
OPERATIONS = 11
"""Of a decision cycle."""
DEPLOY = Path(__file__).parents[3] / "deploy"
NOTIFY = """
[notify.channels.phone]
[notify.rules.trades]
events = ["decision", "fill"]
to = ["phone"]
"""
STARTED_S = 30.0
SAMPLED_S = 1.0
"""Two who ask within it get the same figures."""
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")


@dataclass(frozen=True)
class Watched:
    """A desk, and where it is watched."""

    deskbus: CommandLine
    url: str
    nats_url: str
    postgres_dsn: str

    def work(self, cycles: int) -> list[UUID]:
        """So many cycles, at the same time, each for an account of its own."""

        async def all_at_once() -> list[UUID]:
            async with calling(self.nats_url, self.deskbus.data_dir / "secrets", "user") as caller:
                views = await asyncio.gather(*(caller.run(wish()) for _ in range(cycles)))
            assert {view["status"] for view in views} == {"completed"}
            return [UUID(view["cycle_id"]) for view in views]

        return asyncio.run(all_at_once())

    def metrics(self) -> Mapping[str, float]:
        """All series of the desk, by name and labels as they are written."""
        return series_at(self.url)

    def at_rest(self) -> Mapping[str, float]:
        """The series once all that was decided is published; whoever asked hears of it before."""
        until = time.monotonic() + STARTED_S
        while (said := self.metrics())["deskbus_relay_seconds{}"] and time.monotonic() < until:
            time.sleep(SAMPLED_S)
        return said


def series_at(url: str) -> Mapping[str, float]:
    answer = httpx2.get(f"{url}/metrics", timeout=30)
    assert answer.status_code == 200, answer.text
    found = filter(None, (SAMPLE.match(line) for line in answer.text.splitlines()))
    return {f"{each[1]}{{{each[2] or ''}}}": float(each[3]) for each in found}


@dataclass
class Collector:
    """What takes spans, as OTLP over HTTP brings them."""

    url: str = ""
    spans: list[Span] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    news: threading.Condition = field(default_factory=threading.Condition)

    def take(self, body: bytes) -> None:
        with self.news:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.names |= {
                    each.value.string_value
                    for each in resource.resource.attributes
                    if each.key == "service.name"
                }
                for scope in resource.scope_spans:
                    self.spans += scope.spans
            self.news.notify_all()

    def trace(self, cycle_id: UUID, operations: int) -> list[Span]:
        """All spans of a cycle, once its root and so many operations are here."""

        def found() -> list[Span]:
            return [span for span in self.spans if span.trace_id == cycle_id.bytes]

        with self.news:

            def complete() -> bool:
                names = [span.name.partition(" ")[0] for span in found()]
                return "cycle" in names and names.count("operation") == operations

            assert self.news.wait_for(complete, STARTED_S), [span.name for span in found()]
            return found()


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    made = Collector()

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            made.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Taking) as server:
        made.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield made
        server.shutdown()


@pytest.fixture(scope="module")
def desk(make_open_dir: Callable[[], Path], collector: Collector) -> Iterator[Watched]:
    """A desk in a process of its own that has done some work, and tells its traces."""
    folder = make_open_dir()
    (folder / "deskbus.toml").write_text(NOTIFY)
    with channel_server() as phone:
        environment = (
            ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url),
            ("OTEL_BSP_SCHEDULE_DELAY", "100"),
            ("DESKBUS_NOTIFY_PHONE", phone.url.replace("http://", "json://")),
        )
        deskbus = CommandLine(folder / ".deskbus", folder, environment)
        with up(deskbus, "--port 0") as (process, ready):
            made = Watched(deskbus, ready["http_url"], ready["nats_url"], ready["postgres_dsn"])
            made.work(CYCLES)
            phone.wait(lambda server: bool(server.taken))
            yield made
            assert ended(process, signal.SIGTERM).code == 0


def test_what_the_desk_did_can_be_counted(desk: Watched) -> None:
    said = desk.metrics()
    assert said['deskbus_cycles_total{kind="decision",status="completed"}'] == CYCLES
    assert said['deskbus_operations_total{status="completed",step="execute"}'] == CYCLES
    subject = 'service="research",subject="desk.v1.cmd.research.plan"'
    assert said[f'deskbus_commands_total{{outcome="answered",{subject}}}'] == CYCLES
    assert said[f"deskbus_command_seconds_count{{{subject}}}"] == CYCLES
    assert said['deskbus_answers_total{outcome="granted",question="claim"}'] >= 8 * CYCLES
    assert said["deskbus_commit_seconds_count{}"] > CYCLES
    assert said['deskbus_orders_total{side="buy",status="placed"}'] > 0


def test_what_an_alert_waits_for_the_first_of_is_shown_as_0_before(desk: Watched) -> None:
    """Prometheus sees no increase in a series that begins at 1."""
    said = desk.metrics()
    for name in (
        'deskbus_commands_not_on_record_total{service="execution"}',
        'deskbus_leases_lost_total{service="execution"}',
        'deskbus_dead_letters_total{service="execution"}',
        'deskbus_notices_total{channel="phone",outcome="given_up"}',
        *(f'deskbus_outage_seconds_count{{away="{away}"}}' for away in ("postgres", "nats")),
        "deskbus_inputs_refused_total{}",
        "deskbus_refusals_not_kept_total{}",
        "deskbus_effects_unanswered_total{}",
    ):
        assert said[name] == 0


def test_what_waits_and_the_books_are_there_too(desk: Watched) -> None:
    said = desk.at_rest()
    assert said["deskbus_ledger_imbalance{}"] == 0
    equity = [value for name, value in said.items() if name.startswith("deskbus_account_equity")]
    assert len(equity) >= CYCLES
    assert all(value > 90_000 for value in equity)
    assert said["deskbus_outbox_operations{}"] == 0
    assert said["deskbus_relay_seconds{}"] == 0
    assert said["deskbus_day_cost_usd_left{}"] == 100
    assert said["deskbus_dead_letters_kept{}"] == 0
    lag = 'deskbus_consumer_pending{service="risk",subject="desk.v1.cmd.risk.review"}'
    assert said[lag] == 0


def test_more_accounts_make_no_more_series_than_the_metrics_say(desk: Watched) -> None:
    before = desk.metrics()
    cycles = desk.work(CYCLES)
    after = desk.metrics()
    # Others may be new: what is asked or happens for the first time on a busy machine.
    new = {name for name in after.keys() - before.keys() if "deskbus_account_" not in name}
    assert not [name for name in new for own in ("account=", *map(str, cycles)) if own in name]
    equity = [name for name in after if name.startswith("deskbus_account_equity")]
    assert len(equity) <= ACCOUNTS_SHOWN_MAX + 1
    assert len(after) < sum(metric.bound for metric in all_metrics()) / 10


def test_a_cycles_spans_form_one_tree(desk: Watched, collector: Collector) -> None:
    (cycle_id,) = desk.work(1)
    spans = {span.span_id: span for span in collector.trace(cycle_id, OPERATIONS)}
    (root,) = (span for span in spans.values() if not span.parent_span_id)
    assert (root.name, root.span_id) == ("cycle decision", cycle_id.bytes[:8])

    def above(span: Span) -> str:
        return spans[span.parent_span_id].name

    operations = [span for span in spans.values() if span.name.startswith("operation ")]
    assert len(operations) == OPERATIONS
    assert {above(span) for span in operations} == {"cycle decision"}
    for span in spans.values():
        first, _, rest = span.name.partition(" ")
        if first == "handle":
            assert above(span) == f"operation {rest}"
        elif first in {"chat", "execute_tool", "read"}:
            assert above(span).startswith("handle ")
        assert span.end_time_unix_nano >= span.start_time_unix_nano
    names = {span.name for span in spans.values()}
    assert {"handle plan", "execute_tool get_stock_price", "operation execute"} <= names
    assert collector.names == {"deskbus"}


def test_the_desk_is_ready_and_says_of_what(desk: Watched) -> None:
    assert httpx2.get(f"{desk.url}/livez").status_code == 200
    assert httpx2.get(f"{desk.url}/readyz").status_code == 200
    ready = {name: value for name, value in desk.metrics().items() if "deskbus_ready" in name}
    assert set(ready.values()) == {1.0}
    for check in ("start", "nats risk", "nats orchestrator", "postgres deskbus-console"):
        assert f'deskbus_ready{{check="{check}"}}' in ready


@contextmanager
def service(desk: Watched, name: str, nats_url: str) -> Iterator[str]:
    """A service in a process of its own; where it is watched."""
    port = choose_port(None, set())
    environment = {
        **os.environ,
        "DESKBUS_NATS_URL": nats_url,
        "DESKBUS_POSTGRES_DSN": desk.postgres_dsn,
        "DESKBUS_SECRETS_DIR": str(desk.deskbus.data_dir / "secrets"),
        "DESKBUS_METRICS_PORT": str(port),
    }
    command = [sys.executable, "-m", f"services.{name}"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def answer_of(url: str, wanted: int) -> httpx2.Response:
    """What a process that is starting says, once it says that."""
    until = time.monotonic() + STARTED_S
    while True:
        try:
            said = httpx2.get(url)
            if said.status_code == wanted or time.monotonic() > until:
                return said
        except httpx2.ConnectError:
            if time.monotonic() > until:
                raise
        time.sleep(0.05)


@dataclass(frozen=True)
class Prometheus:
    """A real one that scrapes the desk."""

    url: str
    http: httpx2.Client

    def series(self, query: str) -> list[object]:
        """What an instant query gives; the panels' own interval stands for a minute."""
        asked = {"query": query.replace("$__rate_interval", "1m")}
        answer = self.http.get(f"{self.url}/api/v1/query", params=asked).json()
        assert answer["status"] == "success", (query, answer)
        found: list[object] = answer["data"]["result"]
        return found

    def until_there(self, query: str) -> None:
        """Wait until it has scraped what the query asks for: it tells nobody when it does."""
        until = time.monotonic() + STARTED_S
        while not self.series(query):
            assert time.monotonic() < until, query
            time.sleep(0.1)


@pytest.fixture(scope="module")
def prometheus(desk: Watched, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus with the configuration for a desk in one process, in a hurry."""
    program = shutil.which("prometheus")
    if program is None:
        why = "prometheus is not installed"
        pytest.skip(why if os.geteuid() == 0 else f"root: {why}, and only root can do that")
    folder, port = tmp_path_factory.mktemp("prometheus"), choose_port(None, set())
    told = yaml.safe_load((DEPLOY / "prometheus/single.yml").read_text())
    told["global"] = dict.fromkeys(("scrape_interval", "evaluation_interval"), "500ms")
    told["rule_files"] = [str(DEPLOY / "prometheus" / name) for name in told["rule_files"]]
    told["scrape_configs"][0]["static_configs"][0]["targets"] = [desk.url.partition("//")[2]]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(told))
    url = f"http://127.0.0.1:{port}"
    command = [program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
    with subprocess.Popen(command) as process:
        try:
            answer_of(f"{url}/-/ready", 200)
            with httpx2.Client(timeout=30) as http:
                yield Prometheus(url, http)
        finally:
            process.kill()


def test_every_panel_and_every_rule_has_something_to_show(
    desk: Watched, prometheus: Prometheus
) -> None:
    prometheus.until_there("up == 1")
    desk.work(CYCLES)
    recorded = yaml.safe_load((DEPLOY / "prometheus/recording.yml").read_text())["groups"][0]
    for rule in recorded["rules"]:
        prometheus.until_there(rule["record"])
    queries = [rule["expr"] for rule in recorded["rules"]]
    for path in (DEPLOY / "grafana/dashboards").iterdir():
        panels = json.loads(path.read_text())["panels"]
        queries += [target["expr"] for panel in panels for target in panel.get("targets", ())]
    assert len(queries) > 40
    assert [query for query in queries if not prometheus.series(query)] == []


def test_a_desk_at_work_alarms_nobody(prometheus: Prometheus) -> None:
    prometheus.until_there("deskbus:commit_seconds:p95_5m")
    assert prometheus.series('ALERTS{alertname!="DeskbusCommitsSlow"}') == []
    rules = httpx2.get(f"{prometheus.url}/api/v1/rules").json()["data"]["groups"]
    assert {rule["health"] for group in rules for rule in group["rules"]} == {"ok"}


async def found(desk: Watched, subject: str, answers: int) -> list[dict[str, Any]]:
    """What so many services say to whoever looks for them."""
    said: list[dict[str, Any]] = []
    everybody = asyncio.Event()

    async def hear(message: Msg) -> None:
        said.append(json.loads(message.data))
        if len(said) == answers:
            everybody.set()

    async with calling(desk.nats_url, desk.deskbus.data_dir / "secrets", "user") as caller:
        inbox = caller.nats.new_inbox()
        await caller.nats.subscribe(inbox, cb=hear)
        await caller.nats.publish(subject, b"", reply=inbox)
        async with asyncio.timeout(STARTED_S):
            await everybody.wait()
    return said


async def test_every_service_can_be_found(desk: Watched) -> None:
    everyone = (*BACKBONE, *SERVICES)
    said = await found(desk, "$SRV.PING", len(everyone))
    assert {each["type"] for each in said} == {"io.nats.micro.v1.ping_response"}
    assert sorted(each["name"] for each in said) == sorted(f"deskbus-{each}" for each in everyone)
    assert len({each["id"] for each in said}) == len(everyone)


async def test_a_service_says_what_it_hears_and_how_often_it_was_asked(desk: Watched) -> None:
    (info,) = await found(desk, "$SRV.INFO.deskbus-research", 1)
    subjects = {each["subject"] for each in info["endpoints"]}
    assert "desk.v1.cmd.research.plan" in subjects
    (stats,) = await found(desk, f"$SRV.STATS.deskbus-research.{info['id']}", 1)
    plan = next(each for each in stats["endpoints"] if each["name"] == "plan")
    assert plan["num_requests"] >= CYCLES
    assert plan["num_errors"] == 0
    assert plan["average_processing_time"] > 0
    (orchestrator,) = await found(desk, "$SRV.STATS.deskbus-orchestrator", 1)
    result = next(each for each in orchestrator["endpoints"] if each["name"] == "result")
    assert result["num_requests"] >= 8 * CYCLES


async def test_nobody_is_found_under_anothers_name(desk: Watched) -> None:
    async with calling(desk.nats_url, desk.deskbus.data_dir / "secrets", "risk") as caller:
        await caller.nats.subscribe("$SRV.PING.deskbus-execution")
        async with asyncio.timeout(STARTED_S):
            await caller.was_refused.wait()
    assert any("permissions violation" in each for each in caller.refused)


def test_a_service_of_its_own_is_watched_on_a_port_of_its_own(desk: Watched) -> None:
    with service(desk, "risk", desk.nats_url) as url:
        assert answer_of(f"{url}/readyz", 200).status_code == 200
        said = series_at(url)
    assert said['deskbus_ready{check="nats risk"}'] == 1
    # Figures of the whole desk are told by the console alone.
    assert not any(name.startswith("deskbus_ledger_imbalance") for name in said)


def test_a_service_without_nats_lives_and_is_not_ready(desk: Watched) -> None:
    nowhere = f"nats://127.0.0.1:{choose_port(None, set())}"
    with service(desk, "risk", nowhere) as url:
        refused = answer_of(f"{url}/readyz", 503)
        assert refused.status_code == 503
        assert "not everything has started yet" in refused.text
        assert httpx2.get(f"{url}/livez").status_code == 200
