"""The desk reads and writes UTF-8, whatever the locale says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = (
    "import sys; from libs.runtime.utf8 import use_utf8; use_utf8(); "
    "print(sys.argv[1], open('a').read(), sys.flags.utf8_mode)"
)


@pytest.mark.parametrize(
    ("changes", "mode"),
    [
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, 1),
        ({"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, 1),
        ({"LC_ALL": "C.UTF-8"}, 0),
    ],
)
def test_a_program_goes_on_in_utf8(tmp_path: Path, changes: dict[str, str], mode: int) -> None:
    (tmp_path / "a").write_text("数据", encoding="utf-8")
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM, "josé"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), **changes},
        capture_output=True,
        check=True,
    )
    assert answer.stdout.decode() == f"josé 数据 {mode}\n"
