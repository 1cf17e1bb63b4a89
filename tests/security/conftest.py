"""What attacks call, and what they are tried on."""

from collections.abc import Iterator

import pytest

from support.attacked import IS_ANOTHER
from support.served import served as served


@pytest.fixture
def migrated_url(_database, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of this version; where another one is attacked, an empty one that it migrates itself."""
    template = "template0" if IS_ANOTHER else request.getfixturevalue("_migrated_template")
    with _database(template) as url:
        yield url
