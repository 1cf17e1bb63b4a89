"""Which of the starts that are due are made now. A host that starts everything at once has nothing ready for long.

The pools take turns. One that has nothing starting may always start one worker, so that a pool whose workers hang
while they start holds up no other. Workers that do not report readiness are not counted, unless the owner gave a
number: nobody knows how long they take, and none of them fails for being slow.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping

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
    waiting: dict[str, deque[Start]] = {}
    for action in actions:
        if isinstance(action, Drain):
            drains.append(action)
        else:
            waiting.setdefault(action.pool, deque()).append(action)
    starting = dict.fromkeys(waiting, 0)  # pool -> workers that are starting and count
    for worker in workers:
        if worker.state is WorkerState.STARTING and worker.template not in uncounted:
            starting[worker.pool] = starting.get(worker.pool, 0) + 1
    chosen: list[Action] = []
    while waiting:
        # The pool that has the fewest starting comes next, again and again.
        pool = min(waiting, key=lambda each: (starting[each], each))
        start = waiting[pool].popleft()
        gpus, is_counted = gpus_of.get(start.template, 0), start.template not in uncounted
        is_full = sum(starting.values()) >= starting_max and starting[pool] > 0
        if gpus > free_gpus or (is_counted and is_full):
            waiting[pool].clear()
        else:
            free_gpus -= gpus
            starting[pool] += is_counted
            chosen.append(start)
        if not waiting[pool]:
            del waiting[pool]
    return (*drains, *chosen)
