"""The queues that stand in the command lines of workers, and which workers have an older list. Pure but for its log."""

import logging
from collections.abc import Iterable, Mapping, Sequence

from headway.agent.config.commands.queue_arguments import allowed_queues
from headway.agent.config.templates import Template
from headway.agent.workers.worker_record import Record, queues_hash
from headway.scaling.model import WorkerState

REFUSED_NAMED_MAX = 5  # in the log

log = logging.getLogger(__name__)


class QueueLists:
    """What workers of each pool and template are started with, by the assignment and the host file in force."""

    def __init__(self) -> None:
        self._queues: Mapping[str, Sequence[str]] = {}
        self._names: dict[tuple[str, str], tuple[Template, tuple[str, ...], str]] = {}
        """By pool and template: the template that they were made for, the names, and their hash."""
        self._refused: dict[tuple[str, str], tuple[str, ...]] = {}

    def take(self, queues: Mapping[str, Sequence[str]]) -> bool:
        """Go by these queues of each pool from now on. Returns whether they are others."""
        if queues == self._queues:
            return False
        self._queues = queues
        self._names.clear()
        return True

    def names(self, pool: str, template: Template | None) -> tuple[str, ...]:
        """The names that a worker of ``template`` is started with; none if it has no place for them."""
        return self._of(pool, template)[0] if template is not None and template.fills_queues else ()

    def outdated(self, records: Iterable[Record], templates: Mapping[str, Template]) -> frozenset[str]:
        """The ids of workers that are to be replaced because queues have come, gone or changed places.

        While queues keep coming, each start has a longer list than the last. Workers that have not run yet stay, and
        those with the newest list that runs stay until the older ones are gone: the newest queues have a worker.
        """
        found: dict[tuple[str, str], list[Record]] = {}
        has_newest = set()
        for record in records:
            template = templates.get(record.template)
            if template is None or not template.fills_queues or record.life.state is not WorkerState.RUNNING:
                continue
            names, wanted = self._of(record.pool, template)
            if not names:
                continue  # none could take its place
            if record.queues_hash == wanted:
                has_newest.add(record.kind)
            else:
                found.setdefault(record.kind, []).append(record)
        return frozenset(
            each.worker_id
            for kind, outdated in found.items()
            for each in (outdated if kind in has_newest else _older(outdated))
        )

    def _of(self, pool: str, template: Template) -> tuple[tuple[str, ...], str]:
        known = self._names.get((pool, template.name))
        if known is not None and known[0] is template:
            return known[1:]
        queues = self._queues.get(pool, ())
        names = allowed_queues(queues, template.queues_allowed)
        self._names[pool, template.name] = template, names, queues_hash(names)
        taken = frozenset(names)
        self._log_refused(pool, template, [each for each in queues if each.partition("/")[2] not in taken])
        return self._names[pool, template.name][1:]

    def _log_refused(self, pool: str, template: Template, refused: Sequence[str]) -> None:
        """Log on change which queues the template does not take."""
        if (now := tuple(refused)) == self._refused.get((pool, template.name), ()):
            return
        self._refused[pool, template.name] = now
        named = ", ".join(map(repr, refused[:REFUSED_NAMED_MAX])) or "none"
        log.warning(
            "queues not served here pool=%s template=%s: %d, by its queues_allowed: %s",
            pool,
            template.name,
            len(now),
            named,
        )


def _older(outdated: Sequence[Record]) -> Sequence[Record]:
    """Those that have another list than the worker that was started last; all of them if they have one list."""
    newest = max(outdated, key=lambda each: each.life.started_at_s).queues_hash
    return [each for each in outdated if each.queues_hash != newest] or outdated
