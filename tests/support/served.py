"""A control plane's HTTP server for the command line, which is synchronous."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from control.http.conftest import Bound
from headway.control.http.app import create_app
from headway.control.http.http_server import HttpServer
from headway.control.http.overview.broadcaster import Feed
from headway.control.ingest.ingest import Ingest
from headway.store.events.event_log import EventLog
from support.engines import engine_to

TOKEN = "right"


class Served:
    """A server on its own thread: the command line is synchronous."""

    def __init__(self, database_url: str, folder: Path) -> None:
        self._ready, self._stop = threading.Event(), asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self.url = ""
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=[self._run(database_url, folder)])
        self._thread.start()
        assert self._ready.wait(60)

    async def _run(self, database_url: str, folder: Path) -> None:
        engine = engine_to(database_url)
        ingest = Ingest(engine=engine, event_log=EventLog(folder / "events", free_bytes_min=0), clock=lambda: 1.8e9)
        server = HttpServer(
            create_app(engine=engine, ingest=ingest, feed=Feed(), token=TOKEN, address=Bound()), address=Bound()
        )
        await ingest.start()
        await server.start()
        self.url = f"http://127.0.0.1:{server.port}"
        self._ready.set()
        await self._stop.wait()
        await server.stop()
        await ingest.stop()
        await engine.dispose()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)
        self._loop.close()


@pytest.fixture
def served(migrated_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    served = Served(migrated_url, tmp_path)
    monkeypatch.setenv("HEADWAY_URL", served.url)
    monkeypatch.setenv("HEADWAY_TOKEN", TOKEN)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")  # loopback is not reached through it
    yield served
    served.close()


def profiles_file(folder: Path, text: str, name: str = "profiles.yaml") -> str:
    (folder / name).write_text(text)
    return str(folder / name)
