import pytest

from headway.errors import Invalid
from headway.simulate import Observation
from headway.simulate.studies.keda_rule import KedaRule, KedaSettings


def targets(rule: KedaRule, waiting: list[int]) -> list[int]:
    """What the rule wants at evaluations 15 s apart."""
    return [rule.step(Observation(at_s=15.0 * i, waiting=jobs)).target_workers for i, jobs in enumerate(waiting)]


def rule(*, jobs_per_worker: float = 10, cooldown_s: float = 0, workers_max: int = 8) -> KedaRule:
    settings = KedaSettings(jobs_per_worker=jobs_per_worker, cooldown_s=cooldown_s)
    return KedaRule(settings, workers_max=workers_max)


def test_a_worker_for_so_many_waiting_jobs_begun_ones_count_whole():
    assert targets(rule(), [0, 1, 10, 11, 25]) == [0, 1, 1, 2, 3]


def test_never_more_than_the_maximum():
    assert targets(rule(workers_max=8), [1000]) == [8]


def test_it_goes_down_only_when_fewer_were_enough_for_the_whole_cooldown():
    # 3 workers are wanted at 0 s; a cooldown of 45 s holds them at 15 and 30 s, at 45 s they may leave
    assert targets(rule(cooldown_s=45), [30, 0, 0, 0, 0]) == [3, 3, 3, 0, 0]


def test_it_goes_up_at_once_within_the_cooldown():
    assert targets(rule(cooldown_s=300), [10, 30, 0]) == [1, 3, 3]


def test_the_defaults_are_those_of_keda():
    assert (KedaSettings().jobs_per_worker, KedaSettings().cooldown_s) == (5, 300)


@pytest.mark.parametrize("values", [{"jobs_per_worker": 0}, {"jobs_per_worker": -1}, {"cooldown_s": -1}])
def test_settings_that_mean_nothing_are_refused(values):
    with pytest.raises(Invalid):
        KedaSettings(**values)
