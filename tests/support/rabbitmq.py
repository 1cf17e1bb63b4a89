"""RabbitMQ of Debian's packages on loopback: its own epmd, ports, cookie and folders, and nothing left behind."""

import base64
import json
import os
import shlex
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import amqp
import psutil

from support.debian import unpacked
from support.ports import free_port
from support.waiting import eventually

BOOKWORM, TRIXIE = "bookworm", "trixie"  # RabbitMQ 3.10 and 4.0
ERLANG = (
    *("asn1", "base", "crypto", "eldap", "inets", "mnesia", "os-mon", "parsetools", "public-key", "runtime-tools"),
    *("ssl", "syntax-tools", "tools", "xmerl"),
)
PACKAGES = ("rabbitmq-server", *(f"erlang-{each}" for each in ERLANG))
# What a newer release's programs are linked with, where this machine's own is older.
LIBRARIES = ("libc6", "libgcc-s1", "libssl3t64", "libstdc++6", "libtinfo6", "zlib1g", "libzstd1")
START_WITHIN_S = 200.0  # 4 s of a processor, on a machine that has much else to do
MEMORY = "+MBas ageffcbf +MHas ageffcbf +MBlmbcs 512 +MHlmbcs 512 +MMmcs 30"  # as its own script has it
IDLE = "+sbwt none +sbwtdcpu none +sbwtdio none"  # schedulers that wait sleep: others share this machine


class RabbitServer:
    """One broker, which may be killed and begin again on the same ports and folders."""

    def __init__(
        self,
        folder: Path,
        release: str = BOOKWORM,
        *,
        config: str = "",
        plugins: str = "management",
        joins: "RabbitServer | None" = None,
    ) -> None:
        """``config`` is added to rabbitmq.conf; ``plugins`` are named without their ``rabbitmq_``.

        ``joins`` is the first node of the cluster that it becomes one of; that one is started before and closed after.
        """
        if release == TRIXIE:
            self._root = unpacked(release, *PACKAGES, *LIBRARIES, finish=_use_own_libraries)
        else:
            self._root = unpacked(release, *PACKAGES)
        self._folder = folder
        self.port, self.management_port, self._epmd_port, self._dist_port = (free_port() for _ in range(4))
        self.node = f"test-{self.port}@localhost"
        self._has_own_epmd = joins is None
        if joins is not None:
            self._epmd_port = joins._epmd_port
            config += "cluster_formation.peer_discovery_backend = classic_config\n" + "".join(
                f"cluster_formation.classic_config.nodes.{number} = {node}\n"
                for number, node in enumerate((joins.node, self.node), 1)
            )
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}//"
        self.management_url = f"http://127.0.0.1:{self.management_port}"
        self._epmd: subprocess.Popen[bytes] | None = None
        self._beam: subprocess.Popen[bytes] | None = None
        for each in ("data", "logs", "home"):
            (folder / each).mkdir(parents=True)
        (folder / "home" / ".erlang.cookie").write_text("only-of-this-test")
        (folder / "home" / ".erlang.cookie").chmod(0o400)
        self.enable(plugins)
        (folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.default = 127.0.0.1:{self.port}\n"
            f"management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {self.management_port}\n"
            f"collect_statistics_interval = 1000\n"  # 5 s by default; the tests need not wait so long
            f"loopback_users = none\nlog.file.level = info\ndisk_free_limit.absolute = 1MB\n{config}"
        )

    def enable(self, plugins: str) -> None:
        """Have ``plugins`` from the next start on."""
        names = ", ".join(f"rabbitmq_{each}" for each in plugins.split())
        (self._folder / "plugins").write_text(f"[{names}].")

    def start(self) -> None:
        """Start it, and its epmd; returns when it takes connections."""
        if self._epmd is None and self._has_own_epmd:
            argv = [self._erts / "bin" / "epmd", "-port", str(self._epmd_port), "-address", "127.0.0.1"]
            self._epmd = self._run(argv, "epmd.log")
        argv = [
            *(self._erts / "bin" / "erlexec", "-noinput", "-boot", "start_sasl", "-s", "rabbit", "boot", "+W", "w"),
            *(*MEMORY.split(), *IDLE.split(), "-kernel", "inet_dist_use_interface", "{127,0,0,1}"),
            *("-syslog", "logger", "[]", "-syslog", "syslog_error_logger", "false"),
        ]
        self._beam = self._run(argv, "server.log")
        eventually(self._is_up, within_s=START_WITHIN_S)

    def kill(self) -> None:
        """End the server at once; its epmd stays."""
        if self._beam is not None:
            with suppress(psutil.NoSuchProcess):
                for each in psutil.Process(self._beam.pid).children(recursive=True):
                    with suppress(psutil.NoSuchProcess):
                        each.kill()
            self._beam.kill()
            self._beam.wait()
            self._beam = None

    def pause(self) -> None:
        """Let it answer nothing, as a machine that hangs."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """End everything and remove its folder."""
        self.kill()
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def pid(self) -> int:
        assert self._beam is not None
        return self._beam.pid

    def log(self) -> str:
        """What the server has logged."""
        return "".join(each.read_text() for each in sorted((self._folder / "logs").glob("*.log")))

    def ctl(self, *words: str) -> str:
        """What ``rabbitmqctl`` prints."""
        answer = subprocess.run(
            [*self._tool("rabbitmqctl"), *words],
            env=self._env(),
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=True,
            timeout=START_WITHIN_S,
        )
        return answer.stdout

    def write_tools(self, folder: Path) -> Path:
        """``rabbitmqctl`` and ``rabbitmq-plugins`` of this server, as programs in ``folder``, which is returned."""
        folder.mkdir()
        for name in ("rabbitmqctl", "rabbitmq-plugins"):
            words = ["env", *(f"{key}={value}" for key, value in self._env().items()), *map(str, self._tool(name))]
            (folder / name).write_text(
                f'#!/bin/sh\ncd {shlex.quote(str(self._folder))}\nexec {shlex.join(words)} "$@"\n'
            )
            (folder / name).chmod(0o755)
        return folder

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """The answer of the management API to the user guest."""
        login = base64.b64encode(b"guest:guest").decode()
        request = urllib.request.Request(
            f"{self.management_url}/api/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Basic {login}", "Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def head_time_s(self, vhost: str, queue: str) -> int | None:
        """The timestamp of the queue's head, by the server's statistics."""
        return self.api("GET", f"queues/{quote(vhost, safe='')}/{queue}").get("head_message_timestamp")

    def connected(self, vhost: str) -> Any:
        """A connection of an application."""
        connection = amqp.Connection(f"127.0.0.1:{self.port}", "guest", "guest", virtual_host=vhost)
        connection.connect()
        return connection

    @contextmanager
    def channel(self, vhost: str = "/") -> Iterator[amqp.Channel]:
        """A channel of an application."""
        with self.connected(vhost) as connection:
            yield connection.channel()

    def make_url(self, vhost: str, login: str = "guest:guest") -> str:
        """The URL of a virtual host."""
        return f"amqp://{login}@127.0.0.1:{self.port}/{quote(vhost, safe='')}"

    def make_vhost(self, name: str) -> None:
        """A new virtual host, all rights for guest."""
        self.api("PUT", f"vhosts/{quote(name, safe='')}", {})
        self.permit(name, "guest", ".*")

    def permit(self, vhost: str, user: str, pattern: str) -> None:
        """Let ``user`` configure, write and read what ``pattern`` fits."""
        rights = dict.fromkeys(("configure", "write", "read"), pattern)
        self.api("PUT", f"permissions/{quote(vhost, safe='')}/{user}", rights)

    def _is_up(self) -> bool:
        assert self._beam is not None
        assert self._beam.poll() is None, (self._folder / "server.log").read_text()[-3000:]
        try:
            with self.channel():
                pass
            if "rabbitmq_management]" in (self._folder / "plugins").read_text():
                self.api("GET", "overview")
        except (OSError, amqp.AMQPError):
            return False
        return True

    def _tool(self, name: str) -> list[Any]:
        return [self._erts / "bin" / "escript", self._lib / "escript" / name, "--node", self.node]

    @property
    def _erts(self) -> Path:
        (erts,) = (self._root / "usr/lib/erlang").glob("erts-*")
        return erts

    @property
    def _lib(self) -> Path:
        (lib,) = (self._root / "usr/lib/rabbitmq/lib").glob("rabbitmq_server-*")
        return lib

    def _env(self) -> dict[str, str]:
        at = self._folder
        return {
            "PATH": f"{self._erts / 'bin'}:/usr/bin:/bin",
            "HOME": str(at / "home"),
            "LANG": "C.UTF-8",
            "ROOTDIR": str(self._root / "usr/lib/erlang"),
            "BINDIR": str(self._erts / "bin"),
            "ESCRIPT_EMULATOR": str(self._erts / "bin" / "erlexec"),
            "EMU": "beam",
            "PROGNAME": "erl",
            "ERL_LIBS": str(self._lib / "plugins"),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": self.node,
            "RABBITMQ_DIST_PORT": str(self._dist_port),
            "RABBITMQ_HOME": str(self._lib),
            "RABBITMQ_PLUGINS_DIR": str(self._lib / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(at / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(at / "advanced.config"),
            "RABBITMQ_CONF_ENV_FILE": str(at / "rabbitmq-env.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(at / "plugins"),
            "RABBITMQ_FEATURE_FLAGS_FILE": str(at / "data" / "feature_flags"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(at / "data" / "config"),
            "RABBITMQ_SCHEMA_DIR": str(at / "data" / "schema"),
            "RABBITMQ_MNESIA_BASE": str(at / "data"),
            "RABBITMQ_LOG_BASE": str(at / "logs"),
            "RABBITMQ_PID_FILE": str(at / "data" / "pid"),
        }

    def _run(self, argv: list[Any], log: str) -> "subprocess.Popen[bytes]":
        with (self._folder / log).open("ab") as out:
            return subprocess.Popen(
                argv, env=self._env(), cwd=self._folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )


def _use_own_libraries(root: Path) -> None:
    """Let the programs of a newer Debian run with its C library: a script before each calls its loader."""
    loader, libraries = root / "usr/lib64/ld-linux-x86-64.so.2", root / "usr/lib/x86_64-linux-gnu"
    erlang = root / "usr/lib/erlang"
    for program in sorted((*erlang.glob("erts-*/bin/*"), *erlang.glob("lib/*/priv/bin/*"))):
        if program.read_bytes()[:4] == b"\x7fELF":
            own = program.rename(program.with_name(f"{program.name}.own"))
            program.write_text(f'#!/bin/sh\nexec {loader} --library-path {libraries} --argv0 "$0" {own} "$@"\n')
            program.chmod(0o755)
