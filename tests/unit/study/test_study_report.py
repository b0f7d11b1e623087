"""A study's report: composed once, on a page that needs nothing else."""

import re
from datetime import date, timedelta
from uuid import UUID

import pytest

from contracts.message import PAGE_MAX
from contracts.study import (
    CellView,
    Study,
    StudyArm,
    StudyCells,
    StudyCellsQuery,
    StudyDates,
    StudyKind,
    StudyStatus,
)
from contracts.study_score import (
    AgentGap,
    ArmScore,
    Configurations,
    Equity,
    Estimate,
    Foresight,
    Leakage,
    LeakVerdict,
    MaskGap,
    Measure,
    NotShown,
    PairedDifference,
    Probe,
    RankInterval,
    StudyScore,
)
from libs.report.tones import Tone
from libs.study.report.audit import NOT_SHOWN, audit
from libs.study.report.compose import compose
from libs.study.report.lookahead import IDENTIFIED_PCT
from libs.study.report.page import CELLS_MAX, listed, page
from libs.study.report.parts import StudyReport
from libs.study.report.words import verdict
from libs.study.statistics.leakage import IDENTIFIED_MAX

FEW = NotShown(why="5 dates, needs 8", dates=5, needed=8)


def estimate(value: float, reach: float, dates: int = 40, needed: int | None = 20) -> Estimate:
    return Estimate(
        estimate=value,
        low=value - reach,
        high=value + reach,
        p=0.01 if abs(value) > reach else 0.4,
        dates=dates,
        needed=needed,
        resolved=abs(value) > reach,
    )


def sight(verdict_: LeakVerdict) -> Foresight:
    return Foresight(
        deviations=9, better=0.9, better_low=0.8, captured=0.9, dates=40, verdict=verdict_
    )


def scored(**fields: object) -> StudyScore:
    arm = ArmScore(
        name="knows",
        provider="scripted",
        decisions=40,
        picks=40,
        hits=estimate(0.7, 0.1),
        excess=estimate(0.01, 0.004),
        permuted=NotShown(why="it never preferred one asset to another"),
        foresight=sight(LeakVerdict.LEAKS),
        curve=(0.01, 0.02),
    )
    honest = arm.model_copy(
        update={"name": "honest", "excess": FEW, "foresight": sight(LeakVerdict.CLEAR)}
    )
    return StudyScore(
        study=Study(
            name="it",
            dates=StudyDates(first=date(2010, 1, 4), last=date(2011, 1, 4)),
            universe=("AA", "BB"),
            arms=(StudyArm(name="knows", provider="scripted"), StudyArm(name="honest")),
        ),
        status=StudyStatus.COMPLETED,
        dates=2,
        first=date(2010, 1, 4),
        last=date(2010, 1, 11),
        points=(date(2010, 1, 4), date(2010, 1, 11)),
        horizon=5,
        benchmark="candidates",
        arms=(arm, honest),
        canary=sight(LeakVerdict.LEAKS),
        differences=(
            PairedDifference(
                measure=Measure.EXCESS,
                first="knows",
                second="honest",
                difference=estimate(0.01, 0.004),
            ),
        ),
    ).model_copy(update=fields)


def texts(report: StudyReport) -> str:
    return "\n".join(
        cell.text
        for section in report.sections
        for table in section.tables
        for row in table.rows
        for cell in row.cells
    )


def test_every_row_has_a_cell_for_every_column():
    score = scored()
    report = compose(score.model_copy(update={"audit": audit(score)}))
    for section in report.sections:
        for table in section.tables:
            assert all(len(row.cells) == len(table.columns) for row in table.rows), section.title


def test_what_arms_cost_has_columns_only_where_one_was_paid_for():
    def heads(score: StudyScore) -> set[str]:
        (arms,) = (one for one in compose(score).sections if one.title == "Arms")
        return {column.title for column in arms.tables[0].in_use.columns}

    free = scored()
    paid = scored(arms=(free.arms[0].model_copy(update={"tokens": 900}), free.arms[1]))
    assert {"Arm", "95% interval", "Excess"} <= heads(free)
    assert heads(paid) - heads(free) == {"Tokens", "Cost"}
    rows = [row for one in compose(paid).sections[:1] for row in one.tables[0].rows]
    assert all(len(row.cells) == len(rows[0].cells) for row in rows)


def test_who_looks_ahead_is_said_first():
    first = compose(scored()).answer[0]
    assert first.text == "knows looks ahead"
    assert first.tone is Tone.BAD


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (
            estimate(0.01, 0.03, needed=1_900),
            "Rules vs coin: no difference seen; 1,900 dates would be needed",
        ),
        (estimate(0.0, 0.03, needed=None), "Rules vs coin: no difference on 40 dates"),
        (NotShown(why="3 dates, needs 8"), "Rules vs coin: 3 dates, needs 8"),
    ],
)
def test_two_arms_that_cannot_be_told_apart_say_what_it_would_take(
    difference: Estimate | NotShown, said: str
) -> None:
    pair = PairedDifference(
        measure=Measure.EXCESS, first="rules", second="coin", difference=difference
    )
    assert compose(scored(differences=(pair,))).answer[-1].text == said


def test_of_many_pairs_the_first_are_named_and_the_others_counted() -> None:
    pair = PairedDifference(
        measure=Measure.EXCESS, first="a", second="b", difference=estimate(0.0, 0.03, needed=None)
    )
    answer = [cell.text for cell in compose(scored(differences=(pair,) * 5)).answer]
    assert answer[-1] == "2 more pairs: no difference seen"


def known(names: LeakVerdict, verdict_: LeakVerdict) -> Leakage:
    return Leakage(
        provider="gpt",
        arms=("knows", "honest"),
        foresight=LeakVerdict.CLEAR,
        names=names,
        verdict=verdict_,
    )


@pytest.mark.parametrize(
    ("names", "verdict_", "said"),
    [
        (LeakVerdict.LEAKS, LeakVerdict.LEAKS, "gpt leaks: with names it decides better"),
        (LeakVerdict.CLEAR, LeakVerdict.CLEAR, "gpt: no leak found"),
        (LeakVerdict.NOT_RESOLVED, LeakVerdict.NOT_RESOLVED, None),
        (LeakVerdict.CLEAR, LeakVerdict.NOT_SHOWN, None),
    ],
)
def test_the_verdict_on_a_provider_stands_in_short_and_in_a_section(names, verdict_, said):
    report = compose(scored(leakage=(known(names, verdict_),)))
    (section,) = [each for each in report.sections if each.title == "Leakage"]
    (row,) = section.tables[0].rows
    assert (
        row.cells[-1].text
        == {
            LeakVerdict.LEAKS: "leaks",
            LeakVerdict.CLEAR: "no leak found",
            LeakVerdict.NOT_RESOLVED: "not resolved",
            LeakVerdict.NOT_SHOWN: "not shown",
        }[verdict_]
    )
    short = [cell.text for cell in report.answer if cell.text.startswith("gpt")]
    assert len(short) == (said is not None)
    assert all(text.startswith(said) for text in short)


def test_names_that_help_are_told_as_such_and_what_is_open_with_the_dates_it_needs():
    def gap(verdict_: LeakVerdict) -> MaskGap:
        return MaskGap(
            provider="gpt",
            named="knows",
            masked="honest",
            hits=estimate(0.02, 0.1),
            excess=estimate(0.002, 0.01, needed=900),
            changed=0.2,
            moved=0.1,
            verdict=verdict_,
        )

    said = texts(compose(scored(masked=tuple(map(gap, LeakVerdict)))))
    assert "names help it" in said
    assert "names tell it nothing" in said
    assert "not resolved: needs 900 dates" in said


def probed(hits: int, blind: bool) -> Probe:
    return Probe(
        provider="gpt",
        arm="knows",
        cells=30,
        hits=hits,
        asked=120,
        low=0.1,
        high=0.2,
        by_guessing=0.25,
        industries=20,
        industries_asked=60,
        dates=7,
        blind=blind,
    )


def test_a_probe_says_how_many_inputs_were_identified_and_whether_the_model_is_blind():
    said = texts(compose(scored(probes=(probed(90, False), probed(0, True)))))
    for words in ("90 of 120", "20 of 60", "7 of 120", "10.0% to 20.0%", "25.0%"):
        assert words in said
    lines = said.splitlines()
    assert lines.index("90 of 120") < lines.index("not blind") < lines.index("0 of 120")
    assert lines.index("blind") > lines.index("0 of 120")
    assert f"{IDENTIFIED_PCT}" == f"{100 * IDENTIFIED_MAX:g}"


def test_a_probed_arm_leads_to_its_own_cycles():
    cell = CellView(
        cycle_id=UUID(int=9),
        on=date(2010, 1, 4),
        number=0,
        sample=0,
        arm="knows",
        status="asked",
        kind="probe",
        identified=("AA",),
    )
    html = page(compose(scored(probes=(probed(90, False),))), [cell])
    assert 'href="#probe-knows">knows' in html
    assert 'id="probe-knows"' in html
    assert f"{cell.cycle_id}" in html
    assert "#decision-knows" not in html, "its decisions are not listed here"


def unshown(score: StudyScore) -> str:
    """The report's sentence on what it does not show; empty where it has none."""
    last = compose(score.model_copy(update={"audit": audit(score)})).sections[-1]
    return last.about if last.title == "Not shown" else ""


def test_all_that_is_not_shown_stands_in_one_sentence_by_its_reasons():
    dark = sight(LeakVerdict.CLEAR).model_copy(update={"deviations": 3.4})
    arms = tuple(
        arm.model_copy(update={"foresight": sight(LeakVerdict.NOT_SHOWN)}) for arm in scored().arms
    )
    score = scored(canary=dark, arms=arms, leakage=(known(*[LeakVerdict.NOT_SHOWN] * 2),))
    report = compose(score.model_copy(update={"audit": audit(score)}))

    assert unshown(score) == (
        "Excess of honest (5 dates, needs 8); who looks ahead, P1 temporal integrity (the"
        " look-ahead canary is not seen: +3.4 deviations of 4, so it needs about 56 such dates);"
        " what names bring, leakage of a provider, P3 counterfactual robustness (no provider has an"
        " arm with names and one without);"
        " identification of masked inputs (no probe is on record); stability (it needs more than"
        " one sample of a date); P4 predictive calibration (too few dates with stated confidences);"
        " P6 multi-agent disaggregation (no arm is without an agent's model); held-out period (no"
        " arm asks a model)."
    )
    titles = [section.title for section in report.sections]
    assert titles == ["Arms", "Paired differences", "Look-ahead", "Audit", "Not shown"]
    elsewhere = texts(report) + "".join(note for it in report.sections for note in it.notes)
    assert elsewhere.count("not shown") == texts(compose(scored())).count("not shown")
    assert "not seen" in texts(report)
    assert "nothing seen" not in texts(report), "a canary that is not seen clears nobody"


@pytest.mark.parametrize(
    ("canary", "why"),
    [
        (NotShown(why="5 dates, needs 20"), "is not seen: 5 dates, needs 20)"),
        (
            sight(LeakVerdict.CLEAR).model_copy(update={"better_low": 0.6}),
            "better at 60.0% of dates at the low end, needs 65.0%)",
        ),
        (
            sight(LeakVerdict.CLEAR).model_copy(update={"deviations": -0.2}),
            "-0.2 deviations of 4)",
        ),
        (sight(LeakVerdict.LEAKS), ""),
    ],
)
def test_a_canary_that_is_not_seen_says_what_it_lacks(canary, why):
    sentence = unshown(scored(canary=canary))
    assert why in sentence
    assert ("who looks ahead, P1 temporal integrity" in sentence) == bool(why)


def brier(first: str, second: str, difference: object, compared: int, differing: int) -> object:
    return PairedDifference(
        measure=Measure.BRIER,
        first=first,
        second=second,
        difference=difference,
        compared=compared,
        differing=differing,
    )


def test_a_difference_says_over_how_many_it_is_taken_and_how_many_of_them_differ():
    pair = brier("knows", "honest", estimate(0.02, 0.01), 31, 4)
    report = compose(scored(differences=(pair,)))
    (table,) = next(it.tables for it in report.sections if it.title == "Paired differences")

    assert "over picks that both made" in table.title
    heads = [column.title for column in table.columns]
    row = dict(zip(heads, (cell.text for cell in table.rows[0].cells), strict=True))
    assert (row["n"], row["Differ"], row["Difference"]) == ("31", "4", "+0.0200")


def test_where_nothing_can_be_compared_there_is_no_table_but_its_reason():
    why = NotShown(why="both state the same confidence in all picks of both")
    score = scored(
        differences=(*scored().differences, brier("knows", "honest", why, 31, 0)),
        ranks=(RankInterval(measure=Measure.EXCESS, arm="knows", best=1, worst=2),),
    )
    sections = {it.title: it for it in compose(score).sections}

    assert [it.title for it in sections["Paired differences"].tables] == [
        "Excess return of a decision, on dates that both decided"
    ]
    assert f"paired differences in Brier loss ({why.why})" in unshown(score).lower().replace(
        "brier", "Brier"
    )
    assert sections["Ranks"].notes == [
        "Brier loss: not ranked, as not every two arms could be compared"
    ]


def test_what_too_few_dates_do_not_show_is_said_with_how_many_are_needed():
    assert "Excess of honest (5 dates, needs 8)" in unshown(scored())
    few = tuple(arm.model_copy(update={"hits": FEW, "excess": FEW}) for arm in scored().arms)
    sentence = unshown(scored(arms=few))
    assert sentence.startswith("Right choices and excess (5 dates, needs 8); ")
    assert "not shown: 5 dates" not in texts(compose(scored(arms=few)))


def test_arms_that_hardly_ever_choose_are_not_cleared_and_that_is_said_once():
    few = NotShown(why="19 dates, needs 20", dates=19, needed=20)
    arms = tuple(arm.model_copy(update={"foresight": few}) for arm in scored().arms)
    score = scored(arms=arms)

    assert (
        "who looks ahead, P1 temporal integrity (dates at which an arm preferred some assets: 19"
        " dates, needs 20)" in unshown(score)
    )
    said = texts(compose(score))
    assert "19 dates" not in said
    assert "looks ahead" in said, "the canary lights up all the same"
    one = scored(arms=(arms[0], scored().arms[1]))
    assert "not shown: 19 dates, needs 20" in texts(compose(one)), "of one arm in its own row"
    assert "who looks ahead" not in unshown(one)


@pytest.mark.parametrize(
    ("shown", "lower", "said"),
    [
        (estimate(0.02, 0.01), False, "first is better"),
        (estimate(-0.02, 0.01), False, "second is better"),
        (estimate(-0.02, 0.01), True, "first is better"),
        (estimate(0.02, 0.01, needed=60), False, "first is better, narrowly"),
        (estimate(0.02, 0.03, needed=1_200), False, "not resolved: needs 1,200 dates"),
        (estimate(0.0, 0.03, needed=None), False, "not resolved: no difference"),
        (estimate(0.0, 0.0, needed=None), False, "no difference at 40 dates"),
        (FEW, False, "not shown: 5 dates, needs 8"),
    ],
)
def test_a_difference_says_who_is_ahead_or_that_it_is_not_resolved(shown, lower, said):
    assert verdict(shown, lower_is_better=lower).text == said


def test_the_audit_has_six_tests_and_seven_columns_and_says_what_is_not_shown():
    rows = audit(scored())
    assert [row.kind.value for row in rows].count("test") == 6
    assert [row.kind.value for row in rows].count("column") == 7
    missing = next(row for row in rows if row.name.startswith("P6"))
    assert (missing.shown, missing.command) == (False, "")
    assert missing.answer == f"{NOT_SHOWN}: no arm is without an agent's model"
    assert all(row.command for row in rows if row.shown)


def test_without_a_canary_that_lights_up_temporal_integrity_is_not_shown():
    dark = scored(canary=NotShown(why="5 dates, needs 20"))
    assert not next(row for row in audit(dark) if row.name.startswith("P1")).shown


def test_the_page_makes_no_request_and_runs_nothing():
    html = page(compose(scored()))
    assert "default-src 'none'" in html
    assert "<script" not in html
    assert not re.findall(r"(?:src|href)=\"(?!#)", html)
    assert "http://" not in html.replace("http://www.w3.org", "")


def test_arms_of_the_page_lead_to_their_cycles():
    cell = CellView(
        cycle_id=UUID(int=7),
        on=date(2010, 1, 4),
        number=0,
        sample=0,
        arm="knows",
        status="decided",
        weights={"AA": 0.25},
    )
    html = page(compose(scored()), [cell])
    assert 'href="#decision-knows"' in html
    assert f"{cell.cycle_id}" in html
    assert "AA 25%" in html
    assert 'href="#decision-honest"' not in html


async def test_the_page_lists_decisions_and_probes_page_by_page_up_to_its_limit():
    asked = []

    async def ask(query: StudyCellsQuery) -> StudyCells:
        asked.append((query.kind, query.skip))
        cell = CellView(
            cycle_id=UUID(int=5),
            on=date(2005, 1, 3),
            number=0,
            sample=0,
            arm="rules",
            status="completed",
        )
        probe = cell.model_copy(update={"kind": "probe"})
        if query.kind == "probe":
            return StudyCells(cells=(probe,))
        return StudyCells(cells=(cell,) * query.limit, more=True)

    cells = await listed("luck", ask)
    assert [cell.kind for cell in cells].count("decision") == CELLS_MAX
    assert cells[-1].kind == "probe"
    assert asked[-2:] == [("decision", CELLS_MAX - PAGE_MAX), ("probe", 0)]


def test_a_name_from_outside_is_escaped():
    hostile = scored(market_source="<b>prices</b>")
    assert "<b>prices" not in page(compose(hostile))


def test_a_study_without_cells_is_reported_as_such():
    empty = StudyScore(study=scored().study, message="no cell of it has ended yet")
    report = compose(empty)
    assert "no date could be scored" in report.asked
    assert report.answer[-1].text == "no cell of it has ended yet"
    page(report)


def test_the_days_of_a_curve_are_those_of_the_report():
    days = tuple(date(2010, 1, 4) + timedelta(days=7 * week) for week in range(30))
    curves = (0.01,) * 30
    score = scored(points=days)
    arms = tuple(arm.model_copy(update={"curve": curves}) for arm in score.arms)
    html = page(compose(score.model_copy(update={"arms": arms})))
    assert "2010-01-04: knows +1.00%; honest +1.00%" in html


def test_what_an_agent_brings_is_a_row_and_the_sixth_test_of_the_audit():
    gap = AgentGap(
        arm="knows",
        less="honest",
        stages=("sentiment", "risk"),
        hits=estimate(0.02, 0.1),
        excess=estimate(0.002, 0.01, needed=900),
        changed=0.2,
    )
    score = scored(agents=(gap,))
    said = texts(compose(score))
    for words in ("sentiment, risk", "+2.00", "not resolved: needs 900 dates"):
        assert words in said
    row = next(row for row in audit(score) if row.name.startswith("P6"))
    assert row.answer == (
        "sentiment, risk brings knows +2.00 points of right choices, not resolved"
    )


def path_score(**fields: object) -> StudyScore:
    account = Equity(
        name="knows 0",
        arm="knows",
        sessions=300,
        total_return=0.1,
        drawdown=0.2,
        sharpe=0.7,
        deflated_sharpe=0.4,
    )
    study = scored().study
    assert study is not None
    path = study.model_copy(update={"kind": StudyKind.PATH})
    return StudyScore(study=path, equity=(account,), dates=300).model_copy(update=fields)


def counted(kind: str, count: int, known: int, *sources: str, more: int = 0) -> Configurations:
    return Configurations(kind=kind, count=count, with_returns=known, sources=sources, more=more)


def test_the_report_of_a_path_says_among_how_many_configurations_luck_was_judged_and_whence():
    score = path_score(
        configurations=(
            counted("own", 2, 2),
            counted("path", 5, 4, "older"),
            counted("picks", 3, 0, "looks", more=2),
        )
    )
    (section, *_) = compose(score).sections
    rows = [[cell.text for cell in row.cells] for row in section.tables[-1].rows]
    assert rows == [
        ["accounts of this study", "2", "2", ""],
        ["accounts of other studies", "5", "4", "older"],
        ["arms of studies without accounts", "3", "0", "looks and 2 more"],
        ["all", "10", "6", ""],
    ]
    assert "among 10 configurations" in compose(score).answer[0].text


def test_an_account_has_a_verdict_or_says_what_one_needs():
    account = path_score().equity[0]
    skilled = account.model_copy(update={"deflated_sharpe": 0.97})
    short = account.model_copy(update={"deflated_sharpe": None})
    flat = short.model_copy(update={"sharpe": None})
    said = texts(compose(path_score(equity=(account, skilled, short, flat))))
    lines = said.splitlines()
    for words in (
        "may be luck",
        "more than luck",
        "not shown: needs 90 sessions and a second configuration",
        "not shown: it did not vary",
    ):
        assert words in lines


def test_a_probe_of_too_few_dates_says_how_many_it_needs():
    few = probed(0, False).model_copy(
        update={"low": None, "high": None, "blind": None, "cells": 12, "needed": 30}
    )
    assert "not shown: 12 dates, needs 30" in texts(compose(scored(probes=(few,))))
