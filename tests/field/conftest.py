from collections.abc import Iterator
from pathlib import Path

import pytest

from support.valkeys import Valkey


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Valkey]:
    """A Redis of the test's own, beside its application."""
    folder = tmp_path / "broker"
    folder.mkdir()
    broker = Valkey(folder)
    try:
        yield broker
    finally:
        broker.close()
