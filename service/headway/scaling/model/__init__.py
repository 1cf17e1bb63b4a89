"""The values that deciding is about. Units end the names; ``None`` means "not known" and is never zero.

A value that exists is valid: ``__post_init__`` refuses nonsense. Times called ``at_s`` are Unix seconds.
"""

from headway.scaling.model.decision import (
    DayBudget,
    Decision,
    Demand,
    Mode,
    Step,
)
from headway.scaling.model.hosts import (
    Assignment,
    Exit,
    Hint,
    Host,
    HostCapacity,
    HostProblem,
    HostProblemKind,
    HostState,
    StartUp,
    Template,
    Worker,
    WorkerState,
)
from headway.scaling.model.memory import (
    MEMORY_VERSION,
    DayPaid,
    HoldCosts,
    LastMove,
    MeasuredService,
    Memory,
    PoolDepths,
    QueueDepths,
    Sighting,
    Wanted,
)
from headway.scaling.model.queue_metrics import (
    Arrivals,
    FailureLimit,
    Objective,
    QueueMetrics,
)
from headway.scaling.model.telemetry import (
    EventKind,
    JobEvent,
    QueueCounts,
    QueueSample,
    Receipt,
    TelemetryBatch,
    WorkerActivity,
)

__all__ = [
    "MEMORY_VERSION",
    "Arrivals",
    "Assignment",
    "DayBudget",
    "DayPaid",
    "Decision",
    "Demand",
    "EventKind",
    "Exit",
    "FailureLimit",
    "Hint",
    "HoldCosts",
    "Host",
    "HostCapacity",
    "HostProblem",
    "HostProblemKind",
    "HostState",
    "JobEvent",
    "LastMove",
    "MeasuredService",
    "Memory",
    "Mode",
    "Objective",
    "PoolDepths",
    "QueueCounts",
    "QueueDepths",
    "QueueMetrics",
    "QueueSample",
    "Receipt",
    "Sighting",
    "StartUp",
    "Step",
    "TelemetryBatch",
    "Template",
    "Wanted",
    "Worker",
    "WorkerActivity",
    "WorkerState",
]
