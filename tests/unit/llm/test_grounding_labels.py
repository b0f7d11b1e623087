"""The labelled claims are what their README says: split, complete, and right by arithmetic."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date
from math import isclose

import pytest

from tests.data.grounding.labelled import (
    HERE,
    PARAPHRASED,
    PARTS,
    UNSEEN,
    Claim,
    Statement,
    evidence,
    part_of,
    statements,
)
from tests.data.grounding.sums import BOUNDS, OPERATIONS, found, given, is_rounded, numbers

EVERY = (*PARTS, *UNSEEN)
CLAIMS_MIN = {"development": 240, "held_out": 80}
CLAIMS_MIN_LATER = 220
UNGROUNDED_SHARE = (0.4, 0.6)
"""Of what can be traced or not; words that are no claims are left out of the count."""
MAPS = frozenset({"technical_indicators", "assets.technical_indicators"})
KINDS = {
    *("exact", "rounded", "thousands", "negative", "unit_change", "spelled_out", "range"),
    *("percent_change", "difference", "ratio", "average", "count", "date"),
    *("headline", "ticker", "indicator_map", "key_figure", "name_or_period", "own_judgement"),
}
FAULTS = {
    *("wrong_value", "transposed", "sign", "wrong_unit", "wrong_base", "rounded_too_far"),
    *("other_ticker", "other_date", "other_field", "miscounted"),
    *("argument_only", "untrusted_text", "no_source", "invented"),
}

ALL = [
    (statement, claim)
    for part in (*EVERY, PARAPHRASED)
    for statement in statements(part)
    for claim in statement.claims
]
TRACED = [(statement, claim) for statement, claim in ALL if claim.how != "none"]


def holds(statement: Statement, claim: Claim) -> bool:
    """Whether the evidence says what the text says, by the operation that the label names."""
    name = statement.evidence
    match claim.how:
        case "quoted":
            return str(claim.value) in str(found(name, claim.origins[0])[0])
        case "mention":
            return found(name, claim.origins[0])[0] == claim.value
        case "date":
            return str(found(name, claim.origins[0])[0])[:10] == claim.value
        case "count":
            return sum(len(found(name, origin)) for origin in claim.origins) == claim.value
        case "days":
            first, last = (
                date.fromisoformat(str(found(name, origin)[0])) for origin in claim.origins
            )
            return (last - first).days == claim.value
    said = float(str(claim.value))
    if claim.how in BOUNDS:
        return all(BOUNDS[claim.how](number, said) for number in given(name, claim))
    return is_rounded(truth(statement, claim), said, claim.within)


def truth(statement: Statement, claim: Claim) -> float:
    """What the evidence says of the quantity that the claim is about."""
    return OPERATIONS[claim.how](given(statement.evidence, claim))


def digits(text: str) -> str:
    return re.sub(r"\D", "", text).strip("0")


@pytest.mark.parametrize("part", ["development", "held_out"])
def test_each_statement_stands_in_the_part_that_its_hash_names(part: str) -> None:
    wrong = [item.id for item in statements(part) if part_of(item.id) != part]
    assert wrong == []


def test_ids_are_unique_and_a_claim_is_named_after_its_statement() -> None:
    assert max(Counter(claim.id for _, claim in ALL).values()) == 1
    texts = Counter(
        (item.evidence, item.about, item.text)
        for part in (*EVERY, PARAPHRASED)
        for item in statements(part)
        if has_words(item.text)
    )
    assert max(texts.values()) == 1
    assert [claim.id for item, claim in ALL if claim.id[:-1] != item.id] == []


@pytest.mark.parametrize("part", UNSEEN)
def test_an_unseen_part_shares_no_id_and_no_wording_with_another(part: str) -> None:
    others = [
        item for other in (*EVERY, PARAPHRASED) if other != part for item in statements(other)
    ]
    assert {item.id for item in statements(part)}.isdisjoint(item.id for item in others)
    known = {wording(item.text) for item in others if has_words(item.text)}
    again = [item.id for item in statements(part) if wording(item.text) in known]
    assert again == []


def wording(text: str) -> str:
    """A sentence without its figures, so that the same one with others is seen to be the same."""
    return re.sub(r"[\d.,]+", "#", text)


def has_words(text: str) -> bool:
    """Whether a text is more than a number: two labellers write a price alike, and have to."""
    return bool(re.search(r"[a-z]{2}", text))


@pytest.mark.parametrize("part", EVERY)
def test_there_are_enough_claims_and_about_half_of_them_are_ungrounded(part: str) -> None:
    labels = Counter(claim.label for item in statements(part) for claim in item.claims)
    assert set(labels) == {"grounded", "ungrounded", "no_claim"}
    assert labels["grounded"] + labels["ungrounded"] >= CLAIMS_MIN.get(part, CLAIMS_MIN_LATER)
    low, high = UNGROUNDED_SHARE
    assert low <= labels["ungrounded"] / (labels["grounded"] + labels["ungrounded"]) <= high


@pytest.mark.parametrize("part", EVERY)
def test_each_kind_has_what_must_pass_and_what_must_be_found(part: str) -> None:
    sides = Counter(
        (claim.kind, claim.label == "ungrounded")
        for item in statements(part)
        for claim in item.claims
    )
    assert set(sides) == {(kind, side) for kind in KINDS for side in (True, False)}
    assert min(sides.values()) >= 3


def test_what_is_said_again_is_sound() -> None:
    labels = {claim.label for item in statements(PARAPHRASED) for claim in item.claims}
    assert labels == {"grounded", "no_claim"}


def test_every_figure_stands_where_its_claim_says() -> None:
    for item, claim in ALL:
        assert item.text[claim.start : claim.end] == claim.figure, claim.id
    for part in (*EVERY, PARAPHRASED):
        for item in statements(part):
            ends = [0, *(claim.end for claim in item.claims)]
            starts = [*(claim.start for claim in item.claims), len(item.text)]
            assert all(end <= start for end, start in zip(ends, starts, strict=True)), item.id


def test_no_digit_of_a_text_is_left_without_a_label() -> None:
    for part in (*EVERY, PARAPHRASED):
        for item in statements(part):
            left = list(item.text)
            for claim in item.claims:
                left[claim.start : claim.end] = " " * len(claim.figure)
            rest = "".join(left)
            if item.field in MAPS:  # the keys of a map are names
                rest = re.sub(r'"[a-z0-9_]+":', "", rest)
            assert not re.search(r"\d", rest), (item.id, rest)


def test_evidence_is_numbered_as_the_loop_does_and_hides_the_arguments() -> None:
    for name in {item.evidence for item, _ in ALL}:
        results = evidence(name)
        assert [item.id for item in results] == [f"E{place}" for place in range(len(results))]
        assert set(type(results[0]).model_fields) == {"id", "tool", "result"}


def test_a_grounded_claim_names_its_evidence_and_an_ungrounded_one_its_fault() -> None:
    for item, claim in ALL:
        ids = {result.id for result in evidence(item.evidence)}
        named = {origin.partition("/")[0] for origin in claim.origins}
        assert named <= ids, claim.id
        assert set(claim.by) == (named if claim.label == "grounded" else set()), claim.id
        assert bool(claim.by) == (claim.label == "grounded"), claim.id
        assert bool(claim.fault) == (claim.label == "ungrounded"), claim.id
        assert claim.fault in FAULTS | {""}, claim.id
        assert bool(claim.origins) == (claim.how != "none"), claim.id


def test_a_grounded_claim_follows_from_its_evidence() -> None:
    wrong = [c.id for item, c in TRACED if c.label == "grounded" and not holds(item, c)]
    assert wrong == []


def test_an_ungrounded_claim_differs_from_what_the_evidence_says_of_it() -> None:
    checked = [
        (item, claim)
        for item, claim in TRACED
        if claim.label == "ungrounded" and claim.fault != "rounded_too_far"
    ]
    assert [claim.id for item, claim in checked if holds(item, claim)] == []


def test_no_figure_is_a_matter_of_the_last_place() -> None:
    """A figure is either rounded as the guide allows or off by more than a whole last place."""
    near = []
    for item, claim in TRACED:
        if claim.how in OPERATIONS and claim.label == "ungrounded":
            off = abs(truth(item, claim) - float(str(claim.value)))
            if claim.fault != "rounded_too_far" and off <= 2 * claim.within:
                near.append(claim.id)
    assert near == []


def test_what_is_rounded_too_far_has_one_significant_digit_and_is_off_by_more_than_2_percent() -> (
    None
):
    far = [(item, claim) for item, claim in ALL if claim.fault == "rounded_too_far"]
    assert far
    for item, claim in far:
        assert len(digits(claim.figure)) == 1, claim.id
        assert abs(float(str(claim.value)) / truth(item, claim) - 1) > 0.02, claim.id


def test_an_exact_figure_is_in_the_evidence_digit_by_digit() -> None:
    exact = [(item, c) for item, c in TRACED if c.label == "grounded" and c.kind == "exact"]
    assert exact
    for item, claim in exact:
        place = found(item.evidence, claim.origins[0])
        if claim.how == "quoted":
            assert digits(claim.figure) in digits(str(place[0])), claim.id
        else:
            first = numbers(item.evidence, claim.origins[0])
            said = float(str(claim.value))
            assert isclose(said, OPERATIONS[claim.how](first), rel_tol=1e-9), claim.id


def test_the_value_of_a_claim_is_the_figure_in_its_text() -> None:
    for _, claim in TRACED:
        written = digits(claim.figure)
        if written and claim.how not in {"quoted", "mention", "date"}:
            assert written == digits(f"{float(str(claim.value)):f}"), claim.id


def test_the_guide_explains_every_kind_and_every_fault_and_counts_them_right() -> None:
    guide = (HERE / "README.md").read_text(encoding="utf-8")
    assert [word for word in sorted(KINDS | FAULTS) if f"`{word}`" not in guide] == []
    for part in (*EVERY, PARAPHRASED):
        labels = sum(len(item.claims) for item in statements(part))
        assert f"`{part}.jsonl` | {len(statements(part))} statements, {labels} labels" in guide
    for kind in KINDS:
        columns = f"{sides(PARTS, kind)} | {sides(UNSEEN, kind)}"
        assert f"| `{kind}` | {columns} |" in guide


def sides(parts: Sequence[str], kind: str) -> str:
    """How many labels of a kind must pass, and how many are ungrounded, in some parts together."""
    passing = [
        claim.label != "ungrounded"
        for part in parts
        for item in statements(part)
        for claim in item.claims
        if claim.kind == kind
    ]
    return f"{sum(passing)} / {len(passing) - sum(passing)}"


def test_the_arithmetic_that_judges_the_labels_can_say_no() -> None:
    assert is_rounded(2.6272, 2.63, 0.005)
    assert is_rounded(2.6272, 2.62, 0.005)
    assert not is_rounded(2.6272, 2.64, 0.005)
    assert not is_rounded(2.6272, -2.63, 0.005)
    assert digits("$1,740.0") == digits("17.4%") != digits("1,470")
