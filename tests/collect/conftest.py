import pytest

from collect import rq_jobs
from collect.rq_jobs import Rq, Watch


@pytest.fixture
def rq(valkey_url: str) -> Rq:
    return Rq(valkey_url)


@pytest.fixture(params=[False, True], ids=["one process", "a restart before each look"])
def watch(request: pytest.FixtureRequest, valkey_url: str) -> Watch:
    """A collector that has polled an empty broker once."""
    watch = Watch(valkey_url, always_restarts=request.param)
    watch.poll_once()
    return watch


@pytest.fixture(autouse=True)
def _nothing_while_running():
    yield
    rq_jobs.while_running.clear()
