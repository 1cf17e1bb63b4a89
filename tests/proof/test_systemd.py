"""The units of the documents and the agent's own start under a real systemd, as they are printed.

systemd is the first process of a container that may make namespaces of its own, and has nothing else of this machine:
``/tmp``, ``/proc/sys`` and devices are the container's. Postgres and Valkey stand in as in ``containers.py``.
"""

import json
import os
import re
import secrets
import subprocess
from typing import Self

import pytest

from lab.programs import sees
from proof.conftest import Proof
from proof.containers import STAND_INS, Podman, Project, build_images, limits, namespace
from support.tree import ROOT

pytestmark = [pytest.mark.proof, pytest.mark.timeout(3600)]

WITHIN_S = 900.0  # Spark starts and warms up on a machine that has much else to do
PAGE = (ROOT / "docs" / "how-to" / "systemd-units.md").read_text()
UNITS = dict(re.findall(r"```ini\n# (headway-[\w-]+\.service)\n(.*?)```", PAGE, flags=re.DOTALL))
IMAGE = "localhost/headway-systemd"
DOCKERFILE = f"""{STAND_INS["postgres"]}
USER root
RUN apt-get update && apt-get install --yes --no-install-recommends systemd systemd-sysv dbus iproute2 \\
 && rm -f /lib/systemd/system/*.wants/systemd-update-utmp* /lib/systemd/system/sysinit.target.wants/*udev* \\
 && systemctl mask systemd-logind systemd-sysctl systemd-tmpfiles-clean.timer getty.target console-getty \\
 && install -m 755 $(find /opt/headway -name valkey-server) /usr/local/bin/valkey-server
ENTRYPOINT []
CMD ["/lib/systemd/systemd"]
"""
SETUP = r"""
set -euo pipefail
umask 077
id headway >/dev/null || useradd --system --home-dir /var/lib/headway --shell /usr/sbin/nologin headway
install -d -m 0700 /etc/headway
install -d -m 0755 /run/postgres
install -m 0444 /dev/null /run/postgres/password
echo "$PASSWORD" >/run/postgres/password
mkdir -p /var/run/postgresql && chmod 1777 /var/run/postgresql
systemd-run --unit=postgres --property=User=postgres --setenv=POSTGRES_USER=headway --setenv=POSTGRES_DB=headway \
  --setenv=POSTGRES_PASSWORD_FILE=/run/postgres/password --setenv=PATH="$PATH" --setenv=PGDATA="$PGDATA" /entrypoint
systemd-run --unit=valkey --property=User=nobody /usr/local/bin/valkey-server --bind 127.0.0.1 --dir /tmp --save ''
until pg_isready --quiet --host=127.0.0.1 --username=headway; do sleep 0.2; done
headway keys init --folder /etc/headway/keys
headway keys server 127.0.0.1 --folder /etc/headway/keys
printf %s "postgresql://headway:$PASSWORD@127.0.0.1/headway" >/etc/headway/database-url
printf %s "$ADMIN" >/etc/headway/admin-token
printf 'redis=redis://127.0.0.1:6379/0\n' >/etc/headway/brokers
printf 'HEADWAY_CONTROL=127.0.0.1:8461\n' >/etc/headway/collect.env
cat >/etc/headway/agent.env <<END
HEADWAY_JOIN_TOKEN_FILE=/etc/headway/join-token
HEADWAY_TLS_CA=/etc/headway/keys/ca.crt
RQ_REDIS_URL=redis://127.0.0.1:6379/0
PATH=$PATH
END
printf '[templates.rq]\nargv = ["rq", "worker", "mail"]\nready_pattern = "Listening on"\n' >/etc/headway/host.toml
systemctl daemon-reload
systemctl start headway-control
until systemctl is-active --quiet headway-control && (exec 3<>/dev/tcp/127.0.0.1/8460) 2>/dev/null; do sleep 0.5; done
headway token create --role ingest --name collectors >/etc/headway/collect-token
headway token create --join >/etc/headway/join-token
headway agent unit --host-file /etc/headway/host.toml --control 127.0.0.1:8461 --user root \
  --environment-file /etc/headway/agent.env >/etc/systemd/system/headway-agent.service
systemctl daemon-reload
systemctl start headway-pipeline headway-collect headway-agent
printf 'pools: {mail: {queues: [redis/mail], template: rq, workers_min: 1}}\n' >/tmp/profiles.yaml
headway apply /tmp/profiles.yaml
"""
ENVIRONMENT = """
export PATH=/opt/headway/bin:$PATH HEADWAY_URL=https://127.0.0.1:8460
export HEADWAY_TLS_CA=/etc/headway/keys/ca.crt HEADWAY_TOKEN_FILE=/etc/headway/admin-token
"""
SERVED = """
rq enqueue --quiet --url redis://127.0.0.1:6379/0 --queue mail time.sleep :0.2
headway describe queue redis/mail --json | grep --quiet --extended-regexp '"finished_jobs": *[1-9]'
"""
ROLES = ("headway-control", "headway-pipeline", "headway-collect", "headway-agent")


def test_units(proof: Proof, engine: Podman) -> None:
    """Every role is active, was never restarted, serves a job to its end, and leaves workers alone as it restarts."""
    seed = next(proof.seeds())
    with namespace(f"headway-units-{os.getpid()}") as path:
        build_images(engine, Project(engine, namespace=path, environment={}).services)
        with Machine(engine, path) as machine:
            machine.set_up()
            assert machine.sees(SERVED), machine.journal()
            workers = machine.workers()
            assert "running" in workers.values()
            machine.run("systemctl restart headway-agent")
            assert machine.sees("systemctl is-active --quiet headway-agent"), machine.journal()
            left = {pid for pid in workers if not machine.sees(f"kill -0 {pid}", within_s=1.0)}
            assert not {pid for pid in left if f"draining pool=mail pid={pid}" not in machine.agent_log()}
            shown = {name: machine.shown(name) for name in ROLES}
            exposure = {name: machine.exposure(name) for name in ROLES}
    for name, each in shown.items():
        assert each == {"ActiveState": "active", "NRestarts": "0", "LimitNOFILE": each["LimitNOFILE"]}, name
        assert int(each["LimitNOFILE"]) >= 20_000
    proof.record(seed, exposure=exposure)


class Machine:
    """A container whose first process is systemd."""

    def __init__(self, engine: Podman, namespace_path: str) -> None:
        self._engine = engine
        self._namespace = namespace_path
        self._name = f"headway-machine-{os.getpid()}"
        self._secrets = {"ADMIN": secrets.token_hex(32), "PASSWORD": secrets.token_hex(32)}

    def __enter__(self) -> Self:
        self._engine.run(
            "build", "--network=host", "--format=docker", *limits(), f"--tag={IMAGE}", "-", input=DOCKERFILE
        )
        words = ["--detach", f"--name={self._name}", "--systemd=always", f"--network=ns:{self._namespace}"]
        words += ["--hostname=machine", "--add-host=machine:127.0.0.1"]
        words += ["--cap-add=SYS_ADMIN", "--cap-add=SYS_RESOURCE", "--security-opt=seccomp=unconfined"]
        words += [f"--env={name}={value}" for name, value in self._secrets.items()]
        self._engine.run("run", *words, *limits(), IMAGE)
        assert self.sees("systemctl list-units >/dev/null"), self._engine.tried("logs", self._name).stdout
        self.run("mount --make-rshared /")  # as on a machine: otherwise no unit sees its credentials
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.tried("rm", "--force", "--time=5", self._name)

    def set_up(self) -> None:
        """Do what the pages say: files, units, tokens, and a job."""
        for name, text in UNITS.items():
            self._engine.run("exec", "--interactive", self._name, "tee", f"/etc/systemd/system/{name}", input=text)
        self.run(SETUP)

    def run(self, script: str) -> str:
        """What a script prints."""
        done = self._tried(script)
        assert done.returncode == 0, f"{done.stderr[-2000:]}\n{self.journal()}"
        return done.stdout

    def sees(self, script: str, *, within_s: float = WITHIN_S) -> bool:
        """Whether a script succeeds in time."""
        return sees(lambda: self._tried(script).returncode == 0, within_s=within_s)

    def agent_log(self) -> str:
        """What the agent has logged."""
        return self.run("journalctl --no-pager --unit=headway-agent")

    def workers(self) -> dict[int, str]:
        """Process -> the state that the agent has written down, of those that run."""
        rows = json.loads(self.run("cat /var/lib/headway-agent/workers.json"))["workers"]
        found = {row["pid"]: row["life"]["state"] for row in rows}
        return {pid: state for pid, state in found.items() if self._tried(f"kill -0 {pid}").returncode == 0}

    def shown(self, unit: str) -> dict[str, str]:
        """What systemd says of a unit."""
        lines = self.run(f"systemctl show {unit} --property=ActiveState,NRestarts,LimitNOFILE").splitlines()
        return {name: value for name, _, value in (line.partition("=") for line in lines)}

    def exposure(self, unit: str) -> str:
        """The last line of `systemd-analyze security`."""
        return self._tried(f"systemd-analyze security --no-pager {unit} | tail -1").stdout.strip()

    def journal(self) -> str:
        """The last words of every role."""
        return self._tried("systemctl --no-pager --failed; journalctl --no-pager -n 60").stdout[-6000:]

    def _tried(self, script: str) -> subprocess.CompletedProcess[str]:
        return self._engine.tried("exec", self._name, "bash", "-c", f"{ENVIRONMENT}\n{script}")
