"""What becomes of a profile's patterns: what they match, which queues no worker serves, and why, a sentence each."""

from collections.abc import Iterator, Mapping, Sequence

from headway.scaling.explanations.phrases import counted
from headway.scaling.profile_keys.pattern_resolution import MATCHED_QUEUES_MAX, WrittenQueues
from headway.scaling.profile_keys.queue_patterns import is_match

QUEUES_NAMED_MAX = 3


def pattern_notes(
    written: WrittenQueues,
    queues: Sequence[str],
    *,
    unserved: Sequence[str] = (),
    template: str,
    allowed: Mapping[str, Sequence[str]],
    pools_max: int | None = None,
) -> Iterator[str]:
    """The sentences; none for a profile that names all its queues.

    Args:
        written: the queues as the profile writes them.
        queues: those that the pool owns, by name, or those of the pools that are made of it.
        unserved: those that its patterns match beyond as many as a pool takes, or as many pools as are made of it.
        template: what starts its workers.
        allowed: host that has the template -> its ``queues_allowed`` there.
        pools_max: so many pools are made of it at most; ``None``: none are.
    """
    for queue in sorted(written.literal):
        yield (
            f"{queue!r} is the name of one queue, as an earlier version stored it: apply the profile to make it a "
            "pattern"
        )
    if not written.has_patterns:
        return
    if not queues:
        patterns = ", ".join(repr(each) for each in written.queues if written.is_pattern(each))
        ends = "the pool has no workers and no decision" if pools_max is None else "no pool is made of it"
        yield f"no queue that was seen matches {patterns}: until one does, {ends}"
    if pools_max is not None and queues:
        pools = counted(len(queues), "pool")
        yield f"{pools} made of it, one for each queue that no pool names; at most {pools_max:,} are"
    if unserved and pools_max is not None:
        yield (
            f"no pool is made for {counted(len(unserved), 'queue')} beyond, and no worker serves {named(unserved)}: "
            "raise pools_max, or name them in a pool"
        )
    elif unserved:
        yield (
            f"{counted(len(unserved), 'queue')} beyond the {MATCHED_QUEUES_MAX:,} that a pool takes, and no worker "
            f"serves {named(unserved)}: write a narrower pattern into another pool"
        )
    unfilled = sorted(host for host, patterns in allowed.items() if not patterns)
    if unfilled:
        yield (
            f"template {template!r} on {named(unfilled)} takes no names of queues: its workers serve those that their "
            "own command line names; write $(HEADWAY_QUEUES) and queues_allowed into its host.toml, with an agent of "
            "this version"
        )
    if filled := [patterns for patterns in allowed.values() if patterns]:
        refused = [each for each in queues if not any(_is_taken(each, patterns) for patterns in filled)]
        if refused and not unfilled:
            yield (
                f"no host serves {named(refused)}: queues_allowed of template {template!r} does not match "
                f"{'it' if len(refused) == 1 else 'them'}"
            )


def named(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - QUEUES_NAMED_MAX
    return ", ".join(names[:QUEUES_NAMED_MAX]) + (f" and {more:,} more" if more > 0 else "")


def _is_taken(queue: str, patterns: Sequence[str]) -> bool:
    name = queue.partition("/")[2]
    return any(is_match(pattern, name) for pattern in patterns)
