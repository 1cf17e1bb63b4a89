"""A receiver of webhooks: a real HTTP server that takes, fails or hangs as a test says."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from headway.control.notifications.receivers import Receiver

SECRET = b"a secret of a test"


class Hook(ThreadingHTTPServer):
    """A receiver: what it took, and what it answers for each pool."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.taken: list[tuple[str, str]] = []
        self.heads: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self.status: dict[str, int] = {}
        self.tries = 0
        self.hangs = threading.Event()
        self.may_end = threading.Event()

    def receiver(self, name: str = "oncall", template: str = "cloudevents") -> Receiver:
        url = f"http://127.0.0.1:{self.server_port}/"
        return Receiver(name=name, url=url, template=template, secret=SECRET, match={})


class _Handler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.tries += 1
        if self.server.hangs.is_set():
            self.server.may_end.wait(10)
            return
        event = json.loads(body)
        data = event.get("data", {"pool": "", "phase": ""})
        status = self.server.status.get(data["pool"], 204)
        if status < 300:
            self.server.taken.append((data["pool"], data["phase"] if "phase" in data else data["event"]))
            self.server.heads.append({name.lower(): value for name, value in self.headers.items()})
            self.server.bodies.append(body)
        self.send_response(status)
        self.send_header("location", "/elsewhere")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """A test's output is no access log."""


@contextmanager
def serving_hook(port: int = 0) -> Iterator[Hook]:
    """A receiver that serves until the end of the block."""
    server = Hook(port)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.may_end.set()
        server.shutdown()
        thread.join()
        server.server_close()
