"""An application with one Celery task, which does nothing, in the queue ``tasks``."""

import os

from celery import Celery

app = Celery("shop", broker=os.environ["BROKER_URL"])
app.conf.update(task_default_queue="tasks", broker_connection_retry_on_startup=True, worker_hijack_root_logger=False)


@app.task(name="work")
def work() -> None:
    """Ends at once."""
