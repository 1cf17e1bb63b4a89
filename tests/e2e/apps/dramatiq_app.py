import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from ledger import work

dramatiq.set_broker(RedisBroker(url=os.environ["BROKER_URL"]))


@dramatiq.actor(actor_name="work", queue_name="mail", max_retries=0)
def job(job_id: str, seconds: float) -> None:
    work(job_id, seconds)
