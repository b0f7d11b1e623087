"""A cycle on a machine whose folders have odd names, and whose environment is set for other
programs."""

from pathlib import Path

import pytest

from tests.integration.desk.command_line import CommandLine

ODD = "josé 数据 🚀 $HOME `id` 'a' \"b\" \\u {c} #1 %20"
AMBIENT = {
    **dict.fromkeys(("HTTP_PROXY", "https_proxy", "ALL_PROXY"), "http://127.0.0.1:1"),
    "PGHOST": "nowhere",
    "PGPORT": "none",
    "PGUSER": "nobody",
    "PGPASSWORD": "wrong",
    "PGSSLMODE": "require",
    "PGSSLNEGOTIATION": "direct",
    "PGSERVICE": "none",
    "PGTARGETSESSIONATTRS": "standby",
    "PGDATA": "/nonexistent",
    "PGOPTIONS": "-c none=1",
    "NATS_URL": "nats://nowhere",
    "NATS_CREDS": "/nonexistent",
    "SSLKEYLOGFILE": "/nonexistent/keys",
    "SSL_CERT_FILE": "/nonexistent",
    "LC_ALL": "C",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "TZ": "Pacific/Kiritimati",
    "HOME": "/nonexistent",
}


@pytest.mark.parametrize("environment", [{}, AMBIENT], ids=["plain", "ambient"])
def test_a_cycle_runs_in_a_folder_with_any_name_in_any_environment(
    open_dir: Path, environment: dict[str, str]
) -> None:
    folder = open_dir / ODD
    folder.mkdir()
    deskbus = CommandLine(folder / "desk", folder, tuple(environment.items()), is_cold=True)
    ran = deskbus("run --json")
    assert ran.code == 0, ran.err
    assert ran.rows[0]["status"] == "completed"
    saved = deskbus("db backup b.dump")
    assert (saved.code, (folder / "b.dump").exists()) == (5, False), saved.err


def test_a_data_directory_that_nats_cannot_name_is_refused(open_dir: Path) -> None:
    refused = CommandLine(open_dir / "a\nb", open_dir, is_cold=True)("run")
    assert refused.code == 1
    assert "The path of the data directory has a line break" in refused.err
    assert list(open_dir.iterdir()) == []
