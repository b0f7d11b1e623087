"""The lexicon on labelled headlines: the figures that docs/digest.md tells."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from libs.llm.rules.lexicon import tone

ROOT = Path(__file__).parents[4]
LABELS = ("positive", "neutral", "negative")


@dataclass(frozen=True)
class Quality:
    """How well signs match labels; `wrong_sign_pct` is of the headlines that have a sign."""

    headlines: int
    macro_f1: float
    wrong_sign_pct: float


def measured(part: str) -> Quality:
    with (ROOT / "tests" / "data" / "headlines" / "labelled.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["part"] == part]
    return quality([(row["label"], label_of(row["title"])) for row in rows])


def label_of(title: str) -> str:
    value = tone(title)
    return "neutral" if value == 0 else "positive" if value > 0 else "negative"


def quality(pairs: Sequence[tuple[str, str]]) -> Quality:
    scores = []
    for label in LABELS:
        hits = sum(true == said == label for true, said in pairs)
        scores.append(2 * hits / sum((true == label) + (said == label) for true, said in pairs))
    signed = [said for true, said in pairs if true != "neutral"]
    wrong = sum({true, said} == {"positive", "negative"} for true, said in pairs)
    return Quality(len(pairs), sum(scores) / len(LABELS), 100 * wrong / len(signed))


@pytest.mark.parametrize("part", ["seen", "held_out"])
def test_the_documented_quality_is_the_measured_one(part: str) -> None:
    found = measured(part)
    row = f"| `{part}` | {found.headlines} | {found.macro_f1:.2f} | {found.wrong_sign_pct:.0f} % |"
    assert row in (ROOT / "docs" / "digest.md").read_text(encoding="utf-8")


def test_a_scorer_that_is_always_right_or_always_wrong_is_seen_as_such() -> None:
    assert quality([(label, label) for label in LABELS]) == Quality(3, 1.0, 0.0)
    turned = {"positive": "negative", "negative": "positive", "neutral": "neutral"}
    assert quality(list(turned.items())).wrong_sign_pct == 100.0
    silent = [(label, "neutral") for label in LABELS]
    assert quality(silent) == Quality(3, pytest.approx(1 / 6), 0.0)
