import os

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from job_log import work

dramatiq.set_broker(RabbitmqBroker(url=os.environ["BROKER_URL"]))
for queue in os.environ["QUEUES"].split(","):
    # One actor per queue; a worker declares the queues of its actors.
    dramatiq.actor(work, actor_name=f"work-{queue}", queue_name=queue, max_retries=0, time_limit=3_600_000)
