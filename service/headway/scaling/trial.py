"""Whether a forecast has earned a say: its errors against those of doing without it, on the pool's own points."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import starmap
from typing import Any, Self

from headway.errors import Invalid
from headway.scaling.forecast import Forecaster, Holt, Level, Naive, Point, Seasonal, Trend, state_of, with_state

TRIAL_VERSION = 1
WINDOW_SAMPLES = 120  # how many of the last forecasts count: half an hour at a lead time of 15 s
SAMPLES_MIN = 30  # fewer tell luck from skill too rarely
SKILL_MIN = 0.1  # a smaller gain is not worth what a forecast costs to explain
PENDING_MAX = 8  # forecasts on their way to be scored; the next is made when there is room
SILENCE_S = 30.0  # points this far apart, and farther than two lead times, do not tell what was between them
BASELINES: tuple[Forecaster, ...] = (Naive(), Level())
"""What is done without a forecast. The last value alone would let any mean look clever on mere noise."""
CONTENDERS: tuple[Forecaster, ...] = (
    Trend(),
    Holt(),
    Holt(name="holt_damped", slope_memory_s=30.0, damping_s=300.0),  # quick to see a turn, slow to believe in it
    Seasonal(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One contender's losses and the baselines' on the same samples; older ones fade."""

    samples: float = 0.0
    loss: float = 0.0
    baseline_losses: tuple[float, ...] = (0.0,) * len(BASELINES)

    def updated(self, loss: float, baseline_losses: tuple[float, ...]) -> "Score":
        kept = 1 - 1 / WINDOW_SAMPLES
        return Score(
            samples=self.samples * kept + 1,
            loss=self.loss * kept + loss,
            baseline_losses=tuple(
                before * kept + new for before, new in zip(self.baseline_losses, baseline_losses, strict=True)
            ),
        )

    @property
    def skill(self) -> float | None:
        """The share of the best baseline's loss that the contender saves; negative where it adds to it.

        ``None`` while there are too few samples, and where the baseline made no error that could be saved.
        """
        best = min(self.baseline_losses)
        return None if self.samples < SAMPLES_MIN or best <= 0 else 1 - self.loss / best


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What everyone foresaw for a moment that has not come: the baselines, then the contenders."""

    due_at_s: float
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Forecasters of one pool on trial, ``lead_s`` ahead: the time from wanting a worker to having it.

    ``quantile`` above a half makes a forecast that is too low cost more than one that is too high.
    """

    lead_s: float
    quantile: float = 0.5
    baselines: tuple[Forecaster, ...] = BASELINES
    contenders: tuple[Forecaster, ...] = CONTENDERS
    scores: tuple[Score, ...] = (Score(),) * len(CONTENDERS)
    pending: tuple[Pending, ...] = field(default=())
    last: Point | None = None

    def __post_init__(self) -> None:
        breaches = []
        if not 0 < self.lead_s <= 86_400:
            breaches.append(f"trial: lead_s={self.lead_s} must lie above 0, up to 86400 seconds")
        if not 0 < self.quantile < 1:
            breaches.append(f"trial: quantile={self.quantile} must lie between 0 and 1")
        if len(self.baselines) != len(BASELINES) or len(self.scores) != len(self.contenders):
            breaches.append("trial: one score a contender, and the baselines as they are")
        if breaches:
            raise Invalid(*breaches)

    def updated(self, point: Point) -> Self:
        """The trial that has seen ``point``: what was due is scored, everyone has learned, the next forecast is made.

        The same where ``point`` is not later than the last.
        """
        if self.last is not None and point.at_s <= self.last.at_s:
            return self
        due = [pending for pending in self.pending if pending.due_at_s <= point.at_s]
        scores = self.scores
        for pending in due:
            scores = self._scored(scores, pending, point)
        learned = replace(
            self,
            baselines=tuple(forecaster.updated(point) for forecaster in self.baselines),
            contenders=tuple(forecaster.updated(point) for forecaster in self.contenders),
            scores=scores,
            pending=self.pending[len(due) :],
            last=point,
        )
        return replace(learned, pending=_with_next(learned))

    def skill(self, name: str) -> float | None:
        """The share of the naive forecast's loss that ``name`` has saved of late; ``None`` while that is not known."""
        return {each.name: score.skill for each, score in zip(self.contenders, self.scores, strict=True)}[name]

    @property
    def trusted(self) -> tuple[str, ...]:
        """Who beats doing without a forecast, clearly and often enough, at this moment."""
        return tuple(each.name for each in self.contenders if (self.skill(each.name) or 0.0) >= SKILL_MIN)

    def forecasts(self, ahead_s: float) -> dict[str, float]:
        """What those who are trusted foresee for ``ahead_s`` after the last point. Empty where nobody is."""
        foreseen = {each.name: each.forecast(ahead_s) for each in self.contenders if each.name in self.trusted}
        return {name: value for name, value in foreseen.items() if value is not None}

    def state(self) -> dict[str, Any]:
        """All that was learned, in what JSON knows."""
        return {
            "version": TRIAL_VERSION,
            "forecasters": {each.name: state_of(each) for each in (*self.baselines, *self.contenders)},
            "scores": {
                each.name: [score.samples, score.loss, *score.baseline_losses]
                for each, score in zip(self.contenders, self.scores, strict=True)
            },
            "pending": [[pending.due_at_s, *pending.values] for pending in self.pending],
            "last": None if self.last is None else [self.last.at_s, self.last.value],
        }

    def with_state(self, state: Mapping[str, Any]) -> Self:
        """This trial as it was when ``state`` was taken of it; afresh where the state is another version's."""
        names = [each.name for each in (*self.baselines, *self.contenders)]
        if state.get("version") != TRIAL_VERSION or list(state["forecasters"]) != names:
            return self
        return replace(
            self,
            baselines=tuple(with_state(each, state["forecasters"][each.name]) for each in self.baselines),
            contenders=tuple(with_state(each, state["forecasters"][each.name]) for each in self.contenders),
            scores=tuple(_score(*state["scores"][each.name]) for each in self.contenders),
            pending=tuple(starmap(_pending, state["pending"])),
            last=None if state["last"] is None else Point(at_s=state["last"][0], value=state["last"][1]),
        )

    def _scored(self, scores: tuple[Score, ...], pending: Pending, point: Point) -> tuple[Score, ...]:
        """``scores`` with the losses of one forecast. After a gap nobody knows what came true, and nobody is blamed."""
        if self.last is None or point.at_s - self.last.at_s > max(SILENCE_S, 2 * self.lead_s):
            return scores
        passed = (pending.due_at_s - self.last.at_s) / (point.at_s - self.last.at_s)
        actual = self.last.value + passed * (point.value - self.last.value)
        losses = [None if value is None else self._loss(value, actual) for value in pending.values]
        of_baselines = losses[: len(self.baselines)]
        known = tuple(loss for loss in of_baselines if loss is not None)
        return tuple(
            score if loss is None or len(known) < len(of_baselines) else score.updated(loss, known)
            for score, loss in zip(scores, losses[len(self.baselines) :], strict=True)
        )

    def _loss(self, foreseen: float, actual: float) -> float:
        """The pinball loss. Source: R. Koenker, G. Bassett, "Regression Quantiles", Econometrica 46 (1978)."""
        missed = actual - foreseen
        return missed * self.quantile if missed >= 0 else missed * (self.quantile - 1)


def _with_next(trial: Trial) -> tuple[Pending, ...]:
    """What is pending and, where there is room, the forecast of this moment."""
    assert trial.last is not None
    due_at_s = trial.last.at_s + trial.lead_s
    if trial.pending and due_at_s < trial.pending[-1].due_at_s + trial.lead_s / PENDING_MAX:
        return trial.pending
    values = tuple(each.forecast(trial.lead_s) for each in (*trial.baselines, *trial.contenders))
    return (*trial.pending, Pending(due_at_s=due_at_s, values=values))


def _score(samples: float, loss: float, *baseline_losses: float) -> Score:
    return Score(samples=samples, loss=loss, baseline_losses=baseline_losses)


def _pending(due_at_s: float, *values: float | None) -> Pending:
    return Pending(due_at_s=due_at_s, values=values)
