import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from headway.cli.demo import overview_stream
from headway.cli.demo.overview_stream import OverviewFeed


class Server(BaseHTTPRequestHandler):
    """Sends one overview a connection, and a problem, then disconnects."""

    sent = 0
    seen_tokens: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        Server.sent += 1
        Server.seen_tokens.append(self.headers.get("Authorization"))
        self.send_response(500 if Server.sent == 2 else 200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        text = f'event: overview\ndata: {json.dumps({"at_s": Server.sent})}\n\n: ping\n\nevent: problem\ndata: "no"\n\n'
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def api():
    Server.sent = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_newest_overview_is_kept_and_a_broken_stream_is_taken_up_again(api, monkeypatch):
    monkeypatch.setattr(overview_stream, "RECONNECT_S", 0.01)
    listening = OverviewFeed(api, token="secret")
    assert listening.newest is None
    listening.start()
    wait = threading.Event()
    for _ in range(6000):
        if (listening.newest or {}).get("at_s", 0) >= 3:
            break
        wait.wait(0.01)
    listening.close()
    assert listening.newest["at_s"] >= 3, "the second answer was an error, the third was taken"
    assert Server.seen_tokens[0] == "Bearer secret"
