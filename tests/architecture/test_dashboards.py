"""Dashboards, rules and alerts: of metrics that exist, each alert told and tried."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from contracts.subjects.subject import BACKBONE, SERVICES
from deploy.grafana.make import BOARDS, FOLDER, WIDTH, Board, made
from libs.telemetry.metrics import all_metrics

FAMILIES = {metric.name for metric in all_metrics()}
PARTS = re.compile(r"_(bucket|sum|count)$")


@pytest.fixture(scope="module")
def prometheus(root: Path) -> Path:
    return root / "deploy/prometheus"


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def rules(path: Path) -> Iterator[dict[str, Any]]:
    for group in loaded(path)["groups"]:
        yield from group["rules"]


def queries(board: dict[str, Any]) -> Iterator[str]:
    for panel in board["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_the_file_is_what_the_code_makes(board: Board) -> None:
    said = "run `make dashboards` and commit"
    assert (FOLDER / f"{board.uid}.json").read_text() == made(board), said


def test_there_is_no_dashboard_besides() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == {board.uid for board in BOARDS}


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_no_panel_lies_on_another_or_beyond_the_edge(board: Board) -> None:
    covered: Counter[tuple[int, int]] = Counter()
    for panel in json.loads(made(board))["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= WIDTH, panel["title"]
        covered.update(
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        )
    assert max(covered.values()) == 1


def test_every_query_asks_for_metrics_that_exist(prometheus: Path) -> None:
    recorded = {rule["record"] for rule in rules(prometheus / "recording.yml")}
    asked = [query for board in BOARDS for query in queries(json.loads(made(board)))]
    asked += [
        rule["expr"]
        for name in ("recording", "alerts")
        for rule in rules(prometheus / f"{name}.yml")
    ]
    assert len(asked) > 50
    for query in asked:
        for name in re.findall(r"\bdeskbus:[\w:]+", query):
            assert name in recorded, query
        for name in re.findall(r"(?<![:\w\"])deskbus_\w+", query):
            assert {name, PARTS.sub("", name)} & FAMILIES, query


def test_every_recorded_series_is_used(prometheus: Path) -> None:
    texts = [(prometheus / "alerts.yml").read_text(), *(made(board) for board in BOARDS)]
    for rule in rules(prometheus / "recording.yml"):
        assert any(rule["record"] in text for text in texts), rule["record"]


def test_every_alert_is_tried_from_both_sides(prometheus: Path) -> None:
    tried: dict[str, set[bool]] = {}
    for test in loaded(prometheus / "alerts_test.yml")["tests"]:
        for each in test["alert_rule_test"]:
            tried.setdefault(each["alertname"], set()).add(bool(each["exp_alerts"]))
    names = {rule["alert"] for rule in rules(prometheus / "alerts.yml")}
    assert tried == {name: {True, False} for name in names}


def test_every_alert_has_a_chapter_for_who_gets_it(root: Path, prometheus: Path) -> None:
    page = (root / "docs/operations.md").read_text()
    told = set(re.findall(r"^### (Deskbus\w+)$", page, re.MULTILINE))
    assert told == {rule["alert"] for rule in rules(prometheus / "alerts.yml")}
    for rule in rules(prometheus / "alerts.yml"):
        assert rule["labels"]["severity"] in {"page", "ticket"}


def test_every_service_is_scraped(prometheus: Path) -> None:
    (job,) = loaded(prometheus / "prometheus.yml")["scrape_configs"]
    assert job["dns_sd_configs"][0]["names"] == [*BACKBONE, *SERVICES]


def test_the_dashboards_ask_the_source_that_is_provisioned(root: Path) -> None:
    folder = root / "deploy/grafana/provisioning"
    sources = {each["uid"] for each in loaded(folder / "datasources/deskbus.yml")["datasources"]}
    for board in BOARDS:
        for panel in json.loads(made(board))["panels"]:
            if "targets" in panel:
                assert panel["datasource"]["uid"] in sources
