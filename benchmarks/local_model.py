"""One decision of a local model in the documented profile: `python -m benchmarks.local_model`.

    python -m benchmarks.local_model --address http://127.0.0.1:8080/v1 --model qwen
    python -m benchmarks.local_model --gguf qwen.gguf       # with the package xllamacpp installed

The settings are those of docs/providers.md ("A profile for weak local models"), with this address
and model. A new desk decides on the bundled prices; printed is, stage by stage, how it ended, who
answered, how long it took, its calls and tokens. The exit code is 0 where it ended in a decision.
With `--gguf` a llama.cpp server is started for that file and ended with the program.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.footprint import DATA_VARIABLE, started
from libs.runtime.ports import choose_port
from libs.runtime.settings import variable

DOCS: Final = Path(__file__).parents[1] / "docs" / "providers.md"
PROFILE: Final = re.compile(r"### A profile for weak local models.*?```toml\n(.*?)```", re.DOTALL)
PROVIDER: Final = "llamacpp"
CONTEXT_TOKENS: Final = 16_384
READY_S: Final = 120.0
SERVER: Final = """
import sys, time, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path, parameters.n_ctx, port, threads = sys.argv[1], *map(int, sys.argv[2:5])
parameters.n_parallel, parameters.use_jinja = 1, True
parameters.hostnames, parameters.port = ["127.0.0.1"], port
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
time.sleep(86_400)
"""


def main() -> None:
    """Run one decision and print its stages."""
    arguments = _parse()
    with tempfile.TemporaryDirectory() as place, _address(arguments) as address:
        settings = profile(address, arguments.model)
        data = Path(place) / "desk"
        command = [arguments.deskbus, "up", "--no-http"]
        with started(command, data, _variables(settings)):
            ask = (
                "cycle",
                "request",
                "--provider",
                PROVIDER,
                "--as-of",
                arguments.as_of,
            )
            wish = ("--universe", arguments.universe, "--timeout-s", str(arguments.timeout_s))
            began = time.perf_counter()
            [view] = _told(arguments.deskbus, data, *ask, *wish, "--wait", "--json")
            took_s = time.perf_counter() - began
            nodes = _told(arguments.deskbus, data, "operations", "tree", "--json")
    print(rendered(nodes), f"{view['status']} in {took_s:.0f} s: {view['outcome']}", sep="\n\n")
    sys.exit(view["status"] != "completed")


def profile(address: str, model: str) -> dict[str, Any]:
    """The profile of the docs, with this address and model in place of those there."""
    found = PROFILE.search(DOCS.read_text(encoding="utf-8"))
    if found is None:
        sys.exit(f"{DOCS} has no profile")
    settings = tomllib.loads(found[1])
    provider = settings["providers"][PROVIDER]
    provider["base_url"] = address
    provider["models"] = dict.fromkeys(provider["models"], model)
    return settings


def rendered(nodes: Sequence[Mapping[str, Any]]) -> str:
    """A line for each attempt of a stage: its end, time, who answered, calls, tokens, failure."""
    lines = [f"{'stage':<12}{'end':<11}{'s':>7}{'calls':>7}{'tokens':>8}  by"]
    for node in nodes:
        if node["type"] != "operation" or not node["finished_at"]:
            continue
        calls = [it for it in nodes if it["parent_id"] == node["op_id"] and it["type"] == "model"]
        by = ", ".join(dict.fromkeys(call["name"] for call in calls)) or "code"
        took_s = sum(it["metadata"].get("duration_ms", 0.0) for it in calls) / 1e3
        figures = f"{took_s:>7.1f}{len(calls):>7}{node['tokens']:>8}"
        failure = f"  {node['error_message']}" if node["error_message"] else ""
        lines.append(f"{node['name']:<12}{node['status']:<11}{figures}  {by}{failure}")
    return "\n".join(lines)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local_model", description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--address", help="an OpenAI-compatible server, as http://HOST:PORT/v1")
    where.add_argument("--gguf", type=Path, help="a model file, to be served by llama.cpp")
    parser.add_argument("--model", default="model", help="the model's name at the server")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--python", default=sys.executable, help="a Python that has xllamacpp")
    parser.add_argument("--deskbus", default=str(Path(sys.executable).parent / "deskbus"))
    parser.add_argument("--as-of", default="2010-05-06")
    parser.add_argument("--universe", default="AAPL,MSFT")
    parser.add_argument("--timeout-s", type=int, default=7_200)
    return parser.parse_args()


@contextmanager
def _address(arguments: argparse.Namespace) -> Iterator[str]:
    if arguments.address:
        yield arguments.address
        return
    port = choose_port(None, set())
    given = [str(arguments.gguf), str(CONTEXT_TOKENS), str(port), str(arguments.threads)]
    command = [arguments.python, "-c", SERVER, *given]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        if server.stdout is None or not server.stdout.readline():
            sys.exit("the server did not start: is xllamacpp installed there?")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait()


def _variables(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings as the environment has them."""
    single = {f"model.{name}": value for name, value in settings.get("model", {}).items()}
    named = {name: json.dumps(value) for name, value in settings.items() if name != "model"}
    return {variable(name): str(value) for name, value in {**single, **named}.items()}


def _told(deskbus: str, data: Path, *command: str) -> list[dict[str, Any]]:
    """The JSON lines of a command of the desk; one that failed says why, and ends this."""
    answer = subprocess.run(
        [deskbus, *command],
        env=os.environ | {DATA_VARIABLE: str(data)},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [json.loads(line) for line in answer.stdout.splitlines() if line.startswith("{")]
    if not lines:
        sys.exit(answer.stderr or f"deskbus {command[0]} ended with {answer.returncode}")
    return lines


if __name__ == "__main__":
    main()
