"""Which of the starts that are due are made now. A host that starts everything at once has nothing ready for long.

The pools take turns. One that has nothing starting may always start one worker, so that a pool whose workers hang
while they start holds up no other. Workers that do not report readiness are not counted, unless the owner gave a
number: nobody knows how long they take, and none of them fails for being slow.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from headway.agent.config.host_file import HostFile
from headway.scaling.model import Worker, WorkerState
from headway.scaling.reconcile import Action, Drain, Start

STARTING_PER_CORE = 4
STARTING_LEAST = 8


def starting_max(given: int | None, *, cpu_cores: float) -> int:
    """How many workers may be starting at once: the owner's number, else as many as suits the cores."""
    return given or max(STARTING_LEAST, int(STARTING_PER_CORE * cpu_cores))


def uncounted(host_file: HostFile) -> frozenset[str]:
    """The templates of which any number may be starting."""
    if host_file.starting_max is not None:
        return frozenset()
    return frozenset(name for name, template in host_file.templates.items() if template.ready.pattern is None)


def admitted(
    actions: Iterable[Action],
    workers: Iterable[Worker],
    *,
    starting_max: int,
    free_gpus: int,
    gpus_of: Mapping[str, int],
    uncounted: Collection[str] = frozenset(),
) -> tuple[Action, ...]:
    """Every drain, and the starts that there is room for now.

    Args:
        actions: what is due.
        workers: every worker of the host.
        starting_max: how many workers may be starting at once.
        free_gpus: GPUs that no worker has.
        gpus_of: template -> GPUs that one worker of it needs; those that need none may be left out.
        uncounted: templates of which any number may be starting.
    """
    drains: list[Action] = []
    waiting: dict[str, list[Start]] = {}
    for action in actions:
        if isinstance(action, Drain):
            drains.append(action)
        else:
            waiting.setdefault(action.pool, []).append(action)
    starting = dict.fromkeys(waiting, 0)
    for worker in workers:
        if worker.state is WorkerState.STARTING and worker.template not in uncounted:
            starting[worker.pool] = starting.get(worker.pool, 0) + 1
    room = _Room(starting=starting, starting_max=starting_max, free_gpus=free_gpus)
    return (*drains, *_in_turns(waiting, room, gpus_of, uncounted))


@dataclass(slots=True)
class _Room:
    """What is left for starts."""

    starting: dict[str, int]
    """Pool -> workers that are starting and count."""
    starting_max: int
    free_gpus: int

    def lets_in(self, start: Start, *, gpus: int, is_counted: bool) -> bool:
        """Whether there is room for ``start``, which is taken then."""
        is_full = sum(self.starting.values()) >= self.starting_max and self.starting[start.pool] > 0
        if gpus > self.free_gpus or (is_counted and is_full):
            return False
        self.free_gpus -= gpus
        self.starting[start.pool] += is_counted
        return True


def _in_turns(
    waiting: Mapping[str, Sequence[Start]], room: _Room, gpus_of: Mapping[str, int], uncounted: Collection[str]
) -> list[Start]:
    """The first of the pool that has the fewest starting, again and again."""
    left = {pool: deque(starts) for pool, starts in waiting.items()}
    chosen: list[Start] = []
    while left:
        pool = min(left, key=lambda each: (room.starting[each], each))
        start = left[pool].popleft()
        if room.lets_in(start, gpus=gpus_of.get(start.template, 0), is_counted=start.template not in uncounted):
            chosen.append(start)
        else:
            left[pool].clear()
        if not left[pool]:
            del left[pool]
    return chosen
