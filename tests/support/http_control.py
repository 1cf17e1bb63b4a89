"""A control plane that takes telemetry by HTTP as the real one does, or misbehaves."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from headway.control.http.schemas.requests import TelemetryBody


class HttpControl:
    """What came, and how the next batches are answered."""

    def __init__(self) -> None:
        self.status = 202
        self.detail: bytes | None = None
        """The body of an answer; ``None``: a sentence, as the control plane's own."""
        self.goes_on = threading.Event()
        """An answer waits for it."""
        self.goes_on.set()
        self.batches: list[dict[str, Any]] = []
        """Those that were taken, each once."""
        self.tries = 0
        self.tokens: set[str | None] = set()
        self.url = ""
        self._changed = threading.Condition()

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for batch in self.batches for event in batch["events"]]

    def until(self, events: int, within_s: float = 30.0) -> list[dict[str, Any]]:
        """Its events, once there are so many."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.events) >= events, within_s), self.batches
        return self.events

    def tried(self, times: int, within_s: float = 30.0) -> None:
        """Return once so many batches have come, taken or not."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.tries >= times, within_s), self.tries

    def take(self, body: bytes, token: str | None) -> int:
        """The status of the answer."""
        with self._changed:
            self.tries += 1
            self._changed.notify_all()
        self.goes_on.wait(60.0)
        with self._changed:
            if self.status == 202:
                batch = TelemetryBody.model_validate_json(body).model_dump(exclude_none=True)
                if not any(
                    (b["producer"], b["sequence"]) == (batch["producer"], batch["sequence"]) for b in self.batches
                ):
                    self.batches.append(batch)
                self.tokens.add(token)
            self._changed.notify_all()
            return self.status


@contextmanager
def serving(control: HttpControl, port: int = 0) -> Iterator[HttpControl]:
    """``control`` on loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            assert self.path == "/v1/telemetry"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = control.take(body, self.headers["Authorization"])
            said = control.detail or json.dumps({"detail": f"a test answers {status}"}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    control.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield control
    finally:
        control.goes_on.set()
        server.shutdown()
        server.server_close()
        thread.join()
