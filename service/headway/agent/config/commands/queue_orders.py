"""In what order the worker that a command line starts takes from its queues, as far as the command line says it. Pure.

Each rule is measured with the library's workers by ``benchmarks/queue_order.py``, or read in its source.
"""

from collections.abc import Sequence
from itertools import pairwise

from headway.agent.config.commands.worker_commands import WorkerCommand, understood
from headway.agent.config.worker_programs import library_of, program_of
from headway.scaling.model import STRICT_NAME_CHARS_MAX, STRICT_QUEUES_MAX, QueueOrder

Taking = tuple[QueueOrder | None, tuple[str, ...]]
"""The order, and of a strict one the queues from the first to the last. ``None``: not known."""

UNKNOWN: Taking = (None, ())
_RQ_STRATEGIES = {"default": QueueOrder.STRICT, "round_robin": QueueOrder.IN_TURN, "random": QueueOrder.RANDOM}
_RQ_CLASSES = {"RoundRobinWorker": QueueOrder.IN_TURN, "RandomWorker": QueueOrder.RANDOM}
_RQ_PACKAGES = ("rq.", "headway.")


def queue_order_of(argv: Sequence[str]) -> Taking:
    """The order in which the worker of ``argv`` takes from its queues.

    Celery's is a setting of its application, which the reporter of a worker knows. Dramatiq's is that of its prefetched
    jobs and of actors' priorities: nobody knows it from outside.
    """
    command = understood(argv)
    if command is not None and command.library == "rq":
        return _rq(command)
    if command is not None and command.library == "procrastinate":
        return QueueOrder.BY_ARRIVAL, ()
    program, words = program_of(argv)
    library = library_of(program)
    if library == "sidekiq" or (library == "bundle" and "sidekiq" in words):
        return _sidekiq(words)
    if library == "php" and "queue:work" in words:
        return _strict([name for value in _values(words, "--queue") for name in value.split(",")])
    return UNKNOWN


def queues_named(argv: Sequence[str]) -> tuple[str, ...]:
    """The queues that the command line ``argv`` of a worker names; none if it names none, or is not understood."""
    command = understood(argv)
    return queue_order_of(argv)[1] if command is None else command.queues


def _rq(command: WorkerCommand) -> Taking:
    name = command.worker_class or "rq.Worker"
    if not name.startswith(_RQ_PACKAGES):
        return UNKNOWN  # a class of the application may take jobs as it likes
    order = _RQ_CLASSES.get(name.rpartition(".")[2], _RQ_STRATEGIES.get(command.dequeue_strategy))
    return _strict(command.queues) if order is QueueOrder.STRICT else (order, ())


def _sidekiq(words: Sequence[str]) -> Taking:
    """Strict if no queue has a weight. The chances of queues with weights differ, and a file may name more queues."""
    queues = [*_values(words, "--queue"), *_values(words, "-q")]
    is_whole = not _values(words, "--config") and not _values(words, "-C")
    return _strict(queues) if is_whole and not any("," in queue for queue in queues) else UNKNOWN


def _strict(queues: Sequence[str]) -> Taking:
    """Strict, where each queue has a name that can be reported: a control plane refuses all of a report for another."""
    is_short = len(queues) <= STRICT_QUEUES_MAX and all(0 < len(queue) <= STRICT_NAME_CHARS_MAX for queue in queues)
    return (QueueOrder.STRICT, tuple(queues)) if queues and is_short else UNKNOWN


def _values(words: Sequence[str], option: str) -> list[str]:
    """What follows ``option`` each time, as the next word or behind ``=``."""
    found = [value for word in words if (value := word.removeprefix(f"{option}=")) != word]
    return found + [value for word, value in pairwise(words) if word == option]
