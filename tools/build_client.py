"""Generates ``headway.client.v1``, the typed client of the HTTP API, while a wheel is built: docs/decisions/0028.

Hatchling runs it for each wheel, also for that of a checkout that is installed editable: `make install`, which begins
again when the description has changed. The code lands in ``service/headway/client/v1``, which git does not keep.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DESCRIPTION = "docs/reference/openapi.json"
GENERATED = "service/headway/client/v1"
STAMP = "made_from.txt"
SETTINGS = {
    "content_type_overrides": {"application/x-ndjson": "text/plain", "text/csv": "text/plain"},
    "docstrings_on_attributes": True,
    "literal_enums": True,  # callers write "recommend", and a type checker knows the words
    "post_hooks": [],  # programs found by PATH; what formats is run below
}
INIT = '''"""The API's operations, generated from its description: a module an operation, a class a body.

Every error is a :class:`~headway.client.v1.models.problem.Problem`.
"""
'''


class BuildClient(BuildHookInterface[Any]):
    """Makes the client before the files of a wheel are gathered."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 — hatchling's words
        """Generate it, where what is there was made of something else."""
        root = Path(self.root)
        made_from = digest(root / DESCRIPTION)
        stamp = root / GENERATED / STAMP
        if not stamp.exists() or stamp.read_text() != made_from:
            generate(root / DESCRIPTION, root / GENERATED, made_from=made_from)


def digest(description: Path) -> str:
    """What decides the code: the description, this file and the generator's version."""
    parts = (description.read_bytes(), Path(__file__).read_bytes(), version("openapi-python-client").encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def generate(description: Path, folder: Path, *, made_from: str) -> None:
    """Replace ``folder`` by the client of ``description``."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Beside it, so that whoever imports the client at this moment finds the old one or the new one.
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as making:
        settings, made = Path(making, "settings.json"), Path(making, "v1")
        settings.write_text(json.dumps(SETTINGS))
        source = Path(making, "openapi.json")
        source.write_text(json.dumps(without_defaults(json.loads(description.read_text()))))
        _run("openapi_python_client", "generate", "--path", source, "--output-path", made, "--meta", "none",
             "--config", settings)  # fmt: skip
        init = made / "__init__.py"
        init.write_text(INIT + init.read_text().split('"""', 2)[2])
        _run("ruff", "check", "--isolated", "--no-cache", "--quiet", "--fix", "--select", "F401,I", made)
        _run("ruff", "format", "--isolated", "--no-cache", "--quiet", "--line-length", "120", made)
        (made / STAMP).write_text(made_from)
        if folder.exists():
            folder.rename(Path(making, "old"))
        made.rename(folder)


def without_defaults(description: dict[str, Any]) -> dict[str, Any]:
    """The description with the defaults of bodies in words alone.

    The generator would send each of them with every body. A profile's preset holds for keys that are not sent.
    """
    for schema in description["components"]["schemas"].values():
        for key in schema.get("properties", {}).values():
            default = key.pop("default", None)
            if default is not None:
                key["description"] = f"{key.get('description', '')} Default: {json.dumps(default)}.".lstrip()
    return description


def _run(module: str, *words: object) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{GENERATED} could not be generated:\n{done.stdout.decode(errors='replace')}")
