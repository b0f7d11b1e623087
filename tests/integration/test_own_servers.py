"""`--containers`: the way to servers of one's own without Docker, and the skip where it is missing.

The containers themselves run in `make docker`. What is checked here is all that lies around them,
with programs of this machine in their place.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from libs.runtime.settings import Settings
from libs.servers.embedded_thread import held_in_thread
from libs.telemetry.logging import configure_logging
from services import launcher
from services.provisioner.secrets import provision_secrets
from tests.integration.desk.caller import calling, wish
from tests.integration.own_servers import ROOT, OwnServers, container_of, own_servers, processes

ONE_OF_EACH = (
    "execution/test_real_prices.py::test_a_buy_fills_at_the_real_open_of_the_next_session",
    "console/test_dead_letters.py::test_a_number_without_a_letter_gives_none",
    "desk/test_ends.py::test_the_main_pipelines_failure_is_the_cycles",
)


@pytest.fixture
def servers(open_dir: Path) -> Iterator[OwnServers]:
    with held_in_thread(lambda: own_servers(open_dir, processes)) as held:
        yield held


async def test_a_desk_told_by_the_environment_decides_on_own_servers(
    servers: OwnServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure_logging("error", "json")
    for name, value in servers.environment.items():
        monkeypatch.setenv(name, value)

    async with (
        launcher.desk(Settings(data_dir=servers.data_dir, orchestrator={"sweep_s": 0.1})) as desk,
        calling(desk.nats_url, servers.secrets_dir, "user") as caller,
    ):
        ended = await caller.run(wish())

    assert desk.nats_url == servers.nats_url
    assert ended["status"] == "completed"
    assert [path.name for path in servers.data_dir.iterdir()] == []  # it started none of its own


@pytest.mark.parametrize("name", ["nats", "postgres"])
def test_a_container_is_what_compose_says(name: str, tmp_path: Path) -> None:
    service = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"][name]
    secrets = tmp_path / "secrets"
    provision_secrets(secrets)

    container = container_of(name, secrets)

    assert container.image == service["image"]
    assert list(container.command) == service["command"]
    assert all(file.is_file() for file in container.mounts.values())
    checked_by = service["healthcheck"]["test"]
    named = [*container.command, *container.environment.values(), *checked_by]
    used = {path for word in named for path in re.findall(r"/(?:etc|run)/\S+", word)}
    assert used == set(container.mounts)  # each file that it is told of is there, and no other


def test_without_an_engine_the_three_suites_are_skipped_and_say_what_was_tried(
    tmp_path: Path,
) -> None:
    nowhere = f"unix://{tmp_path}/no.sock"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--containers"]
    done = subprocess.run(
        [*command, *(str(ROOT / "tests/integration" / test) for test in ONE_OF_EACH)],
        cwd=ROOT,
        env={**os.environ, "DOCKER_HOST": nowhere, "DESKBUS_CI": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    assert re.search(rf"^{len(ONE_OF_EACH)} skipped in", done.stdout, re.MULTILINE), done.stdout
    for test in ONE_OF_EACH:
        reason = re.search(rf"{test.partition('::')[0]}:\d+: (.*)", done.stdout)
        assert reason is not None, test
        assert reason[1].startswith("docker: --containers needs a Docker engine")
        assert nowhere in reason[1]
