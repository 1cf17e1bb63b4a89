"""How pools behave live, as the HTTP API gives it: what `headway simulate --behaviour` takes."""

from headway.control.http.schemas.schema_base import Given
from headway.scaling.metrics.behaviour import Behaviour
from headway.scaling.metrics.prediction_error import PredictionError


class SpreadOut(Given):
    """A duration that varies."""

    p50_s: float
    p95_s: float
    count: int
    """So many observations say so."""


class PredictionOut(Given):
    """How far the predictions of the last hour were off."""

    p50_s: float
    """Of the absolute error."""
    p95_s: float
    bias_s: float
    """The mean of predicted less observed: above 0, jobs waited less than predicted."""
    count: int
    """So many predictions were scored."""


class BehaviourOut(Given):
    """What the live loop has measured of a pool. What was not measured is null, never 0."""

    pool: str
    template: str
    start_up: SpreadOut | None
    """From the spawn of a worker to ready."""
    start_up_of_late_s: float | None
    """What evaluations take a start to be: the mean of all, in which the newest count most."""
    start_up_cpu_s: float | None
    """CPU seconds of a start."""
    start_up_alone: SpreadOut | None
    """The same as the start-up, less what the workers waited for a core."""
    exit: SpreadOut | None
    """From the request to stop to the end of the process, of workers without a job."""
    exit_cpu_s: float | None
    """CPU seconds of such an end."""
    exit_alone: SpreadOut | None
    """The same as the exit, less what the workers waited for a core."""
    dispatch_overhead_s: float | None
    """From the end of a job to the next start in the same slot while jobs wait."""
    sample_lag: SpreadOut | None
    """How old the newest sample of the queues is at an evaluation, while jobs wait."""
    worker_lag: SpreadOut | None
    """From the change of a worker's state to its report."""
    evaluation_delay: SpreadOut | None
    """How much later than its interval an evaluation begins."""
    apply_delay: SpreadOut | None
    """From the beginning of an evaluation to the spawns and the requests to stop that it makes."""
    wake_delay: SpreadOut | None
    """From the first job of a pool at zero to the evaluation that wakes it."""
    prediction: PredictionOut | None
    """Null while no prediction of the last hour could be scored."""

    @classmethod
    def of(cls, pool: str, template: str, behaviour: Behaviour, prediction: PredictionError | None) -> "BehaviourOut":
        """What is known, as it is given."""
        return cls.taken_from(behaviour, pool=pool, template=template, prediction=prediction)
