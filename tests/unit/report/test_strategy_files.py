"""Strategies as files: names that clash, files that a person edits, and what is no spec."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from contracts.strategy import STRATEGY_NAME_MAX, StrategySpec
from libs.report.strategies.files import (
    ExportFailed,
    StrategyFiles,
    spec_of,
    text_of,
)
from libs.runtime.own_text import UnreadableFile

EXAMPLE = Path(__file__).parents[3] / "services/cli/desk/folder/strategy.yaml"


@pytest.fixture
def spec() -> StrategySpec:
    return spec_of(EXAMPLE.read_text())


@pytest.fixture
def files(tmp_path: Path) -> StrategyFiles:
    return StrategyFiles(tmp_path / "strategies")


def other(spec: StrategySpec) -> StrategySpec:
    return spec.model_copy(update={"seed": spec.seed + 1})


def test_a_spec_comes_back_from_its_text_as_it_was(spec: StrategySpec) -> None:
    assert spec_of(text_of(spec)) == spec


def test_the_text_is_as_a_person_would_write_it(spec: StrategySpec) -> None:
    text = text_of(spec)
    assert text.startswith("name: trend-and-calm\n")
    assert "first: 2005-01-03" in text
    assert "bars: 20\n" in text


def test_the_file_has_the_specs_name(files: StrategyFiles, spec: StrategySpec) -> None:
    named, path = files.keep_spec(spec)
    assert (named, path.name) == (spec, "trend-and-calm.yaml")
    assert spec_of(path.read_text()) == spec


def test_another_spec_of_the_same_name_gets_a_number(
    files: StrategyFiles, spec: StrategySpec
) -> None:
    _, first = files.keep_spec(spec)
    named, path = files.keep_spec(other(spec))
    third, _ = files.keep_spec(other(other(spec)))
    assert (named.name, path.name) == ("trend-and-calm-2", "trend-and-calm-2.yaml")
    assert third.name == "trend-and-calm-3"
    assert spec_of(first.read_text()) == spec


def test_the_same_spec_again_has_its_name_still(files: StrategyFiles, spec: StrategySpec) -> None:
    files.keep_spec(spec)
    numbered, _ = files.keep_spec(other(spec))
    assert files.keep_spec(spec)[0].name == spec.name
    assert files.keep_spec(other(spec))[0].name == numbered.name


def test_a_persons_own_file_of_this_spec_is_left_as_it_is(
    files: StrategyFiles, spec: StrategySpec
) -> None:
    _, path = files.keep_spec(spec)
    path.write_text(EXAMPLE.read_text())
    assert files.keep_spec(spec) == (spec, path)
    assert path.read_text() == EXAMPLE.read_text()


def test_a_file_that_is_no_spec_is_never_written_over(
    files: StrategyFiles, spec: StrategySpec
) -> None:
    _, path = files.keep_spec(spec)
    path.write_text("notes: [of mine\n")
    assert files.keep_spec(spec)[0].name == "trend-and-calm-2"
    assert path.read_text() == "notes: [of mine\n"


def test_a_numbered_name_is_not_too_long(files: StrategyFiles, spec: StrategySpec) -> None:
    long = spec.model_copy(update={"name": "a" * STRATEGY_NAME_MAX})
    files.keep_spec(long)
    named, path = files.keep_spec(other(long))
    assert named.name == "a" * (STRATEGY_NAME_MAX - 2) + "-2"
    assert spec_of(path.read_text()).name == named.name


def test_nothing_is_left_beside_the_files(files: StrategyFiles, spec: StrategySpec) -> None:
    _, path = files.keep_spec(spec)
    files.keep_spec(other(spec))
    files.keep_assessment(spec.name, {"verdict": "poor"})
    names = sorted(each.name for each in path.parent.iterdir())
    assert names == ["trend-and-calm", "trend-and-calm-2.yaml", "trend-and-calm.yaml"]


def test_an_assessment_takes_the_place_of_the_one_before(files: StrategyFiles) -> None:
    files.keep_assessment("mine", {"verdict": "poor"})
    path = files.keep_assessment("mine", {"verdict": "promising"})
    assert json.loads(path.read_text()) == {"verdict": "promising"}


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path, spec: StrategySpec) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(ExportFailed, match=r"taken.*strategies_dir"):
        StrategyFiles(tmp_path / "taken").keep_spec(spec)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name: [open", "not valid YAML.*line 1"),
        ("- a\n- b", "a mapping"),
        ("", "a mapping"),
        ("a: &x [1]\nb: [*x, *x]", "aliases"),
    ],
)
def test_what_is_no_spec_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(UnreadableFile, match=why):
        spec_of(text)


def edited(old: str, new: str) -> str:
    text = EXAMPLE.read_text()
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("indicator: rsi", "indicator: tea_leaves", "features.2.indicator"),
        ("held_out: {first: 2010-01-04", "held_out: {first: 2009-06-01", "held_out"),
        ("of: probability, above", "of: probability, bars_ago: -1, above", "entry.long.0.bars_ago"),
        ("name: trend-and-calm", "name: ../trend-and-calm", "name"),
        ("horizon_bars: 10", "horizon_bars: .nan", "label.horizon_bars"),
        ("trees: 60", "leaves: 60", "model.gradient_boosting.leaves"),
    ],
)
def test_a_wrong_field_is_named(old: str, new: str, field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        spec_of(edited(old, new))
    assert [".".join(map(str, each["loc"])) for each in refused.value.errors()] == [field]


def test_a_new_report_is_not_left_beside_what_was_thought_of_an_older_run(tmp_path: Path) -> None:
    files = StrategyFiles(tmp_path)
    files.keep_report("mine", "first")
    path = files.keep_assessment("mine", {"verdict": "promising"})
    files.keep_report("mine", "second, which was cancelled")
    assert not path.exists()
