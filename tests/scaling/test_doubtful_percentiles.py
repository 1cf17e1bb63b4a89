import pytest

from headway.scaling.model import Objective
from headway.scaling.planning.doubtful_percentiles import doubtful_percentiles
from headway.scaling.profile import Profile


@pytest.mark.parametrize(
    ("percentile", "question"),
    [
        (0.5, "; did you mean 50?"),
        (0.999, "; did you mean 99.9?"),
        (0.01, ""),  # 1 % is no objective either
        (1.0, ""),  # 100 % is refused
        (49.9, ""),
    ],
)
def test_a_percentile_below_half_of_the_jobs_is_doubtful(percentile: float, question: str) -> None:
    profile = Profile(pool="mail", queues=("redis/a",), template="rq", objective=Objective(percentile=percentile))
    (sentence,) = doubtful_percentiles(profile)
    asked = f"the objective's percentile={percentile:g} asks {percentile:g} % of the jobs to start in time"
    assert sentence == f"pool 'mail': {asked}{question}"


def test_objectives_of_single_queues_count_too() -> None:
    members = {"redis/a": Objective(percentile=0.95), "redis/b": Objective(percentile=50.0)}
    profile = Profile(pool="mail", queues=("redis/a", "redis/b"), template="rq", member_objectives=members)
    asked = "the objective's percentile=0.95 asks 0.95 % of the jobs to start in time"
    assert doubtful_percentiles(profile) == (f"queue 'redis/a': {asked}; did you mean 95?",)
