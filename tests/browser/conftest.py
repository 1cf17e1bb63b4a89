"""The dashboard, served from a database of the test's own, and a browser that opens it."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Browser, async_playwright

from browser.pages import CHROMIUM, QUIETLY
from headway.control.http.app import create_app
from headway.control.http.http_server import HttpServer
from headway.control.http.overview.broadcaster import Feed
from headway.control.ingest.ingest import Ingest
from headway.store.engine import Engine
from headway.store.events.event_log import EventLog


@dataclass(frozen=True)
class Bound:
    """An address."""

    host: str = "127.0.0.1"
    port: int = 0


@pytest.fixture
async def ingest(engine: Engine, tmp_path: Path) -> AsyncIterator[Ingest]:
    ingest = Ingest(engine=engine, event_log=EventLog(tmp_path / "events", free_bytes_min=0), clock=time.time)
    await ingest.start()
    yield ingest
    await ingest.stop()


@pytest.fixture
def serve(engine: Engine, ingest: Ingest):
    """Serves the dashboard, with a token or without; an ``ended_report`` is what viewers get when it is stopped."""

    @asynccontextmanager
    async def served(
        *, token: str | None = None, port: int = 0, ended_report: str | None = None
    ) -> AsyncIterator[tuple[str, Feed, HttpServer]]:
        feed = Feed(ended_report=lambda: ended_report)
        app = create_app(engine=engine, ingest=ingest, feed=feed, token=token, address=Bound())
        server = HttpServer(app, address=Bound(port=port))
        await server.start()
        try:
            yield f"http://127.0.0.1:{server.port}/", feed, server
        finally:
            await server.stop()

    return served


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=QUIETLY)
        yield browser
        await browser.close()
