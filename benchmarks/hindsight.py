"""Does a study tell who knows the future by name from who does not?

    python -m benchmarks.hindsight [--dates 120] [--json]

One desk over the bundled prices, and on loopback models of which it is known how honest they are
(tests/fakes/hindsight.py): one decides by the facts, one remembers the weeks to come wherever a
name and a date tell it which they are, one recognises them by the course of prices. A study asks
them with names and masked, and probes who recognises masked inputs. What it says of each is
printed; exits 1 where a verdict is not the one that is deserved.
"""

import argparse
import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.report import table
from contracts.study_score import Estimate, LeakVerdict, StudyScore
from libs.servers.embedded_thread import held_in_thread
from libs.study.report import words
from tests.fakes.hindsight import (
    HONEST,
    KNOWS_COURSES,
    KNOWS_NAMES,
    UNIVERSE,
    WEEK,
    Hindsight,
    courses,
)
from tests.fakes.model_server import ModelServer, model_server
from tests.integration.desk.command_line import CommandLine, ended, up
from tests.open_folder import open_folder

STUDY: Final = "hindsight"
DATES: Final = 120
STUDY_S_MAX: Final = 3_600.0
PROBES: Final = 30
EXPECTED: Final = {
    HONEST: LeakVerdict.CLEAR,
    KNOWS_NAMES: LeakVerdict.LEAKS,
    KNOWS_COURSES: LeakVerdict.LEAKS,
}
"""The verdict that each deserves."""


@dataclass(frozen=True)
class Judged:
    """The study's report, one of its probes, what the replay of that has against it, and what the
    models were asked."""

    score: StudyScore
    probe: Mapping[str, Any]
    amiss: str
    calls: int
    refused: list[str]

    @property
    def verdicts(self) -> Mapping[str, LeakVerdict]:
        """By provider."""
        return {it.provider: it.verdict for it in self.score.leakage}


def main() -> None:
    """Run the study, print what it says, and compare."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hindsight", description=__doc__)
    parser.add_argument("--dates", type=int, default=DATES)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with open_folder("deskbus-hindsight-") as folder:
        judged = judge(folder, arguments.dates)
    print(judged.score.model_dump_json() if arguments.json else rendered(judged))
    wrong = [it for it, verdict in EXPECTED.items() if judged.verdicts[it] is not verdict]
    sys.exit(f"judged wrongly: {', '.join(wrong)}" if wrong else 0)


def judge(folder: Path, dates: int) -> Judged:
    """The report of a study of so many dates, whose desk lives in `folder`."""
    models = Hindsight(asyncio.run(courses()))
    with held_in_thread(lambda: model_server(models, None)) as server:
        # What a desk logs in an hour does not fit into the pipe that nobody reads.
        settings = (
            ("DESKBUS_PROVIDERS", _settings(server)),
            ("DESKBUS_LOG_LEVEL", "error"),
            # Who knows the future buys what has fallen: here the judge is tried, not that rule.
            ("DESKBUS_LIMITS", '{"exits_veto_buys": false}'),
        )
        deskbus = CommandLine(folder / "data", folder, settings)
        file = folder / f"{STUDY}.yaml"
        file.write_text(yaml.safe_dump(study(dates)))
        with up(deskbus) as (desk, _):
            _run(deskbus, file)
            said = deskbus(f"study score {STUDY} --json")
            probe = deskbus(f"study cells {STUDY} --probes --limit 1 --json")
            if said.code or probe.code:
                sys.exit(said.err or probe.err)
            replayed = deskbus(f"cycle replay {probe.rows[0]['cycle_id']}")
            ended(desk, signal.SIGINT)
        return Judged(
            StudyScore.model_validate(said.rows[0]),
            probe.rows[0],
            f"{replayed.out}{replayed.err}" if replayed.code else "",
            len(server.asked),
            server.refused,
        )


def study(dates: int) -> dict[str, Any]:
    """The study's file: each model with names and masked, beside a coin."""
    arms = [
        {"name": f"{name}{'-masked' if masked else ''}", "provider": provider, "masked": masked}
        for name, provider in (("knows", KNOWS_NAMES), ("honest", HONEST))
        for masked in (False, True)
    ]
    others = [
        {"name": "recognises", "provider": KNOWS_COURSES, "masked": True},
        {"name": "coin", "provider": "coin"},
    ]
    return {
        "name": STUDY,
        "dates": {"first": "2005-01-03", "last": "2012-12-31", "count": dates},
        "universe": list(UNIVERSE),
        "arms": [*arms, *others],
        "horizons": [WEEK],
        "budget": {"cost_usd": 0, "cell_cost_usd": 0, "tokens": 1_000_000_000},
        "probe": min(PROBES, dates),
        "seed": 1,
    }


def _settings(server: ModelServer) -> str:
    """Each model as a provider of its own, at no cost."""
    endpoints = {
        name: {
            "preset": "vllm",
            "base_url": server.openai_url,
            "models": dict.fromkeys(("small", "medium", "large"), name),
            "stream": False,
        }
        for name in EXPECTED
    }
    return json.dumps(endpoints)


def _run(deskbus: CommandLine, file: Path) -> None:
    with deskbus.started(f"study run {file} --json") as process:
        try:
            out, err = process.communicate(timeout=STUDY_S_MAX)
        except subprocess.TimeoutExpired:
            sys.exit(f"the study took more than {STUDY_S_MAX:g} s")
    if process.returncode:
        sys.exit(f"{out}{err}")


def rendered(judged: Judged) -> str:
    """The figures that the verdicts are by."""
    score = judged.score
    arms = [
        [
            arm.name,
            f"{arm.invested:.1%}",
            _with_interval(arm.hits, words.share),
            _with_interval(arm.excess, words.gain),
            arm.foresight.verdict.value if hasattr(arm.foresight, "verdict") else "",
        ]
        for arm in score.arms
    ]
    gaps = [
        [
            f"{gap.named} less {gap.masked}",
            f"{gap.changed:.1%}",
            _with_interval(gap.hits, words.points),
            _with_interval(gap.excess, words.gain),
        ]
        for gap in score.masked
    ]
    verdicts = [
        [it.provider, it.foresight.value, it.names.value, it.verdict.value] for it in score.leakage
    ]
    probes = [
        [
            it.arm,
            f"{it.hits} of {it.asked}",
            "" if it.low is None or it.high is None else f"{it.low:.1%} to {it.high:.1%}",
            f"{it.by_guessing:.1%}",
            f"{it.dates} of {it.asked}",
            {True: "blind", False: "not blind", None: "not shown"}[it.blind],
        ]
        for it in score.probes
    ]
    heads = ["arm", "identified", "interval", "by guessing", "date", "masked inputs"]
    return "\n\n".join(
        [
            f"{score.dates} dates, {score.first} to {score.last}; {judged.calls:,} calls",
            table(["arm", "invested", "right choices", "excess", "look-ahead"], arms),
            table(["arms", "changed", "right choices, points", "excess"], gaps),
            table(heads, probes),
            table(["provider", "look-ahead", "names", "verdict"], verdicts),
        ]
    )


def _with_interval(of: Any, write: words.Written) -> str:
    if not isinstance(of, Estimate):
        return words.not_shown(of)
    return f"{write(of.estimate)} ({write(of.low)} to {write(of.high)})"


if __name__ == "__main__":
    main()
