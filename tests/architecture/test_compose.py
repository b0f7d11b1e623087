"""compose.yaml: valid, complete, and each container gets its own secrets and no others."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from contracts.subjects.subject import BACKBONE, SERVICES, identity_of
from libs.bus.permissions import permissions
from libs.keys.credentials import nkey_seed_path
from libs.keys.nats_config import NatsPlace
from libs.postgres.pool import ROLES
from libs.runtime.schedule_settings import Schedule
from services.provisioner.secrets import provision_secrets
from tests.compose_files import COMPOSE, TLS, composed
from tests.fakes.proposers import added

OWN_SERVICES = (*BACKBONE, *SERVICES)
WITH_DATABASE = ("orchestrator", "execution", "console", "study")
WITH_REGISTER = ("orchestrator", "console")
"""They refuse whoever is no proposer, or is revoked."""
SERVERS = {"nats", "postgres"}
ONCE = {"migrations", "roles"}
WATCH = {"prometheus", "grafana"}
NETWORKS = {
    "provisioner": {"bus"},
    "reporter": {"bus"},
    "migrations": {"books"},
    "roles": {"books"},
    "postgres": {"books"},
    "orchestrator": {"bus", "books"},
    "execution": {"bus", "books", "out"},
    "console": {"bus", "books", "out"},
    "study": {"bus", "books", "out"},
    "nats": {"bus", "published"},
    "prometheus": {"bus", "watch"},
    "grafana": {"watch", "published"},
}
"""Of every other service: `bus` and `out`. What they reach is scanned by tests/docker/ports.py."""


@pytest.fixture(scope="module")
def compose(root: Path) -> dict[str, Any]:
    return composed(COMPOSE)


@pytest.fixture(scope="module")
def with_tls(root: Path) -> dict[str, Any]:
    return composed(COMPOSE, TLS)


@pytest.fixture(scope="module")
def validator(root: Path) -> Any:
    schema = json.loads((root / "tests/data/json_schemas/compose-spec.json").read_text())
    return jsonschema.Draft202012Validator(schema)


def test_it_is_a_valid_compose_file(compose: Any, validator: Any) -> None:
    assert [f"{list(e.absolute_path)}: {e.message}" for e in validator.iter_errors(compose)] == []


def test_the_image_has_the_programs_version_wherever_it_is_named(root: Path) -> None:
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    named = {
        "compose.yaml": f"deskbus:{version}",
        "deploy/env.example": f"DESKBUS_IMAGE=deskbus:{version}\n",
        "deploy/kubernetes/base/kustomization.yaml": f"newTag: {version}}}",
        "docs/kubernetes.md": f"deskbus:{version} ",
    }
    assert [name for name, tag in named.items() if tag not in (root / name).read_text()] == []


def test_the_validation_sees_damage(compose: Any, validator: Any) -> None:
    assert not validator.is_valid({**compose, "services": {"nats": {"imagge": "nats:2"}}})


def test_every_service_of_the_desk_appears_and_nothing_else_does(compose: Any) -> None:
    assert set(compose["services"]) == {*OWN_SERVICES, *SERVERS, *ONCE, *WATCH}
    asked_for = {name for name, each in compose["services"].items() if "profiles" in each}
    assert asked_for == WATCH, "the desk itself needs none of them"


def test_every_service_takes_one_line(root: Path) -> None:
    text = (root / "compose.yaml").read_text()
    for name in OWN_SERVICES:
        assert re.search(rf"^  {name}: \{{<<: \*service, .*\}}$", text, re.MULTILINE), name


@pytest.mark.parametrize("name", OWN_SERVICES)
def test_a_service_runs_its_own_module_under_its_own_key_alone(name: str, compose: Any) -> None:
    service = compose["services"][name]
    database = [f"postgres_deskbus_{name}.password"] if name in WITH_DATABASE else []
    callers = ["http.token"] if name == "console" else []
    register = ["proposers.json"] if name in WITH_REGISTER else []

    assert service["command"] == ["python", "-m", f"services.{name}"]
    assert service["secrets"] == [f"{name}.nk", *database, *callers, *register]


def test_every_service_that_reads_the_exit_rules_has_their_folder(root: Path, compose: Any) -> None:
    services = root / "services"
    reading = {
        path.relative_to(services).parts[0]
        for name in OWN_SERVICES
        for path in (services / name).rglob("*.py")
        if "settings.exit_rules_file" in path.read_text()
    }
    inside = Path(compose["x-service"]["environment"]["DESKBUS_EXIT_RULES_FILE"]).parent
    mounting = {
        name
        for name in OWN_SERVICES
        for volume in compose["services"][name].get("volumes", ())
        if volume.split(":")[1] == str(inside)
    }
    assert reading
    assert mounting == reading


@pytest.mark.parametrize("name", [*OWN_SERVICES, "migrations"])
def test_a_container_has_no_more_than_it_needs(name: str, compose: Any) -> None:
    service = compose["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not str(service["user"]).startswith(("0", "root"))
    assert "privileged" not in service


@pytest.mark.parametrize("name", [*OWN_SERVICES, "migrations"])
def test_every_container_reads_the_same_settings(name: str, root: Path, compose: Any) -> None:
    """`schedule`, `limits`, `gates` and the like must be the same in all of them."""
    (given,) = compose["services"][name]["configs"]
    assert compose["configs"][given["source"]]["file"] == "deskbus.toml", "git ignores it"
    workdir = re.findall(r"^WORKDIR (.+)$", (root / "deploy/Dockerfile").read_text(), re.MULTILINE)

    assert Path(given["target"]) == Path(workdir[-1]) / "deskbus.toml"
    assert tomllib.loads((root / "deploy/deskbus.toml").read_text()) == {}, "it is copied"
    environment = compose["services"][name]["environment"]
    assert compose["x-service"]["environment"].items() <= environment.items()


def test_the_settings_file_shows_a_schedule_that_can_be_read(root: Path) -> None:
    text = (root / "deploy/deskbus.toml").read_text()
    shown = re.sub(r"^# ?", "", text[text.index("# [schedule") :], flags=re.MULTILINE)

    jobs = Schedule.model_validate(tomllib.loads(shown)["schedule"]).jobs
    assert {job.kind for job in jobs.values()} == {"exit", "decision", "report"}


def test_only_nats_http_and_grafana_are_published_and_only_on_loopback(compose: Any) -> None:
    ports = {
        name: service["ports"]
        for name, service in compose["services"].items()
        if service.get("ports")
    }
    assert set(ports) == {"nats", "console", "grafana"}
    by_default = re.compile(r"(\$\{DESKBUS_LISTEN:-)?127\.0\.0\.1[:}]")
    assert all(by_default.match(each) for port in ports.values() for each in port)
    assert ports["grafana"][0].startswith("127.0.0.1:"), "it speaks no TLS"


def test_everything_that_keeps_running_is_watched(compose: Any) -> None:
    for name in {*OWN_SERVICES, *SERVERS, *WATCH}:
        assert compose["services"][name]["healthcheck"]["test"], name
        assert compose["services"][name]["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", OWN_SERVICES)
def test_a_service_is_asked_itself_whether_it_is_ready(name: str, root: Path, compose: Any) -> None:
    """What the command answers is seen in tests/integration/deploy/test_own_servers.py."""
    service = compose["services"][name]
    dockerfile = (root / "deploy/Dockerfile").read_text()

    *program, script = service["healthcheck"]["test"]
    assert program == ["CMD", "python", "-I", "-S"]
    assert f"COPY deploy/healthcheck.py {script}\n" in dockerfile
    assert service["environment"]["DESKBUS_METRICS_PORT"]


def test_whoever_is_waited_for_can_be_waited_for(compose: Any) -> None:
    services = compose["services"]
    for name in OWN_SERVICES:
        assert services[name]["depends_on"] == {
            "nats": {"condition": "service_healthy"},
            "migrations": {"condition": "service_completed_successfully"},
        }
    for service in services.values():
        for other, asked in service.get("depends_on", {}).items():
            if asked["condition"] == "service_healthy":
                assert services[other]["healthcheck"]["test"]
            else:
                assert services[other]["restart"] == "on-failure:5", "it ends, and not never"


def test_one_service_builds_the_image_and_all_use_it(compose: Any) -> None:
    """Builds of the same tag side by side fail: `image ... already exists`."""
    builders = [name for name, each in compose["services"].items() if "build" in each]
    assert builders == ["migrations"]


@pytest.mark.parametrize("name", sorted(SERVERS))
def test_a_server_that_hangs_can_be_ended_by_its_own_check(
    name: str, root: Path, compose: Any
) -> None:
    """A container's first process takes no SIGKILL from within; `init` is that one instead."""
    server = compose["services"][name]
    assert server["init"] is True
    *_, script = server["healthcheck"]["test"]
    assert f"./deploy/{name}/healthcheck.sh:{script}:ro" in server["volumes"]
    assert (root / f"deploy/{name}/healthcheck.sh").exists()


def test_postgres_is_healthy_once_it_is_the_real_one(root: Path) -> None:
    """While the image makes the cluster, a Postgres without TCP answers on its socket."""
    assert "--host=127.0.0.1" in (root / "deploy/postgres/healthcheck.sh").read_text()


def test_networks_are_by_need_and_only_out_leads_out(compose: Any) -> None:
    networks = compose["networks"]
    for name, service in compose["services"].items():
        assert set(service["networks"]) == NETWORKS.get(name, {"bus", "out"}), name
    inside = {name for name, each in networks.items() if each.get("internal")}
    assert inside == {"bus", "books", "watch"}
    masquerade = "com.docker.network.bridge.enable_ip_masquerade"
    assert networks["published"]["driver_opts"][masquerade] == "false"
    between = "com.docker.network.bridge.enable_icc"
    assert {networks[name]["driver_opts"][between] for name in set(networks) - inside} == {"false"}


def test_no_default_asks_for_more_than_one_core(root: Path, compose: Any) -> None:
    """0 is no limit. More than the machine has is refused."""
    assert compose["x-service"]["cpus"] == "${DESKBUS_CPUS:-0}"
    assert "\nDESKBUS_CPUS=0\n" in (root / "deploy/env.example").read_text()


def test_all_containers_together_ask_the_sec_less_often_than_it_allows(compose: Any) -> None:
    rates = [
        float(compose["services"][name]["environment"]["DESKBUS_EDGAR_REQUESTS_PER_S"])
        for name in OWN_SERVICES
    ]
    assert 0 < sum(rates) < 10
    of_alpaca = [
        float(compose["services"][name]["environment"]["DESKBUS_ALPACA_DATA_REQUESTS_PER_S"])
        for name in OWN_SERVICES
    ]
    assert 0 < sum(of_alpaca) * 60 < 200


def test_no_secret_is_in_an_environment(compose: Any) -> None:
    for name, service in compose["services"].items():
        for variable, value in service.get("environment", {}).items():
            assert not re.search(r"PASSWORD$|SEED|TOKEN$|_KEY$", variable), (name, variable)
            assert "@" not in str(value), (name, variable)


def test_the_secrets_that_are_named_are_the_ones_that_are_made(
    compose: Any, tmp_path: Path
) -> None:
    provision_secrets(tmp_path / "secrets")
    made = {path.name for path in (tmp_path / "secrets").iterdir()}

    named = {Path(secret["file"]).name for secret in compose["secrets"].values()}
    used = {each for service in compose["services"].values() for each in service.get("secrets", [])}

    assert named == set(compose["secrets"]) == used
    assert named <= made
    assert "nats.conf" in made
    outside = {f"{name}.nk" for name in ("cli", "user", "mcp", "mcp_requester")}
    assert made - named == outside | {"nats.conf"}


def test_a_proposer_is_added_as_its_page_says(root: Path, compose: Any, tmp_path: Path) -> None:
    provision_secrets(tmp_path)
    added(tmp_path, {"research-bot": {}})
    provision_secrets(tmp_path)
    page = (root / "docs/proposals.md").read_text()
    (block,) = re.findall(r"```yaml\n# compose.override.yaml\n(.+?)```", page, re.DOTALL)

    override = yaml.safe_load(block)

    ((name, secret),) = override["secrets"].items()
    assert (tmp_path / Path(secret["file"]).name).exists()
    assert Path(secret["file"]).parent == Path(compose["secrets"]["console.nk"]["file"]).parent
    assert override["services"] == {"console": {"secrets": [name]}}
    assert name == nkey_seed_path(Path(), identity_of("research-bot")).name


def test_secrets_stay_and_permissions_are_made_anew(tmp_path: Path) -> None:
    provision_secrets(tmp_path)
    kept = {path.name: path.read_text() for path in tmp_path.iterdir()}
    (tmp_path / "nats.conf").write_text("of an older version")

    provision_secrets(tmp_path)

    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == kept
    accounts = json.loads(kept["nats.conf"])["accounts"].values()
    users = [user for account in accounts for user in account.get("users", ())]
    assert len({user["nkey"] for user in users}) == len(permissions())
    assert all(f'CREATE ROLE "{role}"' in kept["roles.sql"] for role in ROLES)
    for name, text in kept.items():
        if name.endswith((".nk", ".password", ".token")):
            assert text.strip() not in kept["nats.conf"]
            assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "roles.sql").stat().st_mode & 0o777 == 0o600


def test_the_image_is_one_for_all_and_runs_as_nobody(root: Path, compose: Any) -> None:
    images = {compose["services"][name]["image"] for name in OWN_SERVICES}
    dockerfile = (root / "deploy/Dockerfile").read_text()

    assert len(images) == 1
    assert re.search(r"^USER [1-9]\d+:[1-9]\d+$", dockerfile, re.MULTILINE)
    assert "--require-hashes" in dockerfile
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.MULTILINE)
    for name in " ".join(copied).split():
        assert (root / name).exists(), f"the Dockerfile copies {name}, which is not there"
        assert f"!{name}" in (root / ".dockerignore").read_text().splitlines()


def test_every_variable_has_a_default_or_an_example(root: Path) -> None:
    used = re.findall(r"\$\{(\w+)(:-)?", (root / "compose.yaml").read_text())
    example = (root / "deploy/env.example").read_text()
    for name, default in used:
        assert default, f"{name} has no default"
        assert f"{name}=" in example, f"{name} is not in deploy/env.example"


def test_no_container_may_take_the_whole_machine(compose: Any) -> None:
    for name, service in compose["services"].items():
        assert service["mem_limit"], name
        assert service["logging"]["options"]["max-size"], f"{name}'s log grows without end"
        assert service["security_opt"] == ["no-new-privileges:true"], name


def test_what_is_mounted_is_there_or_is_made(root: Path, compose: Any, tmp_path: Path) -> None:
    provision_secrets(tmp_path / "secrets")
    made = {f"./deploy/secrets/{path.name}" for path in (tmp_path / "secrets").iterdir()}
    for name, service in compose["services"].items():
        for mount in service.get("volumes", []):
            source = mount.partition(":")[0]
            if not source.startswith("./"):
                assert source in compose["volumes"], name
            elif source.startswith("./deploy/"):
                assert source in made or (root / source).exists(), f"{name} mounts {source}"


def test_those_who_watch_have_the_names_that_their_files_say(root: Path, compose: Any) -> None:
    """Of the containers, of the ports, and of the folders in them."""
    sources = (root / "deploy/grafana/provisioning/datasources/deskbus.yml").read_text()
    boards = (root / "deploy/grafana/provisioning/dashboards/deskbus.yml").read_text()

    assert re.findall(r"http://(\w+):(\d+)", sources) == [("prometheus", "9090")]
    mounted = [mount.split(":")[1] for mount in compose["services"]["grafana"]["volumes"]]
    assert "/var/lib/grafana/dashboards" in mounted
    assert "path: /var/lib/grafana/dashboards" in boards
    command = compose["services"]["prometheus"]["command"]
    assert "--config.file=/etc/prometheus/prometheus.yml" in command
    assert (root / "deploy/prometheus/prometheus.yml").exists()


# --- deploy/compose.tls.yaml ---------------------------------------------------------------------


def test_the_override_is_a_valid_compose_file(root: Path, validator: Any, with_tls: Any) -> None:
    for each in (yaml.safe_load((root / TLS).read_text()), with_tls):
        assert [error.message for error in validator.iter_errors(each)] == []


def test_with_tls_everybody_says_so_and_believes_our_authority(with_tls: Any) -> None:
    clients = [*OWN_SERVICES, "migrations", "roles"]
    for name in clients:
        service = with_tls["services"][name]
        assert "ca.pem" in service["secrets"], name
        settings = service["environment"]
        if name == "roles":
            assert settings == {"PGSSLMODE": "verify-full", "PGSSLROOTCERT": "/run/secrets/ca.pem"}
        else:
            assert settings["DESKBUS_NATS_URL"] == "tls://nats:4222"
            assert settings["DESKBUS_POSTGRES_DSN"].endswith("?sslmode=verify-full")
            assert settings["DESKBUS_SECRETS_DIR"] == "/run/secrets"
    console = with_tls["services"]["console"]
    assert {"http.pem", "http.key"} <= set(console["secrets"])
    assert console["environment"]["DESKBUS_HTTP_ENABLED"] == "true", (
        "nothing of compose.yaml is lost"
    )


def test_with_tls_no_key_of_a_certificate_is_anybody_elses(with_tls: Any, tmp_path: Path) -> None:
    provision_secrets(tmp_path / "secrets", tls=True)
    made = {path.name for path in (tmp_path / "secrets").iterdir()}
    services = with_tls["services"]
    readers: dict[str, set[str]] = {}
    for name, service in services.items():
        mounted = (each.partition(":")[0] for each in service.get("volumes", []))
        files = {Path(each).name for each in mounted if each.startswith("./deploy/secrets/")}
        for file in {*service.get("secrets", []), *files}:
            readers.setdefault(file, set()).add(name)
    assert set(readers) <= made
    assert {name: who for name, who in readers.items() if name.endswith(".key")} == {
        "http.key": {"console"},
        "nats.key": {"nats"},
        "postgres.key": {"postgres"},
    }
    assert set(with_tls["secrets"]) == {Path(s["file"]).name for s in with_tls["secrets"].values()}


def test_the_servers_find_their_certificates_and_can_read_their_keys(
    with_tls: Any, root: Path
) -> None:
    nats, postgres = with_tls["services"]["nats"], with_tls["services"]["postgres"]
    inside = {mount.split(":")[1] for mount in nats["volumes"]}
    assert {f"{NatsPlace().tls_dir}/nats.{each}" for each in ("pem", "key", "conf")} <= inside
    assert nats["cap_add"] == ["DAC_READ_SEARCH"], "the key is 0600, and not root's"

    (command,) = postgres["command"]
    options = dict(re.findall(r"-c (\w+)=(\S+)", command))
    cluster = (root / "deploy/kubernetes/base/postgresql.conf").read_text()
    assert {name for name in options if name != "config_file"} == {
        *re.findall(r"^(ssl\w*|hba_file) =", cluster, re.MULTILINE)
    }
    assert options["hba_file"] in {mount.split(":")[1] for mount in postgres["volumes"]}
    assert options["ssl_cert_file"] == "/run/secrets/postgres.pem"
    copied = re.findall(r"^install --owner=postgres --mode=0600 (\S+) (\S+)", command)
    assert copied == [("/run/secrets/postgres.key", options["ssl_key_file"])]
    started = with_tls["services"]["postgres"]["entrypoint"]
    assert started == ["sh", "-c"]
    assert "exec docker-entrypoint.sh postgres -c config_file=/etc/postgresql" in command
