"""Each library at work with real workers under moves by chance: what is reported is what was, each life once.

One story a library serves both tests; here two libraries play, and `make proof-queues` plays twenty of each, five times
as long.
"""

from collections.abc import Iterator

import pytest

from headway.store.embedded import Server
from support.queues.lives import CLOSE_S, quantile
from support.queues.rows import ROWS, played
from support.queues.scene import Scene

pytestmark = pytest.mark.timeout(600)

SEED = 1
MOVES = 60
IN_CI = ("celery-redis", "rq-2")
GRACE_S = 5.0  # other tests keep the machine busy; `make proof-queues` has a narrower one
COMPARED_MIN = 10


@pytest.fixture(
    scope="module",
    params=[pytest.param(row, marks=pytest.mark.e2e if row in IN_CI else pytest.mark.proof) for row in ROWS],
)
def scene(
    request: pytest.FixtureRequest, valkey_server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """A library at the end of a story."""
    row, folder = request.param, tmp_path_factory.mktemp(request.param)
    url = valkey_server.url
    with played(row, url, folder, SEED, moves=MOVES, grace_s=GRACE_S, slack_s=GRACE_S) as scene:
        yield scene


def test_ledger_has_each_life_once_at_its_time(scene: Scene) -> None:
    verdict = scene.verdict()
    assert verdict.differences == []
    assert len(verdict.off_s) > MOVES
    assert quantile(verdict.off_s, 0.5) <= CLOSE_S  # the job's own moments; of all of them the proof says how many


def test_own_answer_of_the_library_is_what_is_sampled(scene: Scene) -> None:
    own = scene.own
    assert own.differences == []
    assert own.compared > COMPARED_MIN  # how wide ages are, `make proof-queues` says: polls are far apart here
