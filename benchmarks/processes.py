"""CPU time and memory of whole process trees, read from /proc (Linux only).

CPU time is user + system, with what ended children left to their parents, so that a sum over a tree
is complete even when backends come and go. Resolution: one clock tick (10 ms) a process.
"""

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")

# Positions in /proc/<pid>/stat counted after the name's closing bracket; proc_pid_stat(5).
PARENT: Final = 1
CPU_FIRST, CPU_LAST = 11, 14  # utime, stime, cutime, cstime
RSS_PAGES: Final = 21


@dataclass(frozen=True)
class Process:
    """One process at one moment."""

    pid: int
    parent: int
    name: str
    cpu_s: float
    rss_bytes: int


def below(root: int) -> list[Process]:
    """All descendants of `root`, itself left out."""
    children: dict[int, list[Process]] = defaultdict(list)
    for process in _running():
        children[process.parent].append(process)
    found: list[Process] = []
    waiting = [root]
    while waiting:
        mine = children[waiting.pop()]
        found += mine
        waiting += [process.pid for process in mine]
    return found


def tree(root: int) -> list[Process]:
    """`root` and all its descendants; nothing if it does not run."""
    return [process for process in _running() if process.pid == root] + below(root)


def pss_bytes(pid: int) -> int | None:
    """Proportional set size: shared pages count by share. None where it may not be read."""
    try:
        text = (PROC / str(pid) / "smaps_rollup").read_text()
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return None


def peak_bytes(pid: int) -> int:
    """The most resident memory that a process has had so far."""
    for line in (PROC / str(pid) / "status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"/proc/{pid}/status names no peak")


def command_line(pid: int) -> str:
    """What a process was started as; empty where it has ended."""
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def _running() -> Iterator[Process]:
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text()
            except OSError:
                continue  # ended since the listing
            yield _parse(int(folder.name), text)


def _parse(pid: int, stat: str) -> Process:
    name, _, rest = stat.partition("(")[2].rpartition(")")
    fields = rest.split()
    ticks = sum(int(field) for field in fields[CPU_FIRST : CPU_LAST + 1])
    return Process(
        pid=pid,
        parent=int(fields[PARENT]),
        name=name,
        cpu_s=ticks / TICKS_PER_S,
        rss_bytes=int(fields[RSS_PAGES]) * PAGE_BYTES,
    )
