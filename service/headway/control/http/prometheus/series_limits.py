"""What one answer of `/metrics` has at most, in series and in characters of a label; names are others' to choose.

Whoever scrapes keeps each series, and refuses all of an answer in which one comes twice.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

from headway.control.http.schemas.responses import QueueOut
from headway.errors import printable

LABEL_CHARS_MAX = 256
DIGEST_CHARS = 8


class Left:
    """The series that there is still room for, and how many were left out."""

    def __init__(self, series_max: int) -> None:
        self._left = series_max
        self.omitted = 0

    def cut(self, families: Iterable[Metric]) -> Iterator[Metric]:
        """``families`` with as many of their samples as there is room for."""
        for family in self.shown(families):
            self.omitted += max(0, len(family.samples) - self._left)
            del family.samples[self._left :]
            self._left -= len(family.samples)
            yield family

    def whole(self, queues: Sequence[QueueOut], *, series_each: int) -> Sequence[QueueOut]:
        """The queues that there is room for whole: those of a pool first."""
        room = self._left // series_each
        self._left -= min(room, len(queues)) * series_each
        if len(queues) <= room:
            return queues
        self.omitted += (len(queues) - room) * series_each
        return sorted(queues, key=lambda queue: (queue.pool is None, queue.queue))[:room]

    def shown(self, families: Iterable[Metric]) -> Iterator[Metric]:
        """``families`` with labels that can be printed. Of several names that are shown alike, the first is left."""
        for family in families:
            samples = [_shown(sample) for sample in family.samples]
            if samples != family.samples:
                once = {(sample.name, *sorted(sample.labels.items())): sample for sample in reversed(samples)}
                self.omitted += len(samples) - len(once)
                family.samples[:] = reversed(once.values())
            yield family


def label(name: str) -> str:
    """``name`` as the value of a label: in one line, and no longer than ``LABEL_CHARS_MAX``."""
    text = printable(name)
    if len(text) <= LABEL_CHARS_MAX:
        return text
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:DIGEST_CHARS]
    return f"{text[: LABEL_CHARS_MAX - DIGEST_CHARS - 1]}…{digest}"


def _shown(sample: Sample) -> Sample:
    shown = {name: label(value) for name, value in sample.labels.items()}
    return sample if shown == sample.labels else sample._replace(labels=shown)
