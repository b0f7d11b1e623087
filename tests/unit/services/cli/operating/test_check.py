"""`deskbus check`: all that a file has to be mended for is said, not the first of it alone."""

from pathlib import Path

from typer.testing import CliRunner

from services.cli.operating.check import app


def test_a_bad_row_hides_no_other_finding_of_its_file(tmp_path: Path) -> None:
    header = "date,open,high,low,close,volume\n"
    (tmp_path / "AAA.csv").write_text(f"{header}2024-01-02,10,11,9,10.5,1000\n")
    (tmp_path / "fx.csv").write_text(
        "date,pair,rate\n2024-01-02,GBPUSD,1.2\n2024-01-02,EURUSD,abc\n"
    )
    done = CliRunner().invoke(app, [str(tmp_path)])
    told = " ".join(done.output.split())
    assert "line 3: rate is 'abc'" in told
    assert "1 rows without known_at are left out" in told
