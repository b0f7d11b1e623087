"""The README shows what the program prints today."""

from pathlib import Path

from deploy.reference.run_sample import form_of, printed, sample_of

README = Path(__file__).parents[3] / "README.md"


def test_the_readmes_output_of_a_run_is_what_a_run_prints() -> None:
    shown = form_of(sample_of(README.read_text()))

    assert form_of(printed()) == shown, "it is stale: `make readme` writes it anew"
