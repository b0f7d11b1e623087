"""What promtool says of the configuration, the rules and the alerts."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from deploy.grafana.boards.panels import Board, Graph
from deploy.grafana.make import BOARDS

FOLDER = Path(__file__).parents[3] / "deploy/prometheus"


@pytest.fixture
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        why = "promtool is not installed"
        pytest.skip(why if os.geteuid() == 0 else f"root: {why}, and only root can do that")
    return found


def asked(board: Board) -> Iterator[str]:
    """Every query of a dashboard's panels."""
    for row in board.rows:
        for panel in row.panels:
            if isinstance(panel, Graph):
                yield from (query for query, _ in panel.queries)
            else:
                yield panel.query


@pytest.mark.parametrize(
    "words",
    [
        ("check", "config", "prometheus.yml"),
        ("check", "config", "single.yml"),
        ("test", "rules", "alerts_test.yml"),
    ],
    ids=" ".join,
)
def test_promtool_finds_nothing_wrong(promtool: str, words: tuple[str, ...]) -> None:
    said = subprocess.run(
        [promtool, *words], cwd=FOLDER, capture_output=True, text=True, timeout=120, check=False
    )
    assert said.returncode == 0, said.stdout + said.stderr


def test_promtool_finds_nothing_wrong_for_kubernetes(promtool: str, tmp_path: Path) -> None:
    """Debian's is built without Kubernetes: how pods are found is not seen here."""
    given = (FOLDER / "kubernetes.yml").read_text()
    known = re.sub(r"kubernetes_sd_configs: .*", "static_configs: [{targets: [one]}]", given)
    assert known != given
    for name in ("recording.yml", "alerts.yml"):
        shutil.copy(FOLDER / name, tmp_path)
    (tmp_path / "kubernetes.yml").write_text(known)
    words = [promtool, "check", "config", "kubernetes.yml"]
    said = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert said.returncode == 0, said.stdout + said.stderr


def test_promtool_can_read_every_panels_query(promtool: str, tmp_path: Path) -> None:
    """As rules, since nothing else of promtool reads a query without a server."""
    queries = [query for board in BOARDS for query in asked(board)]
    rules = [
        {"record": f"panel:{number}", "expr": query.replace("$__rate_interval", "1m")}
        for number, query in enumerate(queries)
    ]
    (tmp_path / "panels.yml").write_text(
        yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]})
    )
    said = subprocess.run(
        [promtool, "check", "rules", "--lint-fatal", "panels.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert said.returncode == 0, said.stdout + said.stderr
    assert f"{len(queries)} rules found" in said.stdout


def test_promtool_sees_an_alert_that_does_not_fire(promtool: str, tmp_path: Path) -> None:
    for name in ("recording.yml", "alerts.yml", "alerts_test.yml"):
        text = (FOLDER / name).read_text()
        (tmp_path / name).write_text(
            text.replace("max(deskbus_halts) > 0", "max(deskbus_halts) > 9")
        )
    said = subprocess.run(
        [promtool, "test", "rules", "alerts_test.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert said.returncode != 0
    assert "DeskbusHalted" in said.stdout + said.stderr
