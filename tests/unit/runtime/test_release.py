"""What a release does to the tree: the version everywhere, the CHANGELOG dated and not too long."""

import shutil
from pathlib import Path

import pytest

from deploy import release

ROOT = Path(__file__).parents[3]
LOG = "# Changelog\n\n## [Unreleased]\n\n- Something.\n\n## [0.1.0] - 2026-11-22\n\n- Before.\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for place in release.PLACES:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place, tmp_path / place)
    (tmp_path / "CHANGELOG.md").write_text(LOG)
    return tmp_path


def test_the_version_stands_in_every_place_that_names_it(tree: Path) -> None:
    release.set_version("0.9.7", tree)
    assert all("0.9.7" in (tree / place).read_text() for place in release.PLACES)
    (tree / "docs/install.md").write_text("no version\n")
    with pytest.raises(release.NotReleasable, match=r"docs/install\.md does not name 0\.9\.7"):
        release.set_version("0.9.8", tree)


def test_what_was_unreleased_is_the_versions(tree: Path) -> None:
    release.dated_changelog("0.2.0", "2026-11-30", tree)
    text = (tree / "CHANGELOG.md").read_text()
    assert "## [Unreleased]\n\n## [0.2.0] - 2026-11-30\n\n- Something.\n\n## [0.1.0]" in text
    with pytest.raises(release.NotReleasable, match="nothing below"):
        release.dated_changelog("0.2.1", "2026-12-01", tree)


def test_a_changelog_that_nobody_reads_to_the_end_is_refused(tree: Path) -> None:
    long = LOG.replace("- Something.\n", "- Something.\n" * 121)
    (tree / "CHANGELOG.md").write_text(long)
    with pytest.raises(release.NotReleasable, match="121 lines"):
        release.dated_changelog("0.2.0", "2026-11-30", tree)
    assert (tree / "CHANGELOG.md").read_text() == long


@pytest.mark.parametrize("words", [[], ["0.2"], ["v0.2.0"], ["0.2.0", "now"], ["0.2.0; rm"]])
def test_what_is_no_version_changes_nothing(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert release.main(words) == 2
    assert "usage" in capsys.readouterr().out


def test_the_changelog_to_come_is_one_that_can_be_released(tree: Path) -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    # Right after a release it is empty.
    text = text.replace(f"{release.UNRELEASED}\n", f"{release.UNRELEASED}\n\n- Something.\n")
    (tree / "CHANGELOG.md").write_text(text)
    assert "9.9.9" in release.dated_changelog("9.9.9", "2026-11-30", tree)
