"""What must never be committed: hosts of registries, paths of one machine, secrets."""

import re
from pathlib import Path

import pytest

# Spelled in pieces, so that this file is no hit of its own.
HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("registry", "npmjs"),
        ("npmjs", "org"),
        ("yarnpkg", "com"),
        ("deb", "debian"),
        ("security", "debian"),
        ("archive", "ubuntu"),
        ("crates", "io"),
        ("proxy", "golang"),
        ("conda", "anaconda"),
    )
]
INDEXES = ["--index" + "-url", "--extra-index" + "-url", "--trusted" + "-host", "simple/" + "pip"]
PATHS = ["/" + "/".join(p) for p in (("work", "main"), ("work", "shared"), ("tmp", "dev", ""))]
PATHS += ["/" + "/".join(p) for p in (("opt", "pypi"), ("root", "."), ("home", "user", ""))]
SECRETS = {
    "an nkey seed": r"\bS[AUOCNX][A-Z2-7]{56}\b",
    "a private key": "-----BEGIN [A-Z ]*PRIVATE" + " KEY",
    "a model provider's key": r"\bsk-" + r"(ant-|proj-)?[A-Za-z0-9_-]{20,}",
    "an AWS key": r"\bAKIA" + r"[0-9A-Z]{16}\b",
    "a GitHub token": r"\bgh[pousr]" + r"_[A-Za-z0-9]{30,}",
    "a Slack token": r"\bxox[abpr]" + r"-[A-Za-z0-9-]{10,}",
    "a login in an address": r"://[^\s:/{}<>\"'`@]+:" + r"[^\s/{}<>\"'`@]{6,}@",
}
SECRET_FILES = (".nk", ".password", ".pem", ".key")
LICENCED = re.compile(r"^LICENSE$")
DATA = "tests/data/json_schemas/"
"""Schemas of others, which name their own homes."""


@pytest.fixture(scope="module")
def texts(tracked: list[Path], root: Path) -> dict[str, str]:
    found = {}
    for path in tracked:
        name = path.relative_to(root).as_posix()
        if not name.startswith(DATA) and not LICENCED.match(name):
            found[name] = path.read_bytes().decode("utf-8", errors="replace")
    return found


def hits(texts: dict[str, str], patterns: list[str]) -> list[str]:
    wanted = re.compile("|".join(patterns), re.MULTILINE)
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in texts.items()
        if wanted.search(text)
        for number, line in enumerate(text.splitlines(), 1)
        if wanted.search(line)
    ]


def test_no_registry_is_named(texts: dict[str, str]) -> None:
    assert hits(texts, [re.escape(each) for each in HOSTS]) == []


def test_no_merge_was_left_half_done(texts: dict[str, str]) -> None:
    assert hits(texts, ["^" + sign * 7 + " " for sign in "<>"]) == []


def test_no_index_is_asked_for(texts: dict[str, str]) -> None:
    assert hits(texts, [re.escape(each) for each in INDEXES]) == []


def test_no_path_of_one_machine_is_named(texts: dict[str, str]) -> None:
    assert hits(texts, [re.escape(each) for each in PATHS]) == []


@pytest.mark.slow
@pytest.mark.parametrize("what", SECRETS)
def test_no_secret_is_committed(what: str, texts: dict[str, str]) -> None:
    assert hits(texts, [SECRETS[what]]) == []


def test_no_file_that_holds_secrets_is_committed(texts: dict[str, str]) -> None:
    assert [name for name in texts if name.endswith(SECRET_FILES)] == []


def test_locks_are_the_hashed_ones_and_name_no_host(root: Path, texts: dict[str, str]) -> None:
    assert not (root / "uv.lock").exists(), "uv.lock records hosts; requirements*.lock do not"
    for lock in [name for name in texts if name.endswith(".lock")]:
        assert "--hash=sha256:" in texts[lock]
        assert "://" not in texts[lock], lock


@pytest.mark.parametrize(
    ("what", "example"),
    [
        ("an nkey seed", "SU" + "A" * 56),
        ("a private key", "-----BEGIN OPENSSH PRIVATE" + " KEY-----"),
        ("a model provider's key", "sk-" + "ant-" + "a" * 24),
        ("an AWS key", "AKIA" + "A1" * 8),
        ("a GitHub token", "ghp" + "_" + "a" * 36),
        ("a Slack token", "xoxb" + "-1234567890-abc"),
        ("a login in an address", "postgresql://desk:" + "hunter22" + "@db/desk"),
    ],
)
def test_each_pattern_finds_what_it_is_for(what: str, example: str) -> None:
    assert hits({"file": f"before {example} after"}, [SECRETS[what]])
