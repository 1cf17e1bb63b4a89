"""Long jobs before short ones: what that costs, by the forms of queueing theory, and the division that cures it."""

import pytest

from headway.errors import Invalid
from headway.scaling.planning.queueing import mean_wait_s, wait_exceeds_probability
from headway.simulate.studies.class_split import ClassLoad, best_split, class_load, exceeds_probability, mixed, shared


def load(name: str, *, rate: float, service_s: float, cv2: float = 1.0, target_s: float = 10.0) -> ClassLoad:
    return ClassLoad(name=name, jobs=100, rate_per_s=rate, service_s=service_s, service_cv2=cv2, target_s=target_s)


def test_a_mixture_of_two_constant_times_varies_as_its_moments_say() -> None:
    """Half takes 1 s and half 3 s: the mean is 2 s, the variance 1 s², a quarter of the mean's square."""
    of_both = mixed([load("a", rate=1.0, service_s=1.0, cv2=0.0), load("b", rate=1.0, service_s=3.0, cv2=0.0)])
    assert of_both == pytest.approx((4.0, 2.0, 0.25))


def test_a_single_exponential_class_waits_as_in_the_textbook() -> None:
    one = load("a", rate=2.0, service_s=1.0)
    found = shared([one], percentile=99.0)
    assert found.wait_s == pytest.approx(mean_wait_s(found.slots, 2.0, 1.0))
    assert exceeds_probability(4, 2.0, 1.0, 1.0, 0.5) == pytest.approx(wait_exceeds_probability(4, 2.0, 1.0, 0.5))
    assert best_split([one], percentile=99.0) is None


def test_short_jobs_wait_for_long_ones_and_no_longer_when_they_are_apart() -> None:
    short = load("thumbnail", rate=5.0, service_s=0.2, target_s=2.0)
    long = load("report", rate=0.05, service_s=120.0, target_s=600.0)
    split = best_split([short, long], percentile=99.0)
    assert split is not None
    assert split.quick.names == ("thumbnail",)
    assert split.slow.names == ("report",)
    assert split.head_of_line_s > 0.0
    assert split.quick.wait_s < split.together.wait_s
    assert split.slots < split.together.slots, "reports may wait, and no longer need what thumbnails are promised"


def test_like_classes_gain_nothing_by_being_apart() -> None:
    split = best_split([load("a", rate=1.0, service_s=1.0), load("b", rate=1.0, service_s=1.1)], percentile=99.0)
    assert split is not None
    assert split.slots >= split.together.slots


def test_classes_of_one_service_time_are_divided_by_their_promises() -> None:
    urgent = load("urgent", rate=0.5, service_s=5.0, target_s=1.0)
    late = load("late", rate=3.0, service_s=4.0, target_s=3600.0)
    split = best_split([urgent, late], percentile=99.0)
    assert split is not None
    assert {split.quick.names, split.slow.names} == {("urgent",), ("late",)}
    assert split.slots < split.together.slots


def test_a_class_is_measured_by_its_jobs() -> None:
    found = class_load("mail", [1.0, 3.0], length_s=10.0, target_s=10.0)
    assert (found.rate_per_s, found.service_s, found.service_cv2) == pytest.approx((0.2, 2.0, 0.25))
    assert found.offered_load == pytest.approx(0.4)
    with pytest.raises(Invalid, match="service_s=0"):
        class_load("none", [0.0], length_s=10.0, target_s=10.0)
