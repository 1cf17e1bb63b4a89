import os

from celery import Celery
from ledger import work

app = Celery("shop", broker=os.environ["BROKER_URL"])
app.conf.broker_connection_retry_on_startup = True


@app.task(name="work")
def job(job_id: str, seconds: float) -> None:
    work(job_id, seconds)
