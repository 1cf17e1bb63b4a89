"""The strategies that come with Headway, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from headway.scaling.strategies.budget_aware import BUDGET_AWARE
from headway.scaling.strategies.fixed import FIXED
from headway.scaling.strategies.hybrid import HYBRID
from headway.scaling.strategies.jobs_per_worker import JOBS_PER_WORKER
from headway.scaling.strategies.peers.backlog_only import BACKLOG_ONLY
from headway.scaling.strategies.peers.conservative import CONSERVATIVE
from headway.scaling.strategies.peers.horizon import HORIZON_SIZE, HORIZON_TIME
from headway.scaling.strategies.peers.hybrid_v3 import HYBRID_V3
from headway.scaling.strategies.peers.predictive_v1 import PREDICTIVE_V1
from headway.scaling.strategies.peers.simple_rate import SIMPLE_RATE
from headway.scaling.strategies.time_of_day import TIME_OF_DAY
from headway.scaling.strategy import Strategy

BUILT_IN: Mapping[str, Strategy] = MappingProxyType(
    {
        strategy.name: strategy
        for strategy in (
            HYBRID,
            PREDICTIVE_V1,
            HYBRID_V3,
            SIMPLE_RATE,
            BACKLOG_ONLY,
            CONSERVATIVE,
            JOBS_PER_WORKER,
            HORIZON_TIME,
            HORIZON_SIZE,
            FIXED,
            TIME_OF_DAY,
            BUDGET_AWARE,
        )
    }
)
