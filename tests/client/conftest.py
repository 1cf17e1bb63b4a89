"""A control plane, and the token files that its callers keep."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from security.planes import Plane, serving

TokenFile = Callable[[str], Path]


@pytest.fixture(scope="module")
def plane(_database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane that nobody has asked anything yet."""
    with _database("template0") as url, serving(url, tmp_path_factory.mktemp("plane")) as plane:
        yield plane


@pytest.fixture(scope="module")
def token_file(plane: Plane, tmp_path_factory: pytest.TempPathFactory) -> TokenFile:
    """Makes a token of a role, in a file that only its owner reads."""
    numbers, folder = count(1), tmp_path_factory.mktemp("tokens")

    def made(role: str) -> Path:
        name = f"{role}-{next(numbers)}"
        file = folder / name
        file.write_text(plane.token(role, name))
        file.chmod(0o600)
        return file

    return made
