"""Sets the wall clock of the Python programs that find this file: by the seconds that the file in ``LAB_CLOCK`` says.

The kernel can give a host a boot clock of its own but no wall clock, and the machine's is everybody's.
"""

import os
import time

_file = os.environ.get("LAB_CLOCK", "")
_time, _time_ns = time.time, time.time_ns


def _offset_s() -> float:
    try:
        with open(_file) as text:  # noqa: PTH123 - as little as possible is loaded into other people's programs
            return float(text.read())
    except (OSError, ValueError):
        return 0.0


if _file:
    time.time = lambda: _time() + _offset_s()
    time.time_ns = lambda: _time_ns() + int(_offset_s() * 1e9)
