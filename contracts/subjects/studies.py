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
from contracts.subjects.subject import console, request

RUN_STUDY = request("run_study", RunStudy, StudyAnswer)
STOP_STUDY = request("stop_study", StopStudy, StudyAnswer)
STUDIES = console("studies", StudiesQuery, StudiesView)
STUDY_SCORE = console("study_score", StudyScoreQuery, StudyScore)
STUDY_CELLS = console("study_cells", StudyCellsQuery, StudyCells)
STUDY_CALLS = console("study_calls", StudyCallsQuery, StudyCallsView)
