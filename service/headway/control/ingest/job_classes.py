"""How many job classes a queue is measured by: a program that makes up names must not fill the stream's state."""

from headway.scaling.arithmetic import HOUR_S
from headway.scaling.measure import bucket_start_s

CLASSES_MAX = 50  # a queue and hour; each is a row a minute
OTHER_CLASS = "(other)"


class JobClasses:
    """The classes that each queue has reported in this hour. Later ones beyond the bound share one name.

    Each ingest counts for itself, so that there may be as many names again behind each further one.
    """

    def __init__(self) -> None:
        self._hour_s = 0.0
        self._known: dict[str, set[str]] = {}

    def name(self, job_class: str | None, *, queue: str, received_at_s: float) -> str | None:
        """What ``job_class`` of ``queue`` is counted as."""
        if not job_class:
            return None
        hour_s = bucket_start_s(received_at_s, span_s=HOUR_S)
        if hour_s != self._hour_s:
            # What is no longer reported makes room; also where the clock was ahead for a while and is set back.
            self._hour_s = hour_s
            self._known.clear()
        known = self._known.setdefault(queue, set())
        if job_class in known:
            return job_class
        if len(known) >= CLASSES_MAX:
            return OTHER_CLASS
        known.add(job_class)
        return job_class
