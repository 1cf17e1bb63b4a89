"""The HTTP API on a real Postgres, an event log in a folder, and a clock that stands still."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from headway.control.http.app import App, create_app
from headway.control.http.overview.broadcaster import Feed
from headway.control.ingest.ingest import Ingest
from headway.store.engine import Engine
from headway.store.events.event_log import EventLog
from support.installed import INSTALLED
from support.known_pool import NOW_S


@dataclass(frozen=True)
class Bound:
    """An address."""

    host: str = "127.0.0.1"
    port: int = 0


@pytest.fixture
async def ingest(engine: Engine, tmp_path: Path) -> AsyncIterator[Ingest]:
    ingest = Ingest(engine=engine, event_log=EventLog(tmp_path / "events", free_bytes_min=0), clock=lambda: NOW_S)
    await ingest.start()
    yield ingest
    await ingest.stop()


@pytest.fixture
def api(engine: Engine, ingest: Ingest):
    """Makes the app, with a token or without."""

    def made(**values: Any) -> App:
        return create_app(
            **{
                "engine": engine,
                "ingest": ingest,
                "feed": Feed(pause_s=0.01),
                "token": None,
                "address": Bound(),
                "clock": lambda: NOW_S,
                "strategies": INSTALLED,
                **values,
            }
        )

    return made


@pytest.fixture
async def client(api) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(api(), raise_app_exceptions=False), base_url="http://127.0.0.1:8460"
    ) as client:
        yield client
