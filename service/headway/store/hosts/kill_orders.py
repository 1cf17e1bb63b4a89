"""Workers that people want to be killed. An order goes with its worker: once its host reports it as gone."""

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import Conflict, NotFound
from headway.scaling.model import WorkerState
from headway.store.audit import record_act
from headway.store.tables import hosts, kill_orders, workers


async def order_kill(conn: AsyncConnection, worker_id: str, *, reason: str | None, actor: str) -> str:
    """Have the agent of a worker kill it, with its jobs, as soon as it polls. The same again changes nothing.

    Returns the id of its host, whose poll is to be ended for it.

    Raises:
        NotFound: no host has reported such a worker, or it is gone.
        Conflict: its agent has no record of the process, and kills none but its own; or it has none.
    """
    of_worker = select(workers, hosts.c.name).join(hosts).where(workers.c.worker_id == worker_id)
    row = (await conn.execute(of_worker)).one_or_none()
    if row is None:
        raise NotFound(f"no worker {worker_id!r}: `headway get workers` lists them")
    if row.state == WorkerState.UNKNOWN.value:
        raise Conflict(
            f"worker {worker_id!r}: the agent of host {row.name!r} has no record of process {row.pid} and kills none "
            "but its own workers: see on that host what it is"
        )
    if row.state == WorkerState.BACKING_OFF.value:
        raise Conflict(f"worker {worker_id!r} has no process: it waits before it is started again")
    order = {"worker_id": worker_id, "host_id": row.host_id, "requested_by": actor}
    new = await conn.execute(
        upsert(kill_orders).values(order).on_conflict_do_nothing().returning(kill_orders.c.worker_id)
    )
    if new.first() is not None:
        after = {"worker": worker_id, "host": row.name, **({} if reason is None else {"reason": reason})}
        await record_act(conn, actor=actor, action="worker killed", subject=f"profile {row.pool}", after=after)
    return str(row.host_id)
