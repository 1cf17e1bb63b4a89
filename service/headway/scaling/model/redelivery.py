"""What becomes of a job whose worker died without a word."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Redelivery(StrEnum):
    """By what a job that its dead worker had taken is run again or fails. Until then it stays taken.

    ``None`` in its place: its broker gives it back as soon as the worker is gone, or that is not known.
    """

    VISIBILITY_TIMEOUT = "visibility_timeout"
    """The library puts it back when its visibility timeout has passed, as Celery does on Redis."""
    CLEAN_UP = "clean_up"
    """A clean-up of the library fails it, or queues it again, as RQ's does."""

    @property
    def text(self) -> str:
        """What becomes of such jobs, without its full stop; for people."""
        return _BECOMES[self]


_BECOMES: Mapping[Redelivery, str] = MappingProxyType(
    {
        Redelivery.VISIBILITY_TIMEOUT: "the broker gives them back after its visibility timeout (3600 s by default)",
        Redelivery.CLEAN_UP: "the library's next clean-up fails or retries them (every 10 min while a worker runs)",
    }
)
