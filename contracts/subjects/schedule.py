"""Scheduled jobs: look at them, run one now, pause and resume."""

from contracts.schedule import (
    JobAnswer,
    PauseJob,
    ResumeJob,
    RunJob,
    ScheduleQuery,
    ScheduleView,
)
from contracts.subjects.subject import console, request

PAUSE_JOB = request("pause_job", PauseJob, JobAnswer)
RESUME_JOB = request("resume_job", ResumeJob, JobAnswer)
RUN_JOB = request("run_job", RunJob, JobAnswer)
SCHEDULE = console("schedule", ScheduleQuery, ScheduleView)
