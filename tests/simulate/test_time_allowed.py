"""What README and quickstart say of the wait within the objective is what a rehearsal gives."""

import re
from pathlib import Path

import pytest

from headway.scaling.model import Objective
from headway.scaling.profile import Profile
from headway.simulate.studies.single_pool import Setting, rehearse
from headway.simulate.workloads.jobs import Jobs
from headway.simulate.workloads.synthetic import Cron, Synthetic

ROOT = Path(__file__).parents[2]


def median_wait_s(target_s: float) -> float:
    drawn = [*Synthetic(arrivals=Cron(jobs=50, every_s=300.0), service_s=0.2, tail="none").jobs()]
    at_s, service_s = zip(*drawn, strict=True)
    objective = Objective(target_s=target_s)
    profile = Profile(pool="jobs", queues=("rehearsed/jobs",), template="worker", objective=objective, workers_max=100)
    result = rehearse(Jobs(at_s=at_s, service_s=service_s), profile, Setting(start_up_s=2.0))
    assert result.attainment_percent > 97
    assert result.pickup_p50_s is not None
    return result.pickup_p50_s


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_the_median_wait_on_the_page_is_what_a_rehearsal_gives(page: str) -> None:
    words = " ".join((ROOT / page).read_text().split())
    (documented_s,) = re.findall(r"fifty jobs of 0\.2 s.*?median(?: job)? waits ([\d.]+) s", words)
    assert median_wait_s(10.0) == pytest.approx(float(documented_s), abs=0.5)


def test_a_lower_target_waits_less() -> None:
    assert median_wait_s(5.0) < median_wait_s(10.0) < median_wait_s(20.0)
