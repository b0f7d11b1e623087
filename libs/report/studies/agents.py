"""The section on what each agent brings: arms beside the same without its model. Pure."""

from contracts.study_score import Estimate, Measure, StudyScore
from libs.report.studies import words
from libs.report.studies.parts import Cell, Column, Section, Table


def agents(score: StudyScore) -> Section | None:
    """The rows of what agents bring; None where no arm is without one."""
    if not score.agents:
        return None
    columns = (
        *(Column("agent"), Column("with it"), Column("without")),
        *(Column("right choices", right=True), Column("95% interval", wide=True)),
        *(Column("excess", right=True), Column("95% interval"), Column("q", right=True)),
        *(Column("changed", right=True), Column("verdict")),
    )
    rows = [
        [
            Cell(", ".join(gap.stages)),
            *(Cell(arm, arm=arm) for arm in (gap.arm, gap.less)),
            words.estimate(gap.hits, words.points),
            Cell(words.interval(gap.hits, Measure.HITS)),
            words.estimate(gap.excess, words.gain),
            Cell(words.excess_interval(gap.excess)),
            Cell(words.resolution(gap.excess) if isinstance(gap.excess, Estimate) else ""),
            Cell(words.share(gap.changed)),
            words.verdict(gap.excess),
        ]
        for gap in score.agents
    ]
    return Section(
        "Agents",
        "An arm less the same in which the rules speak in an agent's place: what its model brings,"
        " in percentage points of right choices and in excess return of a decision. Changed:"
        " choices that are others without it. The verdict is by excess.",
        [Table(columns, rows)],
    )
