"""CPU work for tests, as `libs.runtime.computing` runs it: `python -m tests.fakes.slow_sums`."""

import os
import sys
import time

from libs.runtime.computing import Telling, request_in, tell


def main() -> None:
    """Do what the request says: add, refuse, break, or go on until somebody ends it."""
    asked, body = request_in(sys.stdin.buffer)
    out = sys.stdout.buffer
    telling = Telling(out, time.monotonic)
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
