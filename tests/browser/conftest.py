"""The dashboard, served from a database of the test's own, and a browser that opens it.

One browser serves all tests of a process, each in a context of its own: to start it takes a second of a processor, and
its first page as much again. It lives in one event loop, and so do the tests.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from browser.pages import QUIETLY
from headway.control.http.app import create_app
from headway.control.http.http_server import HttpServer
from headway.control.http.overview.broadcaster import Feed
from headway.control.ingest.ingest import Ingest
from headway.settings import Address
from headway.store.engine import Engine, create_engine
from headway.store.events.event_log import EventLog
from support.chromium import CHROMIUM

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(loop_scope="session")
async def engine(migrated_url: str) -> AsyncIterator[Engine]:
    engine = create_engine(migrated_url)
    yield engine
    await engine.dispose()


@pytest_asyncio.fixture(loop_scope="session")
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
        feed, address = Feed(ended_report=lambda: ended_report), Address(host="127.0.0.1", port=port)
        app = create_app(engine=engine, ingest=ingest, feed=feed, token=token, address=address)
        server = HttpServer(app, address=address)
        await server.start()
        try:
            yield f"http://127.0.0.1:{server.port}/", feed, server
        finally:
            await server.stop()

    return served


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=QUIETLY)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def browser(chromium: Browser) -> AsyncIterator[Browser]:
    yield chromium
    for context in chromium.contexts:  # of a test that failed
        await context.close()
