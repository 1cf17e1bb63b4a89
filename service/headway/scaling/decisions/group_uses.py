"""What a decision says of the groups that its pool is in."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from headway.scaling.group import Group, smallest
from headway.scaling.model import GroupUse, Step

GROUP = "group"
"""The limit by which a group caps a pool as if the pool were alone in it."""
GROUP_SHARE = "group_share"
"""The step by which the pools of a group share its cap."""


def group_uses(groups: Sequence[Group], steps: Sequence[Step], *, slots_per_worker: int) -> tuple[GroupUse, ...]:
    """The groups of the pool, before their pools share the caps; the one is binding that lowered the count."""
    if not groups:
        return ()
    has_moved = any(after.name == GROUP and after.workers != before.workers for before, after in pairwise(steps))
    binding = {smallest(groups, slots_per_worker).name} if has_moved else set()
    return tuple(use_of(group, binding=binding) for group in groups)


def use_of(group: Group, *, taken_by_others: int | None = None, binding: Iterable[str] = ()) -> GroupUse:
    """What a decision says of ``group``, which is binding if its name is among ``binding``."""
    return GroupUse(
        name=group.name,
        cap=group.cap,
        is_in_slots=group.is_in_slots,
        taken_by_others=taken_by_others,
        is_binding=group.name in binding,
    )
