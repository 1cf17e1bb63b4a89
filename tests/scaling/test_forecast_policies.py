"""The policies of a forecast: of one strategy, and refused where a profile gives one to another."""

from contextlib import nullcontext
from itertools import product
from typing import Any

import pytest

from headway.errors import Invalid
from headway.scaling.model import Memory
from headway.scaling.profile import Forecast, profile_from_mapping
from headway.scaling.profile_keys.presets import PRESETS
from headway.strategies import refuse_unread_forecast
from support.installed import INSTALLED, decide
from support.pools import NOW_S, profile, queue, view

POLICIES = ("hint", "moderate", "aggressive")
BARE = {"queues": ["redis/mail"], "template": "mail"}


@pytest.mark.parametrize(
    ("values", "is_refused"),
    [
        *(({"forecast": policy}, True) for policy in POLICIES),
        *(({"forecast": policy, "strategy": "hybrid_v3"}, False) for policy in POLICIES),
        ({"forecast": "moderate", "strategy": "simple_rate"}, True),
        ({"forecast": "auto"}, False),
        ({"forecast": "off"}, False),
        ({}, False),
        *(({"preset": name}, False) for name in PRESETS),  # its own policy is no word of the profile
        ({"preset": "critical", "forecast": "hint"}, True),
    ],
)
def test_a_policy_that_the_strategy_takes_for_auto_is_refused(values: dict[str, Any], is_refused: bool) -> None:
    given = profile_from_mapping("mail", {**BARE, **values})
    said = (
        f"^profile 'mail': forecast={given.forecast} is a policy of .*; strategy '{given.strategy}' reads auto or off$"
    )
    with pytest.raises(Invalid, match=said) if is_refused else nullcontext():
        refuse_unread_forecast(given)


@pytest.mark.parametrize(("strategy", "policy"), [*product(sorted(INSTALLED), POLICIES)])
def test_it_does_mean_auto_to_every_strategy_but_one(strategy: str, policy: str) -> None:
    if strategy == "hybrid_v3":
        return
    seen = queue(waiting_jobs=7, arrived_jobs=9, arrived_until_s=NOW_S, arrival_rate_per_s=3.0, oldest_age_s=4.0)

    def target(forecast: str) -> int:
        asked = profile(strategy=strategy, forecast=Forecast(forecast))
        pool = view(seen, profile=asked, start_up_s=8.0, recalled_jobs=60.0)
        return decide(pool, Memory(), now_s=NOW_S)[0].target_workers

    assert target(policy) == target("auto")
