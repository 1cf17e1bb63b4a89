"""What runs and what waits, read from the machine and the broker, not from Headway."""

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

import psutil
import redis

SAMPLE_S = 0.5


class Samples:
    """Samples the agent's workers and the queues of a broker in a thread of its own."""

    def __init__(self, agent_pid: int, broker_url: str, templates: Mapping[str, Sequence[str]]) -> None:
        """``templates``: template -> the queues at the end of its command line."""
        self._agent = psutil.Process(agent_pid)
        self._broker = redis.Redis.from_url(broker_url)
        self._templates = {tuple(queues): name for name, queues in templates.items()}
        self._queues = sorted({queue for queues in templates.values() for queue in queues})
        self._template_of: dict[int, str | None] = {}
        self._unserved_since_s: dict[str, float] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="samples", daemon=True)
        self.counts: list[Counter[str]] = []
        """Workers by template, one per sample."""
        self.worker_s: Counter[str] = Counter()
        """Seconds of workers by template."""
        self.unserved_s: Counter[str] = Counter()
        """Queue -> the longest time for which its jobs waited and no worker listened."""

    def start(self) -> None:
        """Begin to sample."""
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        self._closing.set()
        self._thread.join()
        self._broker.close()

    def _run(self) -> None:
        before_s = time.monotonic()
        while not self._closing.wait(SAMPLE_S):
            now_s = time.monotonic()
            counts = self._workers()
            self.counts.append(counts)
            for template, workers in counts.items():
                self.worker_s[template] += workers * (now_s - before_s)
            self._poll_queues(now_s)
            before_s = now_s

    def _workers(self) -> Counter[str]:
        with suppress(psutil.Error):
            children = [child for child in self._agent.children() if _is_alive(child)]
            found = [self._template(child) for child in children]
            return Counter(name for name in found if name is not None)
        return Counter()

    def _template(self, process: psutil.Process) -> str | None:
        if self._template_of.get(process.pid) is None:  # between fork and exec, a process has the agent's own words
            with suppress(psutil.Error):
                words = process.cmdline()
                self._template_of[process.pid] = next(
                    (
                        name
                        for queues, name in self._templates.items()
                        if tuple(words[-len(queues) :]) == queues
                        and not any(word in self._queues for word in words[: -len(queues)])
                    ),
                    None,
                )
        return self._template_of.get(process.pid)

    def _poll_queues(self, now_s: float) -> None:
        with self._broker.pipeline(transaction=False) as pipe:
            for queue in self._queues:
                pipe.llen(f"rq:queue:{queue}").scard(f"rq:workers:{queue}")
            found = pipe.execute()
        for queue, waiting, listening in zip(self._queues, found[::2], found[1::2], strict=True):
            if not waiting or listening:
                self._unserved_since_s.pop(queue, None)
                continue
            since_s = self._unserved_since_s.setdefault(queue, now_s)
            self.unserved_s[queue] = max(self.unserved_s[queue], now_s - since_s)


def _is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.status() != psutil.STATUS_ZOMBIE
    return False
