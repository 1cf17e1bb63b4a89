"""A pool of one queue, and what the API gives of it."""

from typing import Any

import httpx

from control.http.conftest import NOW_S
from headway.scaling.model import Decision, Objective
from headway.scaling.profile import Profile
from support.seed import Seed


def mail(seed: Seed, *, at_s: float = NOW_S - 7, **bucket: Any) -> None:
    """A pool of one queue that is read, measured, and served by one worker of one host."""
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq", objective=Objective(target_s=10)))
    seed.bucket("redis/mail", at_s=at_s, **{"pickups_s": [0.5] * 20, "arrived_jobs": 20, "finished_jobs": 20, **bucket})
    seed.sample("redis/mail", at_s=NOW_S - 1, waiting_jobs=0, oldest_age_s=0.0)
    seed.leader()
    seed.host("a")
    seed.worker("a", "mail", 1)
    decision = Decision(pool="mail", at_s=NOW_S, target_workers=1, binding="steady_state", running_workers=1)
    seed.decision(decision)


async def pool_of(client: httpx.AsyncClient) -> dict[str, Any]:
    answer = (await client.get("/v1/pools?pool=mail")).json()
    (pool,) = answer["pools"]
    return {**pool, "health": answer["health"]}
