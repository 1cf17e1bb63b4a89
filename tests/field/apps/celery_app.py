import os

from celery import Celery, signals
from job_log import note, work

app = Celery("shop")  # its broker is CELERY_BROKER_URL
app.conf.update(broker_connection_retry_on_startup=True, task_acks_late=os.environ["ACKS"] == "late")


@app.task(name="work")
def job(job_id: str, seconds: float) -> None:
    work(job_id, seconds)


@signals.worker_ready.connect
def _ready(**_: object) -> None:
    note("ready")


@signals.worker_shutting_down.connect
def _asked(**_: object) -> None:
    note("asked")
