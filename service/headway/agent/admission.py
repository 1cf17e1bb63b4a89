"""Which of the starts that are due are made now. A host that starts everything at once has nothing ready for long.

The pools take turns. One that has nothing starting may always start one worker, so that a pool whose workers hang
while they start holds up no other.
"""

from collections.abc import Iterable, Mapping, Sequence

from headway.scaling.model import Worker, WorkerState
from headway.scaling.reconcile import Action, Drain, Start

STARTING_PER_CORE = 4
STARTING_LEAST = 8


def starting_max(given: int | None, *, cpu_cores: float) -> int:
    """How many workers may be starting at once: what the owner says, else as many as suits the cores."""
    return given or max(STARTING_LEAST, int(STARTING_PER_CORE * cpu_cores))


def admitted(
    actions: Iterable[Action],
    workers: Iterable[Worker],
    *,
    starting_max: int,
    free_gpus: int,
    gpus_of: Mapping[str, int],
) -> tuple[Action, ...]:
    """Every drain, and the starts that there is room for now.

    Args:
        actions: what is due.
        workers: every worker of the host.
        starting_max: how many workers may be starting at once.
        free_gpus: GPUs that no worker has.
        gpus_of: template -> GPUs that one worker of it needs; those that need none may be left out.
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
        if worker.state is WorkerState.STARTING:
            starting[worker.pool] = starting.get(worker.pool, 0) + 1
    return (*drains, *_in_turns(waiting, starting, starting_max, free_gpus, gpus_of))


def _in_turns(
    waiting: Mapping[str, Sequence[Start]],
    starting: dict[str, int],
    starting_max: int,
    free_gpus: int,
    gpus_of: Mapping[str, int],
) -> list[Start]:
    """The first of the pool that has the fewest starting, again and again. Changes ``starting``."""
    left = {pool: list(starts) for pool, starts in waiting.items()}
    chosen: list[Start] = []
    while left:
        pool = min(left, key=lambda each: (starting[each], each))
        start = left[pool].pop(0)
        is_full = sum(starting.values()) >= starting_max and starting[pool] > 0
        needed = gpus_of.get(start.template, 0)
        if is_full or needed > free_gpus:
            del left[pool]
            continue
        chosen.append(start)
        starting[pool] += 1
        free_gpus -= needed
        if not left[pool]:
            del left[pool]
    return chosen
