"""Start child processes in order, keep them running, stop them in reverse.

Used for the embedded servers and for `deskbus up --processes`. A child that dies is started again,
at once the first time and then with growing delays. One that has never become ready is given up
after some tries, or where its port is taken, which `ready()` and `given_up()` report: something is
set up wrongly. One that has been ready is started again for as long as it takes, and `problem()`
says what holds it up. One that goes on saying that it is unwell is ended and started again.
"""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import structlog

from libs.runtime.errors import StartError
from libs.runtime.guarded import Identity, guarded_argv
from libs.runtime.ports import is_free
from libs.servers.child_log import last_line, log_tail, opened_log, set_aside_when_large

log = structlog.get_logger()

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0
RESTART_DELAY_FIRST_S = 0.1
RESTART_DELAY_MAX_S = 2.0
STABLE_AFTER_S = 5.0
UNREADY_STARTS_MAX = 8
"""Of a child that has never been ready."""
UNREADY_DELAY_MAX_S = 10.0
"""Between two starts of one that has been ready and does not become so again."""
UNWELL_POLL_S = 1.0
UNWELL_S_FIRST = 4.0
"""How long a child may say that it is unwell before it is ended; doubled each time."""
UNWELL_S_MAX = 30.0  # what ails it may be there for long: a full disk


class ChildError(StartError):
    """A child could not be started or kept alive."""


class PortTaken(ChildError):
    """A child did not start, and somebody else listens on its port."""


async def ready_at_once(_pid: int) -> None:
    """The ready check of a child that needs none."""


async def well(_pid: int) -> str:
    """The health of a child without a check: well."""
    return ""


def no_advice() -> str:
    """The advice of a child that has none."""
    return ""


@dataclass(frozen=True)
class Child:
    """How to run one process.

    `argv` is a sequence, or a function asked anew at each start; its first word is an absolute
    path. `env` is the whole environment (None: ours). `ready` gets the pid and returns once the
    child can be used; `unwell` gets it too and gives what is wrong, empty where nothing is.
    `started` gets the pid right after each start; `todo` is asked for advice where it does not
    start. `run_as` drops the user; `ports`: on loopback.
    Output is appended to `log_path`; a log over LOG_BYTES_MAX is set aside once at start.
    `parent_death_signal` reaches the child on Linux when the supervising process is killed.
    """

    name: str
    argv: Sequence[str] | Callable[[], Sequence[str]]
    log_path: Path
    ready: Callable[[int], Awaitable[None]] = ready_at_once
    unwell: Callable[[int], Awaitable[str]] = well
    started: Callable[[int], None] | None = None
    todo: Callable[[], str] = no_advice
    env: Mapping[str, str] | None = None
    cwd: Path | None = None
    run_as: Identity | None = None
    ports: Sequence[int] = ()
    stop_signal: signal.Signals = signal.SIGTERM
    stop_timeout_s: float = STOP_TIMEOUT_S
    ready_timeout_s: float = READY_TIMEOUT_S
    parent_death_signal: signal.Signals = signal.SIGTERM


@dataclass
class _State:
    child: Child
    process: asyncio.subprocess.Process | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    became_ready: asyncio.Condition = field(default_factory=asyncio.Condition)
    starts: int = 0
    unready_starts: int = 0
    delay_s: float = 0.0
    unwell_s: float = UNWELL_S_FIRST
    problem: str = ""
    has_been_ready: bool = False
    task: asyncio.Task[None] | None = None


class Supervisor:
    """Runs children for as long as its `async with` block lasts.

    Children start in the order given, each after the one before is ready for the first time; later
    restarts are independent. The thread that enters the block must live as long as the children.

        async with Supervisor([postgres, nats]) as supervisor:
            await supervisor.ready()
    """

    def __init__(self, children: Sequence[Child]) -> None:
        self._states = {child.name: _State(child) for child in children}
        if len(self._states) != len(children):
            raise ValueError("Each child needs a name of its own.")
        self._given_up: asyncio.Future[None] | None = None
        self._stopping = False

    async def __aenter__(self) -> Self:
        self._given_up = asyncio.get_running_loop().create_future()
        before: _State | None = None
        for state in self._states.values():
            state.task = asyncio.create_task(self._keep(state, before), name=state.child.name)
            state.task.add_done_callback(self._report)
            before = state
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._stopping = True
        for state in reversed(self._states.values()):
            await _stop(state)
        if self._given_up is not None and not self._given_up.cancel():
            self._given_up.exception()  # Seen, so that asyncio does not report it as lost.

    async def ready(self) -> None:
        """Return when every child is ready now; raise ChildError when one was given up."""
        waits = [asyncio.ensure_future(s.ready.wait()) for s in self._states.values()]
        everything = asyncio.gather(*waits)
        try:
            watched: set[asyncio.Future[Any]] = {everything, self._future()}
            await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            if self._future().done():
                self._future().result()
        finally:
            everything.cancel()
            with suppress(asyncio.CancelledError):
                await everything

    async def given_up(self) -> None:
        """Wait until a child is given up, then raise ChildError. Ends only that way."""
        await asyncio.shield(self._future())

    def problem(self, name: str) -> str:
        """The present problem of a child, as far as it is known; empty where there is none."""
        return self._states[name].problem

    def pid(self, name: str) -> int:
        """The present pid of a child; ChildError while it is between two lives."""
        process = self._states[name].process
        if process is None or process.returncode is not None:
            raise ChildError(f"{name} is not running at the moment.")
        return process.pid

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a child; one that is between two lives gets none."""
        process = self._states[name].process
        if process is not None and process.returncode is None:
            _signal(process, number)

    async def replaced(self, name: str, pid: int) -> int:
        """Wait until a child lives, ready, under another pid than this one; return that pid.

        May be awaited from another thread's loop too.
        """
        if self._future().get_loop() is not asyncio.get_running_loop():
            there = asyncio.run_coroutine_threadsafe(
                self.replaced(name, pid), self._future().get_loop()
            )
            return await asyncio.wrap_future(there)
        state = self._states[name]
        async with state.became_ready:
            await state.became_ready.wait_for(
                lambda: state.ready.is_set() and self.pid(name) != pid
            )
        return self.pid(name)

    def _future(self) -> asyncio.Future[None]:
        if self._given_up is None:
            raise RuntimeError("Enter the supervisor with `async with` first.")
        return self._given_up

    async def _keep(self, state: _State, before: _State | None) -> None:
        if before is not None:
            await before.ready.wait()
        while not self._stopping:
            await asyncio.sleep(state.delay_s)
            try:
                await self._live_once(state)
            except OSError as error:
                if not state.has_been_ready:
                    raise ChildError(f"Can't start {state.child.name}: {error}") from error
                _start_failed(state, str(error))
            _check_that_it_may_start(state)

    def _report(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        log.error("server.given_up", server=task.get_name(), reason=str(error))
        if not self._future().done():
            self._future().set_exception(error)

    async def _live_once(self, state: _State) -> None:
        """One life of a child: start, wait until ready, wait until it ends, choose the delay."""
        child = state.child
        began_s = time.monotonic()
        process = state.process = await _spawn(child)
        state.starts += 1
        if child.started is not None:
            child.started(process.pid)
        was_ready = await _ready_before_end(child, process)
        if was_ready:
            event = "server.ready" if state.starts == 1 else "server.restarted"
            state.unready_starts = 0
            state.problem, state.has_been_ready = "", True
            state.ready.set()
            async with state.became_ready:
                state.became_ready.notify_all()
            log.info(
                event,
                server=child.name,
                pid=process.pid,
                took_s=round(time.monotonic() - began_s, 3),
            )
        ready_s = time.monotonic()
        if was_ready:
            await _until_ended_or_unwell(state, process)
        exit_code = await process.wait()
        state.ready.clear()
        if self._stopping:
            return
        log.warning("server.died", server=child.name, pid=process.pid, exit_code=exit_code)
        if was_ready:
            state.problem = state.problem or f"{child.name} has ended and is started again"
            state.delay_s = _next_delay_s(state.delay_s, lived_s=time.monotonic() - ready_s)
        else:
            _start_failed(state, last_line(child.log_path))


def _next_delay_s(delay_s: float, *, lived_s: float) -> float:
    if lived_s >= STABLE_AFTER_S:
        return 0.0
    return min(max(RESTART_DELAY_FIRST_S, 2 * delay_s), RESTART_DELAY_MAX_S)


def _start_failed(state: _State, why: str) -> None:
    """Note and tell that a start came to nothing, and wait longer before the next one."""
    most = UNREADY_DELAY_MAX_S if state.has_been_ready else RESTART_DELAY_MAX_S
    state.unready_starts += 1
    state.delay_s = min(max(RESTART_DELAY_FIRST_S, 2 * state.delay_s), most)
    name, tries = state.child.name, state.unready_starts
    what = f"{name} does not start ({tries} tries, the last: {why}); it is tried again"
    state.problem = ". ".join(filter(None, (what, state.child.todo())))
    if state.has_been_ready:
        log.error(
            "server.not_starting",
            server=name,
            tries=tries,
            why=why,
            again_in_s=state.delay_s,
            log=str(state.child.log_path),
        )


async def _until_ended_or_unwell(state: _State, process: asyncio.subprocess.Process) -> None:
    """Wait until a ready child has ended; end it where it goes on saying that it is unwell."""
    child, since_s, began_s = state.child, 0.0, time.monotonic()
    ended = asyncio.ensure_future(process.wait())
    try:
        while not (await asyncio.wait({ended}, timeout=UNWELL_POLL_S))[0]:
            problem = await child.unwell(process.pid)
            now_s = time.monotonic()
            if not problem:
                state.problem, since_s = "", 0.0
                if now_s - began_s > 2 * UNWELL_S_MAX:
                    state.unwell_s = UNWELL_S_FIRST
                continue
            since_s = since_s or now_s
            state.problem = f"{child.name} is unwell: {problem}"
            if now_s - since_s < state.unwell_s:
                continue
            log.error("server.unwell", server=child.name, why=problem, unwell_s=state.unwell_s)
            state.unwell_s = min(2 * state.unwell_s, UNWELL_S_MAX)
            await _end(child, process)
            return
    finally:
        ended.cancel()


async def _spawn(child: Child) -> asyncio.subprocess.Process:
    argv = list(child.argv() if callable(child.argv) else child.argv)
    set_aside_when_large(child.log_path)
    with opened_log(child.log_path) as output:
        return await asyncio.create_subprocess_exec(
            *guarded_argv(argv, child.parent_death_signal, child.run_as),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=child.env,
            cwd=child.cwd,
            # A session of its own: Ctrl-C in the terminal must reach the supervisor alone,
            # which stops the children in order.
            start_new_session=True,
        )


async def _ready_before_end(child: Child, process: asyncio.subprocess.Process) -> bool:
    """True once the child is ready; False when it ended first or took too long (and was killed)."""
    ready = asyncio.ensure_future(child.ready(process.pid))
    ended = asyncio.ensure_future(process.wait())
    try:
        done, _ = await asyncio.wait(
            {ready, ended}, timeout=child.ready_timeout_s, return_when=asyncio.FIRST_COMPLETED
        )
        if ended in done:
            return False
        if ready in done:
            ready.result()
            return True
        log.warning("server.not_ready", server=child.name, timeout_s=child.ready_timeout_s)
        _signal(process, signal.SIGKILL)
        return False
    finally:
        for task in (ready, ended):
            task.cancel()
        await asyncio.gather(ready, ended, return_exceptions=True)


async def _stop(state: _State) -> None:
    """End a child and its keeper: the stop signal, and SIGKILL after the child's time."""
    task, process, child = state.task, state.process, state.child
    if process is not None and process.returncode is None:
        await _end(child, process)
        log.info("server.stopped", server=child.name)
    if task is not None:
        task.cancel()
        await asyncio.wait({task})  # Its own error was reported already.


async def _end(child: Child, process: asyncio.subprocess.Process) -> None:
    _signal(process, signal.SIGCONT)  # A frozen child can't take a signal.
    _signal(process, child.stop_signal)  # The last: a further one may take its exit from asyncio.
    try:
        await asyncio.wait_for(process.wait(), child.stop_timeout_s)
    except TimeoutError:
        log.warning("server.killed", server=child.name, timeout_s=child.stop_timeout_s)
        _signal(process, signal.SIGKILL)
        await process.wait()


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(number)


def _check_that_it_may_start(state: _State) -> None:
    """Raise ChildError where a further start of one that has never been ready has no use."""
    child = state.child
    if state.has_been_ready:
        return
    if taken := [port for port in child.ports if not is_free(port)]:
        raise PortTaken(f"{child.name} cannot listen on port {taken[0]}: somebody else does.")
    if state.unready_starts >= UNREADY_STARTS_MAX:
        log_end = f"The end of its log, {child.log_path}:\n{log_tail(child.log_path)}"
        tries = f"ended or hung {UNREADY_STARTS_MAX} times before it was ready"
        raise ChildError(
            "\n".join(filter(None, (f"{child.name} {tries}. {log_end}", child.todo())))
        )
