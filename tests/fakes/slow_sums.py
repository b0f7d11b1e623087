"""CPU work for tests, run as `libs.runtime.worker_process` does: `-m tests.fakes.slow_sums`."""

import os
import sys
import time

from libs.runtime.worker_process import ProgressLines, request_in, tell


def main() -> None:
    """Do what the request says: add, refuse, break, or go on until somebody ends it."""
    asked, body = request_in(sys.stdin.buffer)
    out = sys.stdout.buffer
    telling = ProgressLines(out, time.monotonic)
    match asked["do"]:
        case "add":
            for place, value in enumerate(body):
                telling(place / len(body), f"number {value}")
            tell(out, "R", {"sum": sum(body), "pid": os.getpid()})
        case "refuse":
            tell(out, "E", {"message": "train.first: too early", "field": "train.first"})
        case "break":
            raise RuntimeError("out of paper")
        case _:
            telling(0.0, str(os.getpid()))
            while True:
                sum(range(100_000))


if __name__ == "__main__":
    main()
