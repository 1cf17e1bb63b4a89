"""What may never be, be it for a moment: checked all the time while faults are injected into a lab."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from headway.scaling.model import WorkerState
from lab.hosts import Host, Recorded

POLL_S = 0.1
ENDED = frozenset({WorkerState.GONE, WorkerState.BACKING_OFF})


class Watch:
    """Polls hosts from a thread of its own while a block lasts. What it saw is in ``breaches``."""

    def __init__(self, hosts: Sequence[Host], *, exclusive: str) -> None:
        self.breaches: list[str] = []
        self._hosts = hosts
        self._exclusive = exclusive
        self._epochs: dict[str, int] = {}

    @contextmanager
    def polling(self) -> Iterator[None]:
        """Poll until the block ends."""
        is_over = threading.Event()

        def run() -> None:
            while not is_over.wait(POLL_S):
                try:
                    self.poll()
                except Exception as error:  # noqa: BLE001 - a watch that has ended in silence sees nothing
                    self._note(f"the watch failed: {error!r}")

        thread = threading.Thread(target=run, name="watch")
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def poll(self) -> None:
        """Poll once."""
        recorded = [(host, each) for host in self._hosts for each in host.recorded() if each.pool == self._exclusive]
        # Only now, so that what ended while the files were read does not count beside what began.
        there = [f"{host.name} pid {each.pid}" for host, each in recorded if is_there(each)]
        if len(there) > 1:
            self._note(f"pool {self._exclusive} ran more than once: {', '.join(there)}")
        for host in self._hosts:
            epoch = host.epoch
            before = self._epochs.get(host.name, 0)
            if epoch < before:
                self._note(f"{host.name} obeyed epoch {epoch} after {before}")
            self._epochs[host.name] = epoch

    def _note(self, breach: str) -> None:
        if breach not in self.breaches:
            self.breaches.append(breach)


def is_there(worker: Recorded) -> bool:
    """Whether the process that was recorded runs, and not another one under its number."""
    if worker.state in ENDED or not worker.pid:
        return False
    try:
        return worker.worker_id.encode() in Path("/proc", str(worker.pid), "environ").read_bytes()
    except OSError:
        return False
