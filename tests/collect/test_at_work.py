"""Each library at work with real workers under moves by chance: what is reported is what was, each life once.

One story a library serves both tests. `make proof-queues` plays twenty, five times as long.
"""

from collections.abc import Iterator

import pytest

from headway.store.embedded import Server
from support.queues.lives import CLOSE_S, quantile
from support.queues.rows import ROWS, played
from support.queues.scene import WIDTH_S, Scene

pytestmark = [pytest.mark.proof, pytest.mark.timeout(240)]

SEED = 1
MOVES = 60


@pytest.fixture(scope="module", params=ROWS)
def scene(
    request: pytest.FixtureRequest, valkey_server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """A library at the end of a story."""
    with played(request.param, valkey_server.url, tmp_path_factory.mktemp(request.param), SEED, moves=MOVES) as scene:
        yield scene


def test_ledger_has_each_life_once_at_its_time(scene: Scene) -> None:
    verdict = scene.verdict()
    assert verdict.differences == []
    assert len(verdict.off_s) > MOVES
    assert quantile(verdict.off_s, 0.5) <= CLOSE_S  # of all of them `make proof-queues` says how many


def test_own_answer_of_the_library_is_what_is_sampled(scene: Scene) -> None:
    own = scene.own
    assert own.differences == []
    assert own.compared > MOVES / 2
    assert quantile(own.widths_s, 0.5) <= WIDTH_S
