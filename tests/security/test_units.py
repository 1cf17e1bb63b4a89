"""The units of systemd that the documents give, and that of the agent: what they take from a role stays taken."""

import configparser
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml

from architecture.roles import read_by
from headway.agent.config.systemd_unit import ROOT_CAPABILITIES, Unit, unit_text
from support.agent_host import one_host
from support.fake_control import row
from support.tree import ROOT
from support.waiting import eventually

PAGE = (ROOT / "docs/how-to/systemd-units.md").read_text()
UNITS = dict(re.findall(r"```ini\n# ([\w-]+)\.service\n(.*?)```", PAGE, flags=re.DOTALL))
ROLES = {"headway-control": "control", "headway-pipeline": "pipeline", "headway-collect": "collect"}

# For every role; what the agent can stand of it is below.
CLOSED = {
    "NoNewPrivileges": "yes",
    "CapabilityBoundingSet": "",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "ProtectClock": "yes",
    "ProtectControlGroups": "yes",
    "ProtectHostname": "yes",
    "ProtectKernelLogs": "yes",
    "ProtectKernelModules": "yes",
    "ProtectKernelTunables": "yes",
    "ProtectProc": "invisible",
    "LockPersonality": "yes",
    "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX AF_NETLINK",
    "RestrictNamespaces": "yes",
    "RestrictRealtime": "yes",
    "RestrictSUIDSGID": "yes",
    "SystemCallArchitectures": "native",
    "UMask": "0077",
    "StateDirectoryMode": "0700",
    "LimitNOFILE": "65536",
    "Restart": "always",
}
AGENT = {
    "NoNewPrivileges": "yes",
    "ProtectSystem": "full",
    "ProtectControlGroups": "yes",
    "ProtectKernelLogs": "yes",
    "ProtectKernelModules": "yes",
    "ProtectKernelTunables": "yes",
    "LockPersonality": "yes",
    "RestrictRealtime": "yes",
    "RestrictSUIDSGID": "yes",
    "SystemCallArchitectures": "native",
    "LimitNOFILE": "65536",
    "KillMode": "process",
}
# What `systemd-analyze security` calls the exposure, times ten: 96 without any of it.
EXPOSURE_MAX = {"headway-control": 20, "headway-pipeline": 32, "headway-collect": 20, "agent": 55, "agent of root": 68}


def service_of(text: str) -> dict[str, list[str]]:
    """Key -> its values, of the unit's ``[Service]``."""
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    parser.read_string(text)
    assert {"Unit", "Service", "Install"} == set(parser.sections())
    found: dict[str, list[str]] = {}
    for line in text.partition("[Service]")[2].partition("[Install]")[0].splitlines():
        if line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def agents(user: str) -> str:
    return unit_text(
        Unit(
            program=Path("/opt/headway/bin/headway"),
            host_file=Path("/etc/headway/host.toml"),
            control="10.0.0.5:8461",
            user=user,
            environment_file=Path("/etc/headway/agent.env"),
        )
    )


ALL = {**UNITS, "agent": agents("deploy"), "agent of root": agents("root")}


def test_every_role_has_its_unit() -> None:
    assert UNITS.keys() == ROLES.keys()


@pytest.mark.parametrize("name", list(ROLES))
def test_a_role_is_closed_as_far_as_it_can_stand(name: str) -> None:
    service = service_of(UNITS[name])
    assert {key: service.get(key) for key in CLOSED} == {key: [value] for key, value in CLOSED.items()}
    assert service["User"] != ["root"]
    assert ("SystemCallFilter" in service) == (name != "headway-pipeline")
    for left_out in ("MemoryDenyWriteExecute", "ProcSubset", "IPAddressAllow"):
        assert left_out not in service
        assert f"| `{left_out}" in PAGE, "and the page says why"


@pytest.mark.parametrize("name", list(ROLES))
def test_the_memory_that_the_threat_model_relies_on_is_bounded_alike_in_unit_page_and_container(name: str) -> None:
    role = ROLES[name]
    (bound,) = service_of(UNITS[name])["MemoryMax"]
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    assert compose[role]["mem_limit"] == bound.lower()
    assert f"| {role} | {bound.removesuffix('G')} GB |" in PAGE


def test_an_agents_unit_bounds_no_memory_because_its_workers_have_it() -> None:
    for user in ("deploy", "root"):
        assert not {key for key in service_of(agents(user)) if key.startswith("Memory")}
    assert "| `MemoryMax` | " in PAGE, "and the page says why"


@pytest.mark.parametrize("name", list(ROLES))
def test_a_units_settings_are_the_roles_and_its_secrets_come_as_files(name: str) -> None:
    service, role = service_of(UNITS[name]), ROLES[name]
    assert service["ExecStart"] == [f"/opt/headway/bin/headway {role}"]
    given = dict(word.split("=", 1) for line in service["Environment"] for word in line.split())
    assert sorted(set(given) - {key for key, roles in read_by().items() if role in roles}) == []
    secrets = {"HEADWAY_TOKEN", "HEADWAY_JOIN_TOKEN", "HEADWAY_DATABASE_URL", "HEADWAY_BROKERS"}
    assert not secrets & given.keys()
    loaded = {value.split(":")[0] for value in service["LoadCredential"]}
    assert {value.removeprefix("%d/") for value in given.values() if value.startswith("%d/")} == loaded
    folder = f"/var/lib/{service['StateDirectory'][0]}/"
    kept = [
        value for key, value in given.items() if key in {"HEADWAY_EVENT_LOG", "HEADWAY_CHECKPOINT", "HEADWAY_STATE_DIR"}
    ]
    assert all(f"{value}/".startswith(folder) for value in kept), "the only folder that the unit may write"


@pytest.mark.parametrize(("user", "capabilities"), [("deploy", ""), ("root", " ".join(ROOT_CAPABILITIES))])
def test_the_agents_unit_takes_what_no_application_misses(user: str, capabilities: str) -> None:
    service = service_of(agents(user))
    assert {key: service.get(key) for key in AGENT} == {key: [value] for key, value in AGENT.items()}
    assert service["CapabilityBoundingSet"] == [capabilities]
    for left_out in (
        "PrivateTmp",
        "ProtectHome",
        "PrivateDevices",
        "ProtectClock",
        "ProtectProc",
        "RestrictNamespaces",
    ):
        assert left_out not in service
        assert f"`{left_out}`" in PAGE, "and the page says why"
    assert all(f"`{each}`" in PAGE for each in ROOT_CAPABILITIES)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd's own program")
@pytest.mark.parametrize("name", list(ALL))
def test_systemd_reads_every_line_and_calls_the_exposure_low(name: str, tmp_path: Path) -> None:
    unit = tmp_path / f"{name.replace(' ', '-')}.service"
    # What it starts has to be there for systemd to read on.
    unit.write_text(ALL[name].replace("/opt/headway/bin/headway", sys.executable))
    said = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False, timeout=60
    )
    about = [line for line in said.stderr.splitlines() if unit.name in line]
    assert [line for line in about if "Unknown" in line or "Failed to parse" in line or "ignoring" in line] == []
    threshold = f"--threshold={EXPOSURE_MAX[name]}"
    checked = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", threshold, str(unit)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert checked.returncode == 0, (checked.stdout + checked.stderr)[-2000:]


AS_USER = """
[templates.own]
argv = ["sh", "-c", "id -u > {place}/uid; exec sleep 600"]
user = "nobody"
niceness = 5
ready_after_s = 0.0
"""


@pytest.mark.e2e
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="an agent of root, bounded by setpriv")
def test_an_agent_of_root_needs_no_more_than_its_unit_leaves_it(tmp_path: Path) -> None:
    """It becomes another user, renices, knows its worker again after a restart, and ends it."""
    place = tmp_path / "open"
    place.mkdir()
    pytests = Path(tempfile.gettempdir(), "pytest")
    for folder in (place, *[each for each in place.parents if str(each).startswith(str(pytests))]):
        folder.chmod(0o777)
    bound = ",".join(f"+{each.removeprefix('CAP_').lower()}" for each in ROOT_CAPABILITIES)
    script = (
        "import os, sys; os.execvp('setpriv', ['setpriv', '--no-new-privs', '--bounding-set', '-all,' + sys.argv[1], "
        "'--inh-caps', '-all', sys.executable, '-m', 'headway', *sys.argv[2:]])"
    )
    with one_host(tmp_path, AS_USER.format(place=place)) as host:
        host.control.assign(row(1, template="own"))
        agent = host.agent(program=("-c", script, bound))
        host.control.running(1)
        eventually((place / "uid").exists)
        (pid,) = host.control.running(1)
        assert os.getpriority(os.PRIO_PROCESS, pid) == 5
        assert Path(f"/proc/{pid}").stat().st_uid == int((place / "uid").read_text()) != 0
        agent.kill()
        agent.wait()
        host.agent(program=("-c", script, bound))
        eventually(lambda: "adopted" in host.logged().split("enrolled host=")[-1] or host.control.running(1) == {pid})
        assert host.control.running(1) == {pid}
        host.control.assign(row(0, template="own"))
        eventually(lambda: not Path(f"/proc/{pid}").exists(), within_s=60.0)
        for each in host._agents:
            each.send_signal(signal.SIGTERM)
            each.wait()
