"""The score of a study, as a process that can be ended: statistics of a whole study take seconds,
and their packages much memory."""

import sys

from contracts.study import StudyKind
from libs.quant.study.path import score_path
from libs.quant.study.record import Recorded
from libs.quant.study.score import score_picks
from libs.report.studies.audit import audit
from libs.runtime.computing import request_in, tell


def main() -> None:
    """One record from stdin to stdout."""
    _, body = request_in(sys.stdin.buffer)
    recorded = Recorded.model_validate_json(body)
    is_path = recorded.study.kind is StudyKind.PATH
    score = score_path(recorded) if is_path else score_picks(recorded)
    score = score.model_copy(update={"audit": audit(score)})
    tell(sys.stdout.buffer, "R", score.model_dump(mode="json"))


if __name__ == "__main__":
    main()
