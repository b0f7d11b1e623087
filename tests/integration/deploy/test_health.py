"""What deploy/healthcheck.py does with a service that hangs: it is ended, and nothing else is."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from deploy import healthcheck


def waits(port: int, *words: str) -> subprocess.Popen[bytes]:
    """A process with the setting of a service, and perhaps its command."""
    env = {**os.environ, "DESKBUS_METRICS_PORT": str(port)}
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", *words], env=env)


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A port that takes connections and answers none."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        monkeypatch.setattr(healthcheck, "TIMEOUT_S", 0.2)
        monkeypatch.setenv("DESKBUS_METRICS_PORT", str(port))
        yield port


def test_a_service_that_hangs_is_ended_at_the_third_time(silent: int) -> None:
    service, other = waits(silent, "services.risk"), waits(silent, "elsewhere")
    elsewhere = waits(silent - 1, "services.risk")
    try:
        for times in (1, 2, 3):
            assert service.poll() is None
            with pytest.raises(SystemExit, match=f"does not answer, {times} times in a row"):
                healthcheck.main()
        assert service.wait(10) == -9
        assert (other.poll(), elsewhere.poll()) == (None, None)
    finally:
        for process in (service, other, elsewhere):
            process.kill()
            process.wait()


def test_a_service_that_is_not_there_is_none_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("DESKBUS_METRICS_PORT", str(port))
    for _ in range(4):
        with pytest.raises(SystemExit, match="nothing answers"):
            healthcheck.main()
