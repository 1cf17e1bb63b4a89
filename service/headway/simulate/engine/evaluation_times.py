"""When pools are evaluated: every tick, some moments after its time, and the sooner where one wakes from zero."""

from dataclasses import dataclass
from random import Random

from headway.scaling.metrics.behaviour import Behaviour
from headway.simulate.engine.draws import Draw, chance, drawn

EVALUATION_DRAWS = (
    4096  # evaluations until their delays repeat: how late one is must not depend on which others were passed over
)
WAKE_AGAIN_S = 1.0  # the pipeline writes once a second, and each time a pool that is still at zero is evaluated again


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluations:
    """The times of the evaluations, in seconds from the beginning."""

    tick_s: float
    phase_s: float
    delays_s: tuple[float, ...]
    """After its time; empty where every evaluation is on time."""
    apply_s: Draw | None
    """From an evaluation to what it changes."""
    wake_s: Draw | None
    """From a job that reaches a pool at zero to the evaluation that wakes it; ``None``: the next tick does."""

    @classmethod
    def of(cls, behaviour: Behaviour, *, tick_s: float, phase_s: float, seed: int) -> "Evaluations":
        """Those of a control plane that behaves as was measured."""
        delay_s = drawn(behaviour.evaluation_delay, chance(seed, "evaluation"))
        wake_s = drawn(behaviour.wake_delay, chance(seed, "wake"))
        return cls(
            tick_s=tick_s,
            phase_s=phase_s,
            delays_s=() if delay_s is None else tuple(min(tick_s / 2, delay_s()) for _ in range(EVALUATION_DRAWS)),
            apply_s=drawn(behaviour.apply_delay, chance(seed, "apply")),
            wake_s=None if behaviour.wake_delay is None else wake_s or (lambda: 0.0),
        )

    def at_s(self, number: int) -> float:
        """When the evaluation of that number begins, counted from 0."""
        on_time_s = self.phase_s + number * self.tick_s
        return on_time_s + self.delays_s[number % EVALUATION_DRAWS] if self.delays_s else on_time_s


class Lag:
    """How old what is seen is at one evaluation after the other."""

    def __init__(self, behaviour: Behaviour, draws: Random) -> None:
        self._queue_s = drawn(behaviour.sample_lag, draws)
        self._workers_s = drawn(behaviour.worker_lag, draws)

    @property
    def is_any(self) -> bool:
        """Whether anything is ever seen later than it is."""
        return self._queue_s is not None or self._workers_s is not None

    def queue_s(self) -> float:
        """Of the queue's newest sample."""
        return 0.0 if self._queue_s is None else self._queue_s()

    def workers_s(self) -> float:
        """Of the states of workers."""
        return 0.0 if self._workers_s is None else self._workers_s()
