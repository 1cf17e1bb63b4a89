"""The applications of the table of faults: each puts real jobs into a server of its own, and has a login that reads."""

import logging
import re
import time
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import kombu
import pytest
import rq.job
import rq.queue
import rq.utils
from celery import Celery
from rq import Queue

from collect.rq_jobs import Rq, work
from headway.connections import Connection
from support.tree import ROOT
from support.valkeys import HOST, Valkey

PASSWORD = "PASSWORD"


class App:
    """Jobs of one queue, ``mail``, in one server."""

    library: ClassVar[str]
    list_key: ClassVar[str]
    """Where the jobs of ``mail`` wait."""
    reading_right: ClassVar[str]
    """A command without which its queues cannot be read."""
    has_events: ClassVar[bool]

    def __init__(self, server: Valkey) -> None:
        self.server = server
        self.put_jobs = 0
        page = (ROOT / "docs" / "how-to" / f"collect-{self.library}.md").read_text()
        (self.login,) = re.findall(r"^ACL SETUSER headway.*$", page, re.MULTILINE)
        self.log_in()

    def log_in(self, *more: str) -> None:
        """Make the login of the page, and change it by ``more``."""
        self.server.redis.execute_command(*self.login.split(), *more)

    def connection(self, port: int, folder: Path, **more: Any) -> Connection:
        """To its queues by that port, with the login of the page."""
        (folder / "password").write_text(PASSWORD)
        url = more.pop("url", f"redis://headway@{HOST}:{port}/0")
        return Connection(
            name=self.library,
            url=url,
            library=self.library,
            every_s=0.2,
            password_file=folder / "password",
            **more,
        )

    def put(self, jobs: int) -> None:
        """Put jobs into ``mail``, as the library does."""
        raise NotImplementedError

    def put_malformed(self) -> None:
        """Put a job of which nothing can be made."""
        raise NotImplementedError

    def put_odd_name(self) -> None:
        """Make a queue whose name is no text."""
        raise NotImplementedError

    def delete_queue(self) -> None:
        """As the library does."""
        raise NotImplementedError

    def put_by_clock(self, off_s: float) -> None:
        """Put a job from a machine whose clock is wrong by ``off_s``, or let a worker of such a machine take one."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class RqApp(App):
    library, list_key, reading_right, has_events = "rq", "rq:queue:mail", "lrange", True

    def __init__(self, server: Valkey) -> None:
        super().__init__(server)
        self._rq = Rq(server.url)
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


class CeleryApp(App):
    library, list_key, reading_right, has_events = "celery", "mail", "llen", False

    def __init__(self, server: Valkey) -> None:
        super().__init__(server)
        self._app = Celery("shop", broker=server.url)

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


APPS = {each.library: each for each in (RqApp, CeleryApp)}
