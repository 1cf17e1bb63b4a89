"""Which telemetry the credential of a host may bring: events of jobs in the queues of its pools, and nothing else."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from headway.connections import AGENT
from headway.control.auth.authenticator import Caller
from headway.control.ingest.batch_validation import Admitted
from headway.errors import Forbidden, printable
from headway.scaling.model import TelemetryBatch
from headway.store.access.credentials import Role
from headway.store.engine import Engine, transaction
from headway.store.hosts.host_assignments import read_queues

HOST_QUEUES_KEPT_S = 30.0
HOST_QUEUES_REREAD_S = 2.0  # how soon a queue that was not among them is looked up again: its pool may be new there
HOSTS_KEPT_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Queues:
    names: frozenset[str]
    read_at_s: float


class HostEvents:
    """Keeps each host to the queues of the pools that it runs, or ran until a while ago."""

    def __init__(self, *, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._queues: dict[str, _Queues] = {}

    async def own(self, batch: TelemetryBatch, caller: Caller) -> Admitted:
        """``batch`` without what is of queues that are not the host's. Of any other caller, all of it.

        Raises:
            Forbidden: a host sends under another name, or sends more than events, or none of its own queues; a program
            sends under the name of an agent.
        """
        if caller.role is not Role.HOST:
            if caller.role is Role.INGEST and batch.producer.startswith(AGENT):
                raise Forbidden(f"producer {batch.producer!r}: names that begin with {AGENT!r} are of agents")
            return Admitted(batch=batch)
        own_name = f"{AGENT}{caller.host_id}"
        if batch.producer != own_name and not batch.producer.startswith(f"{own_name}-"):
            raise Forbidden(f"producer {batch.producer!r}: host {caller.name!r} sends as {own_name!r}")
        if batch.samples or batch.activities or batch.counts or batch.polls:
            raise Forbidden(f"host {caller.name!r} may send events of jobs, and no samples, activities or counts")
        named = {each.queue for each in batch.events}
        allowed = await self._allowed(caller.host_id, named | {each.queue for each in batch.receptions})
        batch = replace(batch, receptions=tuple(each for each in batch.receptions if each.queue in allowed))
        kept = tuple(each for each in batch.events if each.queue in allowed)
        refused_items = len(batch.events) - len(kept)
        if not refused_items:
            return Admitted(batch=batch)
        others = printable(", ".join(sorted(named - allowed)[:3]))
        why = f"host {caller.name!r} runs no pool of these queues: {others:.200}"
        if not kept and not batch.receptions:
            raise Forbidden(why)
        return Admitted(batch=replace(batch, events=kept), refused_items=refused_items, why=why)

    async def _allowed(self, host_id: str, named: set[str]) -> frozenset[str]:
        known, now_s = self._queues.get(host_id), self._clock()
        if known is not None:
            kept_s = HOST_QUEUES_KEPT_S if named <= known.names else HOST_QUEUES_REREAD_S
            if now_s - known.read_at_s < kept_s:
                return known.names
        async with transaction(self._engine) as connection:
            names = await read_queues(connection, host_id)
        if len(self._queues) >= HOSTS_KEPT_MAX:
            self._queues.clear()
        self._queues[host_id] = _Queues(names=names, read_at_s=now_s)
        return names
