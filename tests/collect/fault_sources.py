"""The applications of the table of faults: each puts real jobs into a server of its own, and has a login that reads."""

import logging
import re
import time
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import amqp
import kombu
import pytest
import rq.job
import rq.queue
import rq.utils
from celery import Celery
from rq import Queue

from collect.rabbit_shop import QUORUM
from collect.rq_jobs import Rq, work
from headway.connections import Connection
from support.faulty_proxy import FaultyProxy
from support.rabbitmq import RabbitServer
from support.tree import ROOT
from support.valkeys import HOST, Valkey, Watched
from support.waiting import eventually

PASSWORD = "PASSWORD"
FOREIGN_KEYS = 100_000
FOREIGN_QUEUES = 1_000


class App:
    """Jobs of one queue, ``mail``, in a server of its own, or in the first of several that take each other's place."""

    library: ClassVar[str]
    has_events: ClassVar[bool] = False
    unknown: ClassVar[dict[str, str]] = {}
    """Faults that its broker cannot have, and why."""
    server: Any
    ports: tuple[int, ...]
    """Of the server, as its collector asks it."""

    def __init__(self) -> None:
        self.put_jobs = 0
        self.log_in()

    def log_in(self) -> None:
        """Make the login of the library's page, or make it anew."""
        raise NotImplementedError

    def change_password(self, password: str) -> None:
        """Of that login."""
        raise NotImplementedError

    def take_right(self) -> None:
        """Take the right to read from that login."""
        raise NotImplementedError

    def connection(self, ports: tuple[int, ...], folder: Path, *, ca_file: Path | None = None) -> Connection:
        """To its queues by those ports with that login, encrypted where there is a CA."""
        (folder / "password").write_text(PASSWORD)
        return Connection(
            name=self.library,
            library=self.library,
            every_s=0.2,
            password_file=folder / "password",
            ca_file=ca_file,
            **self._urls(ports, is_tls=ca_file is not None),
        )

    def _urls(self, ports: tuple[int, ...], *, is_tls: bool) -> dict[str, str]:
        raise NotImplementedError

    def put(self, jobs: int) -> None:
        """Put jobs into ``mail``, as the library does."""
        raise NotImplementedError

    def put_malformed(self) -> None:
        """Put two jobs of which nothing can be made."""
        raise NotImplementedError

    def put_foreign(self) -> None:
        """Put much that is none of the library's."""
        raise NotImplementedError

    def put_odd_name(self) -> None:
        """Make a queue whose name is no text."""
        raise NotImplementedError

    def flush(self) -> None:
        """Empty it, as an administrator does."""
        raise NotImplementedError

    def delete_queue(self) -> None:
        """As the library does."""
        raise NotImplementedError

    def put_by_clock(self, off_s: float) -> None:
        """Put a job from a machine whose clock is wrong by ``off_s``, or let a worker of such a machine take one."""
        raise NotImplementedError

    def replace_server(self, proxies: list[FaultyProxy]) -> None:
        """Return once another takes the place of the server that is gone."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class RedisApp(App):
    """In a Redis, or in a master that three sentinels watch."""

    list_key: ClassVar[str]
    """Where the jobs of ``mail`` wait."""
    reading_right: ClassVar[str]
    """A command without which its queues cannot be read."""
    server: Valkey

    def __init__(self, folder: Path, *, is_watched: bool) -> None:
        self._watched = Watched(folder) if is_watched else None
        self.server = self._watched.servers[0] if self._watched is not None else Valkey(folder, is_kept=True)
        self.ports = (self.server.port,)
        page = (ROOT / "docs" / "how-to" / f"collect-{self.library}.md").read_text()
        (self._login,) = re.findall(r"^ACL SETUSER headway.*$", page, re.MULTILINE)
        super().__init__()

    def log_in(self) -> None:
        self._change_login()

    def change_password(self, password: str) -> None:
        self._change_login("resetpass", f">{password}")

    def take_right(self) -> None:
        self._change_login(f"-{self.reading_right}")

    def _change_login(self, *more: str) -> None:
        # A replica has logins of its own.
        for each in [self.server] if self._watched is None else self._watched.servers:
            each.redis.execute_command(*self._login.split(), *more)

    def _urls(self, ports: tuple[int, ...], *, is_tls: bool) -> dict[str, str]:
        if self._watched is not None:
            return {"url": self._watched.url.replace("//", "//headway@")}
        return {"url": f"{'rediss' if is_tls else 'redis'}://headway@{HOST}:{ports[0]}/0"}

    def put_foreign(self) -> None:
        self.server.redis.eval(
            "for i = 1, tonumber(ARGV[1]) do redis.call('set', 'foreign-' .. i, i) end", 0, FOREIGN_KEYS
        )

    def flush(self) -> None:
        self.server.redis.flushall()

    def replace_server(self, proxies: list[FaultyProxy]) -> None:
        eventually(lambda: self._watched.is_failed_over_from(self.server))

    def close(self) -> None:
        (self._watched or self.server).close()


class RqApp(RedisApp):
    library, list_key, reading_right, has_events = "rq", "rq:queue:mail", "lrange", True

    def __init__(self, folder: Path, *, is_watched: bool) -> None:
        super().__init__(folder, is_watched=is_watched)
        self._rq = Rq(self.server.url)
        logging.getLogger("rq.queue").setLevel(logging.CRITICAL)

    def put(self, jobs: int) -> None:
        for _ in range(jobs):
            self._rq.queue().enqueue(work)
        self.put_jobs += jobs

    def put_malformed(self) -> None:
        self._rq.redis.hset("rq:job:bad", mapping={"status": b"\xff", "enqueued_at": "yesterday", "created_at": "-1"})
        self._rq.redis.rpush(self.list_key, "bad", b"\xff\xfe")

    def put_odd_name(self) -> None:
        self._rq.redis.sadd("rq:queues", b"rq:queue:\xff\x00")
        self._rq.redis.rpush(b"rq:queue:\xff\x00", "a")

    def delete_queue(self) -> None:
        Queue("mail", connection=self._rq.redis).delete(delete_jobs=True)

    def put_by_clock(self, off_s: float) -> None:
        with pytest.MonkeyPatch.context() as patch:
            for module in (rq.job, rq.queue):
                patch.setattr(module, "now", lambda: rq.utils.now() + timedelta(seconds=off_s))
            self.put(1)

    def run(self) -> None:
        """Let a worker run what waits."""
        self._rq.run()

    def close(self) -> None:
        self._rq.redis.close()
        super().close()


class CeleryApp(RedisApp):
    library, list_key, reading_right = "celery", "mail", "llen"

    def __init__(self, folder: Path, *, is_watched: bool) -> None:
        super().__init__(folder, is_watched=is_watched)
        self._app = Celery("shop", broker=self.server.url)

    def put(self, jobs: int) -> None:
        with self._app.connection_for_write() as connection:  # Celery's pool is of one server that never was away
            for _ in range(jobs):
                self._app.send_task("work", queue="mail", connection=connection)
        self.put_jobs += jobs

    def put_malformed(self) -> None:
        self.server.redis.lpush(self.list_key, "{", b"\xff\xfe")

    def put_odd_name(self) -> None:
        self.server.redis.sadd(b"_kombu.binding.\xff", b"\xff\x00\x06\x16\x06\x16\xff\x00")
        self.server.redis.lpush(b"\xff\x00", "{}")

    def delete_queue(self) -> None:
        with self._app.connection_for_write() as connection:
            queue = kombu.Queue("mail", kombu.Exchange("mail"), "mail")(connection.default_channel)
            queue.declare()
            queue.delete()

    def put_by_clock(self, off_s: float) -> None:
        self.put(1)
        text = self.server.redis.rpop(self.list_key)
        self.server.redis.hset("unacked", "tag", f'[{text}, "mail", "mail"]')
        self.server.redis.zadd("unacked_index", {"tag": time.time() + off_s})
        self.put(1)

    def close(self) -> None:
        self._app.close()
        super().close()


class RabbitmqApp(App):
    """In a RabbitMQ 3.10, or in a quorum queue of three nodes behind a load balancer."""

    library = "rabbitmq"
    unknown: ClassVar[dict[str, str]] = {"key of another type": "no such fault"}
    server: RabbitServer

    def __init__(self, folder: Path, *, is_watched: bool) -> None:
        self.server = RabbitServer(folder / "rabbitmq")
        more = [RabbitServer(folder / f"node-{each}", joins=self.server) for each in (2, 3)] if is_watched else []
        self._nodes = [self.server, *more]
        self.ports = (self.server.port, self.server.management_port)
        self._arguments = QUORUM if is_watched else {}
        self._foreign: Any = None
        for node in self._nodes:
            node.start()
        super().__init__()

    def log_in(self) -> None:
        self.change_password(PASSWORD)
        self.server.permit("/", "headway", "")

    def change_password(self, password: str) -> None:
        self.server.api("PUT", "users/headway", {"password": password, "tags": "management"})

    def take_right(self) -> None:
        self.server.api("DELETE", "permissions/%2F/headway")

    def _urls(self, ports: tuple[int, ...], *, is_tls: bool) -> dict[str, str]:
        s = "s" if is_tls else ""
        return {
            "url": f"amqp{s}://headway@{HOST}:{ports[0]}/%2F",
            "management_url": f"http{s}://{HOST}:{ports[1]}",
        }

    def put(self, jobs: int) -> None:
        for _ in range(jobs):
            self._publish("x")
        self.put_jobs += jobs
        # A server that is killed forgets a queue that was declared seconds ago: it writes such things with a delay.
        self.server.ctl("eval", "mnesia:sync_log().")

    def put_malformed(self) -> None:
        for body in ("{", b"\xff\x00"):
            self._publish(body, content_type="application/json", application_headers={"eta": "\x00"})

    def put_foreign(self) -> None:
        self._foreign = self.server.connected("/")
        channel = self._foreign.channel()
        for number in range(FOREIGN_QUEUES):
            channel.queue_declare(f"reply-{number}", exclusive=True)

    def put_odd_name(self) -> None:
        with self.server.channel() as channel:
            channel.queue_declare("a\x00b", durable=True, auto_delete=False)

    def flush(self) -> None:
        with self.server.channel() as channel:
            channel.queue_purge("mail")

    def delete_queue(self) -> None:
        with self.server.channel() as channel:
            channel.queue_delete("mail")

    def put_by_clock(self, off_s: float) -> None:
        self._publish("x", timestamp=int(time.time() + off_s))

    def replace_server(self, proxies: list[FaultyProxy]) -> None:
        second = self._nodes[1]
        for proxy, port in zip(proxies, (second.port, second.management_port), strict=True):
            proxy.to = port

    def close(self) -> None:
        if self._foreign is not None:
            self._foreign.collect()
        for node in reversed(self._nodes):  # the first has the others' epmd
            node.close()

    def _publish(self, body: str | bytes, **properties: Any) -> None:
        with self.server.channel() as channel:
            channel.queue_declare("mail", durable=True, auto_delete=False, arguments=self._arguments)
            message = amqp.Message(body, delivery_mode=2, **properties)
            channel.basic_publish_confirm(message, routing_key="mail")


APPS = {each.library: each for each in (RqApp, CeleryApp, RabbitmqApp)}
