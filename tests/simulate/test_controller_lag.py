from headway.simulate.controller import Controller, Observation
from support.pools import NOW_S


def test_jobs_are_as_old_as_they_are_when_it_is_decided() -> None:
    """Five jobs of the last 4 s, 15 s to start them in: 9.5 s are left, and 6.5 s when that is reported 3 s later.

    A worker asked for at the next evaluation would be up in 5 + 2 s.
    """
    seen = Observation(at_s=NOW_S, waiting=5, oldest_age_s=4.0, arrived=5, workers=1, busy=1)
    in_time, late = (
        Controller(target_s=15.0, start_up_s=2.0).step(seen, now_s=NOW_S + lag_s).target_workers for lag_s in (0.0, 3.0)
    )
    assert in_time == 1
    assert late > 1
