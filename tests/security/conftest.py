"""What attacks call, and what they are tried on."""

from collections.abc import Iterator

import pytest

from security.planes import Plane, serving
from support.attacked import IS_ANOTHER
from support.served import served as served


@pytest.fixture(scope="session")
def _template(request: pytest.FixtureRequest) -> str:
    """Of a database of this version; where another one is attacked, of an empty one that it migrates itself."""
    return "template0" if IS_ANOTHER else request.getfixturevalue("_migrated_template")


@pytest.fixture
def migrated_url(_database, _template: str) -> Iterator[str]:
    with _database(_template) as url:
        yield url


@pytest.fixture(scope="module")
def shared_plane(_database, _template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """One for the tests of a module that mind nothing that the others leave: it takes three seconds of a processor."""
    with _database(_template) as url, serving(url, tmp_path_factory.mktemp("plane")) as plane:
        yield plane
