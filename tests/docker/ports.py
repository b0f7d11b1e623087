"""Who reaches whom in compose.yaml, as a table, and a scan that asks the running containers.

The scan connects from inside each container's network to every other container at each port that
any of them listens on, and to nothing else.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from contracts.subjects.subject import BACKBONE, SERVICES

SERVICES_HERE = (*BACKBONE, *SERVICES)
WITH_BOOKS = ("orchestrator", "execution", "console", "study")
NEVER_OUT = {"provisioner", "orchestrator", "reporter", "nats", "postgres"}
"""No way out of this machine; the others ask models, markets or channels."""
METRICS, HTTP, NATS, POSTGRES = 9400, 8000, 4222, 5432

Reach = dict[str, set[tuple[str, int]]]

SCAN = """
import json, select, socket, sys, time
poll, asked, reached = select.poll(), {}, set()
for name, address, port in json.loads(sys.argv[1]):
    one = socket.socket()
    one.setblocking(False)
    if one.connect_ex((address, port)) in (0, 115):  # done, or begun
        poll.register(one, select.POLLOUT)
        asked[one.fileno()] = one, name, port
until = time.monotonic() + 2
while asked and (left := until - time.monotonic()) > 0:
    for number, _ in poll.poll(left * 1000):
        one, name, port = asked.pop(number)
        poll.unregister(one)
        if not one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            reached.add((name, port))
print(json.dumps(sorted(reached)))
"""
SCAN_LIMIT_S = 60


def allowed() -> Reach:
    """Who may reach whom at which port: docs/deployment.md has the same table."""
    everybody = {(name, METRICS) for name in SERVICES_HERE} | {("console", HTTP)}
    reach: Reach = {name: {*everybody, ("nats", NATS)} for name in SERVICES_HERE}
    for name in WITH_BOOKS:
        reach[name] |= {("postgres", POSTGRES)}
    reach["nats"] = set(everybody)
    reach["postgres"] = {(name, METRICS) for name in WITH_BOOKS} | {("console", HTTP)}
    return {name: {each for each in whom if each[0] != name} for name, whom in reach.items()}


def reached(containers: Mapping[str, Mapping[str, object]]) -> Reach:
    """Who reaches whom, by what `docker inspect` says of each service's container."""
    addresses = {
        name: {net["IPAddress"] for net in each["NetworkSettings"]["Networks"].values()}  # type: ignore[index]
        for name, each in containers.items()
    }
    pids = {name: int(each["State"]["Pid"]) for name, each in containers.items()}  # type: ignore[index]
    ports = {port for pid in pids.values() for port in listening(pid)}
    scans = {}
    for name, pid in pids.items():
        asked = [
            (other, address, port)
            for other, theirs in addresses.items()
            if other != name
            for address in theirs
            for port in sorted(ports)
        ]
        program = [sys.executable, "-I", "-S", "-c", SCAN, json.dumps(asked)]
        scans[name] = subprocess.Popen(
            ["nsenter", "--target", str(pid), "--net", *program], stdout=subprocess.PIPE, text=True
        )
    reach: Reach = {}
    for name, scan in scans.items():
        printed, _ = scan.communicate(timeout=SCAN_LIMIT_S)
        reach[name] = {(other, port) for other, port in json.loads(printed)}
    return reach


def listening(pid: int) -> set[int]:
    """The TCP ports listened on in a process' network, loopback's too; without Docker's DNS."""
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            address, _, port = line.split()[1].partition(":")
            if line.split()[3] == "0A" and address != "0B00007F":
                ports.add(int(port, 16))
    return ports


def ways_out(containers: Mapping[str, Mapping[str, object]]) -> set[str]:
    """The containers with a route out that this machine passes on (masquerades)."""
    rules = subprocess.run(
        ["iptables", "-t", "nat", "-S", "POSTROUTING"], capture_output=True, text=True, check=True
    ).stdout
    passed = {
        line.split()[3] for line in rules.splitlines() if "! -o " in line and "MASQUERADE" in line
    }
    out = set()
    for name, each in containers.items():
        for network in each["NetworkSettings"]["Networks"].values():  # type: ignore[index]
            if network["Gateway"] and _subnet(network) in passed:
                out.add(name)
    return out


def _subnet(network: Mapping[str, object]) -> str:
    import ipaddress  # noqa: PLC0415

    whole = f"{network['IPAddress']}/{network['IPPrefixLen']}"
    return str(ipaddress.ip_network(whole, strict=False))
