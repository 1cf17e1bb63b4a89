"""Writes the API's description: `python -m headway.control.http.openapi docs/reference/openapi.json`."""

import json
import sys
from pathlib import Path

from headway.control.http.app import routed


def description() -> str:
    """The OpenAPI description, as it is committed."""
    return json.dumps(routed().openapi(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(description())
