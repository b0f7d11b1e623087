"""Studies: run and stop them, and look at their scores, cells and calls."""

from contracts.study import (
    RunStudy,
    StopStudy,
    StudiesQuery,
    StudiesView,
    StudyAnswer,
    StudyCallsQuery,
    StudyCallsView,
    StudyCells,
    StudyCellsQuery,
)
from contracts.study_score import StudyScore, StudyScoreQuery
from contracts.subjects.subject import (
    AGENTS,
    MCP_REQUESTER,
    PREFIX,
    REQUESTERS,
    STUDY,
    USERS,
    Class,
    Subject,
)

LOOKERS = (*REQUESTERS, *AGENTS)
"""Who may see how far a study is, and its score."""

RUN_STUDY = Subject(
    Class.REQUEST, STUDY, "run_study", RunStudy, StudyAnswer, (*REQUESTERS, MCP_REQUESTER)
)
STOP_STUDY = Subject(Class.REQUEST, STUDY, "stop_study", StopStudy, StudyAnswer, REQUESTERS)
STUDIES = Subject(Class.QUERY, STUDY, "studies", StudiesQuery, StudiesView, LOOKERS)
STUDY_SCORE = Subject(Class.QUERY, STUDY, "study_score", StudyScoreQuery, StudyScore, LOOKERS)
STUDY_CELLS = Subject(Class.QUERY, STUDY, "study_cells", StudyCellsQuery, StudyCells, REQUESTERS)
STUDY_CALLS = Subject(
    Class.QUERY, STUDY, "study_calls", StudyCallsQuery, StudyCallsView, (*USERS, *AGENTS)
)
CYCLE_ENDS = f"{PREFIX}.evt.orchestrator.cycle_ended.>"
"""The events that the service hears: when a cycle ends, a cell may begin."""
