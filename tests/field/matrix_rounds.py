"""The whole matrix in rounds: each round is one ``headway up`` with a pool per case of a batch."""

import random
from collections.abc import Collection

from field.cases import Case, whole_matrix
from field.field_run import Story

BATCH = 18  # pools of one installation


def batches() -> int:
    """Rounds of one pass through the matrix."""
    return -(-len(whole_matrix()) // BATCH)


def last_seed(done: Collection[int]) -> int:
    """The last round of the pass that is to be played: the first pass that has not ended."""
    rounds = batches()
    passes = 1
    while set(range(1, passes * rounds + 1)) <= set(done):
        passes += 1
    return passes * rounds


def batch_of(seed: int) -> list[Case]:
    """The cases of a round. Each pass has each case once, in an order of its own."""
    number, place = divmod(seed - 1, batches())
    cases = sorted(whole_matrix(), key=lambda case: case.name)
    random.Random(number).shuffle(cases)
    return cases[place * BATCH : (place + 1) * BATCH]


def story_of(rng: random.Random) -> Story:
    """A story with moments of its own: the jobs outlast all of them, and RabbitMQ's patience with a silent worker."""
    shrinks_at_s = rng.uniform(3.0, 12.0)
    return Story(
        floor=rng.choice((0, 1)),
        long_s=(rng.uniform(74.0, 85.0), rng.uniform(90.0, 110.0)),
        shrinks_at_s=shrinks_at_s,
        agent_killed_at_s=shrinks_at_s + rng.uniform(0.0, 25.0),
        short_jobs_at_s=rng.uniform(20.0, 50.0),
        control_killed_at_s=shrinks_at_s + rng.uniform(0.0, 40.0),
    )
