"""The OpenAPI document against the desk: whatever fits it or does not, the desk has no fault."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from libs.runtime.http_address import http_address
from tests.integration.conftest import OwnEnvironmentIn
from tests.integration.desk.conftest import Desk, desk_in

RUN_S = 20
PATIENCE_S = 240
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
)
CYCLES_RUNNING_MAX = 5
"""Made-up requests are accepted too: further ones are told that the desk is busy."""
TESTER = "import sys; from schemathesis.cli import schemathesis; sys.exit(schemathesis())"


@pytest.fixture(scope="module")
def desk(make_open_dir: Callable[[], Path], own_environment_in: OwnEnvironmentIn) -> Iterator[Desk]:
    """A desk of its own: many cycles that nobody meant are asked of it."""
    folder = make_open_dir()
    given = {"http_enabled": True, "http_port": 0, "cycles_running_max": CYCLES_RUNNING_MAX}
    with desk_in(
        folder, own_environment_in, strategies_dir=folder / "strategies", **given
    ) as running:
        yield running


@pytest.mark.timeout(PATIENCE_S)
def test_no_request_that_can_be_made_from_the_document_finds_a_fault(
    desk: Desk, tmp_path: Path
) -> None:
    address = http_address(desk.settings)
    assert address is not None
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            TESTER,
            "run",
            f"{address.url}/api/v1/openapi.json",
            "--max-time",
            str(RUN_S),
            "--max-examples",
            "10",
            "--seed",
            "1",
            "--no-shrink",
            # It never ends; tests/integration/console/test_tail.py looks at it.
            "--exclude-path",
            "/api/v1/events/stream",
            "--checks",
            ",".join(CHECKS),
            "--suppress-health-check",
            "all",
            "--no-color",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-8_000:]
    selected = re.search(r"Selected: (\d+)/(\d+)", run.stdout)
    assert selected is not None, run.stdout[:2_000]
    tried, there_are = map(int, selected.groups())
    assert there_are > 50
    assert tried == there_are - 1
    assert "Unresolvable references" not in run.stdout
