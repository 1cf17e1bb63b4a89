"""The numbers of workers: each has the lowest one from 0 that no other of its template has on this host.

They count by template, not by pool: the template holds the command that names a shard or a port by the number, so two
pools of one template never start the same command twice. A number is taken until the last process has ended that was
started with it.
"""

import re
from collections.abc import Iterable
from itertools import count

from headway.agent.workers.worker_record import OrphanRecord, Record, Unrecorded

_NUMBER = re.compile(r"[0-9]{1,6}")


def lowest_free(template: str, known: Iterable[Record | OrphanRecord], unrecorded: Iterable[Unrecorded]) -> int | None:
    """The lowest number that none of them has of this template.

    ``None`` if one of ``unrecorded`` may be of the template and has a number that nobody knows.
    """
    # Of an unrecorded process without a template it is unknown of which it is.
    possible = [each for each in unrecorded if each.template in {template, ""}]
    if any(each.may_have_any_number for each in possible):
        return None
    taken = {each.number for each in known if each.template == template} | {each.number for each in possible}
    return next(number for number in count() if number not in taken)


def number_in(text: str) -> int | None:
    """The number that a worker's environment has as ``text``; ``None`` where it is none."""
    return int(text) if _NUMBER.fullmatch(text) else None
