"""What the launcher tells of services that do not begin."""

from pathlib import Path

from libs.servers.supervisor import Child
from services.launcher import ServicesNotReady


def test_services_that_do_not_begin_are_told_with_the_last_line_of_their_logs(tmp_path: Path):
    log, missing = tmp_path / "console-1.log", tmp_path / "risk-1.log"
    log.write_text("started\nport 8000 is taken\n")
    children = [Child(path.stem, ("x",), path) for path in (log, missing)]

    said = str(ServicesNotReady(children))

    assert f"{log}: port 8000 is taken\n" in said
    assert f"{missing}: (unreadable" in said
    assert "started" not in said
