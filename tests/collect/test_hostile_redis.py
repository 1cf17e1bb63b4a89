"""A Redis that is none, or no longer: whatever it answers ends within bounds, and queues beside it are read."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from collect.collecting import collecting
from collect.rq_jobs import Rq, work
from headway.collect.libraries import Libraries
from headway.connections import Connection
from headway.errors import Unavailable
from headway.local.backoff import DoublingPause
from support.waiting import eventually

Reply = Callable[[socket.socket], None]
GREETING = (b"CLIENT", b"SELECT")


class HostileRedis:
    """It greets as a Redis does, and gives one reply to all else."""

    def __init__(self) -> None:
        self.reply: Reply = lambda peer: peer.sendall(b":5\r\n")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"
        self.is_over = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self.is_over.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                peer, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with suppress(OSError), peer, peer.makefile("rb") as asked:
            while not self.is_over.is_set() and (head := asked.readline()):
                words = []
                for _ in range(int(head[1:])):
                    length = int(asked.readline()[1:])
                    words.append(asked.read(length + 2)[:-2])
                if words[0] in GREETING:
                    peer.sendall(b"+OK\r\n")
                else:
                    self.reply(peer)

    def drips(self, peer: socket.socket) -> None:
        """A byte now and then, for as long as anybody listens."""
        peer.sendall(b"$1000000\r\n")
        while not self.is_over.wait(0.02):
            peer.sendall(b"x")

    def floods(self, peer: socket.socket) -> None:
        peer.sendall(b"$524288000\r\n")
        while not self.is_over.is_set():
            peer.sendall(b"x" * 65_536)


@pytest.fixture
def hostile() -> Iterator[HostileRedis]:
    server = HostileRedis()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.collect.reply_bounds.REPLIES_BYTES_MAX", 2**20, raising=False)
    monkeypatch.setattr("headway.collect.reply_bounds.REPLIES_S_MAX", 1.0, raising=False)


def poll(server: HostileRedis, library: str) -> None:
    connection = Connection(name="odd", library=library, url=server.url)
    source = Libraries().of(connection).open(connection, None)
    try:
        source.poll(time.time())
    finally:
        server.is_over.set()
        source.close()


@pytest.mark.timeout(30)
@pytest.mark.parametrize("library", ["rq", "celery"])
def test_a_reply_that_comes_byte_by_byte_ends(hostile: HostileRedis, library: str) -> None:
    """Each byte is within the client's timeout, which is of one piece: a poll never ended, and no line said so."""
    hostile.reply = hostile.drips
    with pytest.raises(Unavailable, match=r"a reply is not whole after 1 s|Timeout reading"):  # the peer may be starved
        poll(hostile, library)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("library", ["rq", "celery"])
def test_a_reply_without_end_is_not_taken_into_memory(hostile: HostileRedis, library: str) -> None:
    """500 MB of a single value took 1.5 GB."""
    hostile.reply = hostile.floods
    with pytest.raises(Unavailable, match="a reply is longer than 1,048,576 bytes"):
        poll(hostile, library)


@pytest.mark.parametrize("library", ["rq", "celery"])
@pytest.mark.parametrize(
    "reply",
    [
        b"*1\r\n" * 10_000 + b":1\r\n",
        b"*-5\r\n",
        b"$-7\r\n",
        b"*9223372036854775807\r\n",
        b":99999999999999999999999\r\n",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"-ERR " + b"z" * 100_000 + b"\r\n",
    ],
)
def test_what_is_no_reply_is_one_short_sentence(hostile: HostileRedis, library: str, reply: bytes) -> None:
    """An error of 100,000 characters was logged whole."""
    hostile.reply = lambda peer: peer.sendall(reply)
    with pytest.raises(Unavailable, match="answered with an error") as caught:
        poll(hostile, library)
    assert len(str(caught.value)) < 500


def test_answers_of_other_types_are_logged_once_and_the_queue_beside_is_read(
    hostile: HostileRedis, rq: Rq, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each turn logged the same trace, every 4 s for as long as it went on."""
    monkeypatch.setattr("headway.collect.collector_loop.PAUSE", DoublingPause(0.05, 0.05))
    turns: list[float] = []

    def answered(peer: socket.socket) -> None:
        turns.append(time.monotonic())
        peer.sendall(b":5\r\n")

    hostile.reply = answered
    rq.queue().enqueue(work)
    connections = [Connection(name="odd", url=hostile.url), Connection(name="good", url=rq.url)]
    with collecting(connections, tmp_path) as collected:
        collected.comes_to("good/mail", 1)
        eventually(lambda: len(turns) > 5)
    logged = [record for record in caplog.records if "connection=odd" in record.getMessage()]
    assert len(logged) == 1
    assert "is no broker of RQ" in logged[0].getMessage()
