from collections.abc import AsyncIterator

import pytest

from headway.store.engine import Engine, create_engine


@pytest.fixture
async def engine(migrated_url: str) -> AsyncIterator[Engine]:
    engine = create_engine(migrated_url)
    yield engine
    await engine.dispose()
