"""Make a release, up to the point where it would be uploaded: `python -m deploy.release 0.2.0`.

It changes the version and the CHANGELOG in this tree, checks what a release has to hold, builds the
packages into dist/ and the image where a Docker engine answers, and prints what is left to do. Each
step says what it found; the first that fails ends it, and the tree is yours to look at.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION = re.compile(r"(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:rc[1-9]\d*)?")
PLACES = (
    "pyproject.toml",
    "deploy/client/pyproject.toml",
    "compose.yaml",
    "deploy/env.example",
    "deploy/kubernetes/base/kustomization.yaml",
    "docs/kubernetes.md",
    "docs/install.md",
)
"""The files that name the version."""
CHANGELOG_LINES_MAX = 120
"""Of one version: whoever upgrades reads it to the end."""
UNRELEASED = "## [Unreleased]"
GENERATED = ("contracts", "dashboards", "prompts", "size")
"""Targets of the Makefile that write what is committed, and must change nothing."""


class NotReleasable(Exception):
    """A step found what a release must not have; the text says what to do."""


def main(words: Sequence[str]) -> int:
    """Do all steps; 0 where none failed."""
    if len(words) != 1 or not VERSION.fullmatch(words[0]):
        print("usage: python -m deploy.release VERSION, for example 0.2.0 or 0.2.0rc1")
        return 2
    version = words[0]
    steps: tuple[tuple[str, Callable[[], str]], ...] = (
        ("tree", unchanged_tree),
        ("generated", generated_is_current),
        ("version", lambda: set_version(version)),
        ("changelog", lambda: dated_changelog(version, datetime.now(UTC).date().isoformat())),
        ("packages", built_packages),
        ("installed", installed_alone),
        ("image", lambda: built_image(version)),
    )
    for name, step in steps:
        try:
            print(f"{name:10} {step()}", flush=True)
        except NotReleasable as error:
            print(f"{name:10} {error}", file=sys.stderr)
            return 1
    print(
        f"\nleft to you, in this order: make soak and make bench on a quiet machine;\n"
        f"  git commit -am 'Release {version}' && git tag -s v{version} && git push --follow-tags\n"
        f"  upload dist/* and push the image; docs/releasing.md has what comes after"
    )
    return 0


def unchanged_tree() -> str:
    """All that is here is committed."""
    changed = _run("git", "status", "--porcelain").strip()
    if changed:
        raise NotReleasable(f"commit or remove first:\n{changed}")
    return f"clean at {_run('git', 'rev-parse', '--short', 'HEAD').strip()}"


def generated_is_current() -> str:
    """What code writes into the tree is what stands there."""
    _run("make", *GENERATED)
    changed = _run("git", "diff", "--name-only").split()
    if changed:
        raise NotReleasable(f"make {' '.join(GENERATED)} changed {', '.join(changed)}: commit that")
    return f"make {' '.join(GENERATED)} changes nothing"


def set_version(version: str, root: Path = ROOT) -> str:
    """Write the version wherever it stands."""
    before = re.search(r'^version = "(.+)"$', (root / PLACES[0]).read_text(), re.MULTILINE)
    if before is None:
        raise NotReleasable(f"{PLACES[0]} names no version")
    for place in PLACES:
        text = (root / place).read_text()
        if before[1] not in text:
            raise NotReleasable(f"{place} does not name {before[1]}")
        (root / place).write_text(text.replace(before[1], version))
    return f"{before[1]} is {version} in {len(PLACES)} files"


def dated_changelog(version: str, day: str, root: Path = ROOT) -> str:
    """What was unreleased is the version's, under an empty section for what comes."""
    path = root / "CHANGELOG.md"
    head, found, rest = path.read_text().partition(f"{UNRELEASED}\n")
    section = re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0].strip()
    if not found or not section:
        raise NotReleasable(f"CHANGELOG.md has nothing below {UNRELEASED}")
    lines = len(section.splitlines())
    if lines > CHANGELOG_LINES_MAX:
        raise NotReleasable(
            f"CHANGELOG.md has {lines} lines for {version}; {CHANGELOG_LINES_MAX} are the most: "
            "keep what a user does or notices"
        )
    path.write_text(f"{head}{UNRELEASED}\n\n## [{version}] - {day}\n{rest}")
    return f"{lines} lines of {version}, dated {day}"


def built_packages() -> str:
    """The wheel, the sdist and the client's wheel, in dist/."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    _run("make", "wheel")
    built = sorted(path.name for path in (ROOT / "dist").iterdir())
    return ", ".join(built)


def installed_alone() -> str:
    """The packages work in environments where nothing else is."""
    tests = ("tests/integration/deploy/test_wheel.py", "tests/integration/desk/test_client.py")
    _run(sys.executable, "-m", "pytest", "-q", "-m", "", *tests)
    return "the wheel decides alone, and the client reaches a desk"


def built_image(version: str) -> str:
    """The image, where a Docker engine answers."""
    if shutil.which("docker") is None or not _answers("docker", "info"):
        return "not built: no Docker engine answers here"
    _run("docker", "build", "--file", "deploy/Dockerfile", "--tag", f"deskbus:{version}", ".")
    return f"deskbus:{version}"


def _answers(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603


def _run(*command: str) -> str:
    """The output of a command in the tree. Raises NotReleasable with its last words."""
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    if ran.returncode:
        words = "\n".join((ran.stdout + ran.stderr).strip().splitlines()[-15:])
        raise NotReleasable(f"{' '.join(command)} failed:\n{words}")
    return ran.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
