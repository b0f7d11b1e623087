"""Hosts made of network namespaces of this machine, on a bridge: each has an address of its own and
a cable, which can be pulled or made bad. Root only.

The bridge has a namespace of its own too, so that no firewall of this machine applies to it. Every
host knows the others' hardware addresses for good: what is sent to one that is cut off vanishes,
as behind a router, and no error of a missing neighbour tells so.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from libs.runtime.ports import LOOPBACK

LIBRARIES = tuple(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
"""libfaketime, where it is installed."""
BEHIND_S = 90
LOSS = 0.05
RATE = "1mbit"
QUEUE_S_MAX = 0.4


@dataclass(frozen=True)
class Host:
    """A place for processes: `words` stand before the words of a program that is to run there."""

    name: str
    address: str
    words: Sequence[str] = ()


HERE = Host("here", LOOPBACK)


@dataclass
class Network:
    """Hosts `host-1` to `host-COUNT`, and this machine at `address`. The clock of the last host is
    BEHIND_S late for all programs that use the C library, where libfaketime is installed."""

    count: int
    name: str = field(default_factory=lambda: f"desk{os.getpid()}")

    @property
    def subnet(self) -> str:
        """The network of all of them."""
        return f"{self._prefix}.0/24"

    @property
    def address(self) -> str:
        """This machine's."""
        return f"{self._prefix}.{self.count + 1}"

    @property
    def hosts(self) -> list[Host]:
        """All but this machine."""
        return [
            Host(f"host-{n}", f"{self._prefix}.{n}", (*self._inside(n), *self._clock(n)))
            for n in range(1, self.count + 1)
        ]

    def cut(self, host: Host) -> None:
        """Pull its cable: nobody hears of it."""
        self._cable(host, "down")

    def join(self, host: Host) -> None:
        """Put its cable back."""
        self._cable(host, "up")

    def slow(self, host: Host) -> None:
        """Of what is sent to it LOSS is lost; the rest comes at RATE, or is lost where it would
        wait for more than QUEUE_S_MAX."""
        limits = f"rate {RATE} burst 16kb latency {QUEUE_S_MAX * 1000:.0f}ms"
        _run(
            "tc",
            "-n",
            self._bridge,
            "qdisc",
            "add",
            "dev",
            host.name,
            "root",
            "tbf",
            *limits.split(),
        )
        self._loss("-A", host)

    def mend(self, host: Host) -> None:
        """Undo `slow`."""
        _run("tc", "-n", self._bridge, "qdisc", "del", "dev", host.name, "root")
        self._loss("-D", host)

    def make(self) -> None:
        """Make namespaces, bridge and cables."""
        _run("ip", "netns", "add", self._bridge)
        _run("ip", "-n", self._bridge, "link", "add", "bridge", "type", "bridge")
        _run("ip", "-n", self._bridge, "link", "set", "bridge", "up")
        places = range(1, self.count + 2)
        for n in places:
            ip, device, port = self._ip(n), self._device(n), f"host-{n}"
            if n <= self.count:
                _run("ip", "netns", "add", f"{self.name}-{n}")
            peer = ("peer", "name", port, "netns", self._bridge)
            _run(*ip, "link", "add", device, "address", _hardware(n), "type", "veth", *peer)
            _run("ip", "-n", self._bridge, "link", "set", port, "master", "bridge", "up")
            _run(*ip, "address", "add", f"{self._prefix}.{n}/24", "dev", device)
            _run(*ip, "link", "set", device, "up")
            _run(*ip, "link", "set", "lo", "up")
            for other in places:
                known = (f"{self._prefix}.{other}", "lladdr", _hardware(other), "dev", device)
                if other != n:
                    _run(*ip, "neighbour", "replace", *known, "nud", "permanent")

    def remove(self) -> None:
        """Remove all that `make` made, or the part of it that there is."""
        commands = [("ip", "link", "del", self.name), ("ip", "netns", "del", self._bridge)]
        commands += [("ip", "netns", "del", f"{self.name}-{n + 1}") for n in range(self.count)]
        for command in commands:
            with suppress(subprocess.CalledProcessError):
                _run(*command)

    @property
    def _prefix(self) -> str:
        return f"10.{200 + os.getpid() % 50}.{os.getpid() // 50 % 250}"

    @property
    def _bridge(self) -> str:
        return f"{self.name}-bridge"

    def _ip(self, number: int) -> tuple[str, ...]:
        return ("ip", "-n", f"{self.name}-{number}") if number <= self.count else ("ip",)

    def _device(self, number: int) -> str:
        return "eth0" if number <= self.count else self.name

    def _inside(self, number: int) -> tuple[str, ...]:
        return (shutil.which("ip") or "ip", "netns", "exec", f"{self.name}-{number}")

    def _clock(self, number: int) -> tuple[str, ...]:
        if number < self.count or not LIBRARIES:
            return ()
        late = (f"FAKETIME=-{BEHIND_S}s", "FAKETIME_DONT_FAKE_MONOTONIC=1")
        return ("/usr/bin/env", f"LD_PRELOAD={LIBRARIES[0]}", *late)

    def _cable(self, host: Host, state: str) -> None:
        _run("ip", "-n", self._bridge, "link", "set", host.name, state)

    def _loss(self, change: str, host: Host) -> None:
        rule = f"{change} INPUT -i eth0 -m statistic --mode random --probability {LOSS} -j DROP"
        _run(*self._inside(int(host.name.rpartition("-")[2])), "iptables", *rule.split())


def _hardware(number: int) -> str:
    return f"02:de:5c:00:00:{number:02x}"


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True)


def problem(*, slow: bool = False) -> str:
    """The reason why hosts cannot be made here, or made `slow`; empty where they can."""
    network = Network(1, f"try{os.getpid()}")
    try:
        network.make()
        if slow:
            network.slow(network.hosts[0])
    except (OSError, subprocess.CalledProcessError) as error:
        why = getattr(error, "stderr", None) or error
        return f"root: no hosts of network namespaces here: {why}".strip()
    finally:
        with suppress(OSError):
            network.remove()
    return ""


@contextmanager
def network_of(count: int) -> Iterator[Network]:
    """A network that is gone after the block."""
    network = Network(count)
    try:
        network.make()
        yield network
    finally:
        network.remove()
