"""The pages show what the program prints today."""

from pathlib import Path

from deploy.reference.run_sample import form_of, printed, sample_of

ROOT = Path(__file__).parents[3]
WHOLE = ROOT / "docs" / "reading.md"


def test_the_output_of_a_run_is_what_a_run_prints() -> None:
    shown = form_of(sample_of(WHOLE.read_text()))

    assert form_of(printed()) == shown, "it is stale: `make readme` writes it anew"


def test_the_short_of_it_in_the_readme_are_lines_of_the_whole() -> None:
    readme = (ROOT / "README.md").read_text()
    short = readme.partition("<!-- SHORT-OUTPUT: begin")[2].partition("<!-- SHORT-OUTPUT: end")[0]
    whole = sample_of(WHOLE.read_text()).splitlines()
    lines = [line for line in short.partition("```")[2].partition("```")[0].splitlines() if line]
    assert len(lines) > 6
    assert [line for line in lines if line not in whole] == []
