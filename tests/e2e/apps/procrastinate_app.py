import os

from ledger import work
from procrastinate import App, PsycopgConnector

app = App(connector=PsycopgConnector(conninfo=os.environ["BROKER_URL"]))


@app.task(name="work", queue="mail")
def job(job_id: str, seconds: float) -> None:
    work(job_id, seconds)
