"""The broker of a recipe: the page's login, its library's real jobs and worker, and a server's own log of what we send.

The application and its worker come by the server's socket, so whatever comes by its port is the collector's.
"""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis
import rq
from celery import Celery

from support.tree import ROOT
from support.valkeys import HOST, Valkey
from support.waiting import eventually

CONNECTING = {"AUTH", "CLIENT", "HELLO", "PING", "SELECT"}
LAST = "headway-tests-last"
PASSWORD = "PASSWORD"  # what each page calls it
SHOP = """
import os, time
from celery import Celery
app = Celery("shop", broker=os.environ["BROKER"])
@app.task(name="work")
def work(seconds): time.sleep(seconds)
"""


class Broker:
    """A server to which the login of a page may connect, and what that login has sent."""

    def __init__(self, folder: Path, page: str) -> None:
        self.text = (ROOT / page).read_text()
        self.socket = folder / "broker.sock"
        self.server = Valkey(folder, f"unixsocket {self.socket}")
        self.own = redis.Redis(unix_socket_path=str(self.socket), decode_responses=True)
        (login,) = re.findall(r"^ACL SETUSER headway .*$", self.text, flags=re.MULTILINE)
        self.own.execute_command(*login.split())
        self.own.execute_command("ACL", "SETUSER", "default", "on", "nopass", "~*", "&*", "+@all")
        self.sent: set[str] = set()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._is_read = threading.Event()
        self._is_whole = False
        self._reader.start()
        assert self._is_read.wait(30)

    @property
    def address(self) -> str:
        return f"{HOST}:{self.server.port}"

    def _read(self) -> None:
        # Without a timeout: seconds may pass in which nobody sends anything.
        client = redis.Redis(unix_socket_path=str(self.socket), decode_responses=True, socket_timeout=None)
        with client.monitor() as monitor:
            self._is_read.set()
            while LAST not in (seen := monitor.next_command())["command"]:
                if seen["client_type"] == "tcp":
                    self.sent.add(seen["command"].split(" ")[0].upper())
        self._is_whole = True

    def close(self) -> None:
        """See that nothing was sent that the page does not name."""
        self.own.ping()
        self.own.execute_command("ECHO", LAST)
        self._reader.join(30)
        assert self._is_whole, "not all was read that was sent"
        self.own.close()
        self.server.close()
        named = set(re.findall(r"`([A-Z]+)`", re.search(r"only reads:(.*?)\n\n", self.text, flags=re.DOTALL)[1]))
        assert self.sent - CONNECTING <= named, f"not on the page: {sorted(self.sent - CONNECTING - named)}"
        assert len(self.sent & named) > 3, f"the collector has read nearly nothing: {sorted(self.sent)}"


@contextmanager
def celery_broker(folder: Path) -> Iterator[Broker]:
    """Celery's: one task runs, others are taken or wait; ``brokers.toml`` as the page has it."""
    broker = Broker(folder, "docs/how-to/collect-celery.md")
    url = f"redis+socket://{broker.socket}?virtual_host=0"
    (folder / "shop.py").write_text(SHOP)
    (folder / "password").write_text(PASSWORD)
    table, *_ = re.findall(r"```toml brokers\n(.*?)```", broker.text, flags=re.DOTALL)
    for old, new in {"redis.internal:6379": broker.address, "/etc/headway/shop-password": f"{folder}/password"}.items():
        assert old in table
        table = table.replace(old, new)
    (folder / "brokers.toml").write_text(table)
    with Celery("shop", broker=url) as app:
        for queue in ("celery", "celery", "celery", "reports"):
            app.send_task("work", (30,), queue=queue)
        app.send_task("work", (30,), countdown=600)
    words = [sys.executable, "-m", "celery", "--app", "shop", "worker", "--concurrency", "1", "--loglevel", "INFO"]
    worker = subprocess.Popen(
        words, cwd=folder, env={**os.environ, "BROKER": url}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        eventually(lambda: broker.own.llen("celery") == 0)
        yield broker
    finally:
        worker.kill()
        worker.wait()
        broker.close()


@contextmanager
def rq_broker(folder: Path) -> Iterator[Broker]:
    """RQ's: jobs wait in two queues, one was done, and one failed."""
    broker = Broker(folder, "docs/how-to/collect-rq.md")
    queues = [rq.Queue(name, connection=redis.Redis(unix_socket_path=str(broker.socket))) for name in ("mail", "news")]
    queues[0].enqueue("time.sleep", 0.01)
    queues[0].enqueue("time.nothing")
    rq.SimpleWorker(queues[:1], connection=queues[0].connection).work(burst=True, logging_level="CRITICAL")
    for queue in queues:
        queue.enqueue("time.sleep", 0.1)
    try:
        yield broker
    finally:
        broker.close()
