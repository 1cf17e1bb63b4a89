"""Does what it is asked to with a library, in that library's environment: a request a line, and an answer."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any


def serve(*acts: Callable[..., Any]) -> None:
    """Answer until nobody asks any more, each act by its function's name."""
    by_name = {act.__name__: act for act in acts}
    _say("ready")
    for line in sys.stdin:
        name, given = json.loads(line)
        began_s = time.time()
        answer = by_name[name](**given)
        _say([began_s, time.time(), answer])


def _say(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()
