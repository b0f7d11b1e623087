"""`make docker` where no engine can be had: it says so and skips; the desk is not blamed for it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_without_an_engine_it_says_why_and_exits_0(tmp_path: Path) -> None:
    env = {**os.environ, "PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "tests.docker.kit"]
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("docker: "), done.stdout
    assert done.stdout.endswith(": skipped\n"), done.stdout
    assert not list(tmp_path.iterdir()), "nothing was begun"
