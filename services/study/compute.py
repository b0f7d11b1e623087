"""The score of a study, as a process that can be ended: statistics of a whole study take seconds,
and their packages much memory."""

import sys

from contracts.study import StudyKind
from libs.runtime.worker_process import request_in, tell
from libs.study.report.audit import audit
from libs.study.statistics.path import score_path
from libs.study.statistics.record import StudyRecord
from libs.study.statistics.score import score_picks


def main() -> None:
    """One record from stdin to stdout."""
    _, body = request_in(sys.stdin.buffer)
    recorded = StudyRecord.model_validate_json(body)
    is_path = recorded.study.kind is StudyKind.PATH
    score = score_path(recorded) if is_path else score_picks(recorded)
    score = score.model_copy(update={"audit": audit(score)})
    tell(sys.stdout.buffer, "R", score.model_dump(mode="json"))


if __name__ == "__main__":
    main()
