"""The version that attacks over the wire are tried on: this one, or another, to see that they succeed there.

``HEADWAY_ATTACKED=/elsewhere/.venv/bin/python pytest tests/security``
"""

import os
import sys

PYTHON = os.environ.get("HEADWAY_ATTACKED", sys.executable)
IS_ANOTHER = sys.executable != PYTHON
