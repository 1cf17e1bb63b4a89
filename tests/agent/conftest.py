from collections.abc import Iterator
from pathlib import Path

import pytest

from support.workers import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path / "state")
    yield stage
    stage.clear()
