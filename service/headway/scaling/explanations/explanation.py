"""A decision's demands, limits and notes in words: what pages and tables show of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from headway.scaling.explanations.own_wording import OWN
from headway.scaling.explanations.phrases import sentence_of, words
from headway.scaling.explanations.queue_phrases import arrivals, depths
from headway.scaling.explanations.shared_phrases import shared_sentences
from headway.scaling.explanations.wording import Grounds, Wording
from headway.scaling.model import Decision, Demand, NoteKind, QueueMetrics, Step
from headway.scaling.reading.pooled_queue import pooled
from headway.scaling.reading.sample_age import is_seen


class Worded(Protocol):
    """A strategy, as far as its words go."""

    @property
    def wording(self) -> Wording:
        """The words for demands and limits of its own."""


NO_STRATEGIES: Mapping[str, Worded] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandText:
    """A demand, and what people read of it."""

    name: str
    label: str
    """A few words for it."""
    slots: float
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepText:
    """A limit, the number of workers that it left, and what people read of it."""

    name: str
    label: str
    """A few words for it."""
    workers: int
    sentence: str | None
    """Null where it left the number as it was, and for the number that was wanted."""
    moved: bool
    """Whether it changed the number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What people read of a decision."""

    change: str
    """What it made of the target before, in a few words."""
    binding_label: str
    """A few words for the demand or limit that gave the number its last word."""
    why: str
    """Its reason in few sentences: the greatest demand, jobs that other pools run, each limit that changed the number,
    and the notes."""
    demands: tuple[DemandText, ...]
    """The greatest first."""
    steps: tuple[StepText, ...]
    """First the number that was wanted, then each limit in its order."""
    notes: tuple[str, ...]
    """The notes as whole sentences."""


def explanation_of(
    decision: Decision, *, previous_workers: int | None, strategies: Mapping[str, Worded] = NO_STRATEGIES
) -> Explanation:
    """What people read of ``decision``, which replaced a target of ``previous_workers``.

    A demand or limit of a strategy outside of ``strategies`` is shown by its name.
    """
    wording = wording_of(decision, strategies)
    steps = _step_texts(decision, wording)
    said = [step.sentence for step in steps if step.sentence is not None]
    why = (_reason(decision, wording), *shared_sentences(decision), *said, *_unsaid_notes(decision, steps))
    return Explanation(
        change=_change(previous_workers, decision.target_workers),
        binding_label=wording.label(decision.binding),
        why=" ".join(filter(None, why)),
        demands=tuple(_demand_text(demand, wording) for demand in decision.ranked_demands),
        steps=steps,
        notes=tuple(map(sentence_of, decision.notes)),
    )


def binding_label(decision: Decision, strategies: Mapping[str, Worded]) -> str:
    """A few words for the demand or limit that gave the number its last word."""
    return wording_of(decision, strategies).label(decision.binding)


def wording_of(decision: Decision, strategies: Mapping[str, Worded]) -> Wording:
    """The words for the demands and limits of ``decision``: Headway's own, and those of its strategy."""
    strategy = strategies.get(decision.strategy)
    if strategy is None or not (strategy.wording.demands or strategy.wording.limits):
        return OWN
    own = strategy.wording
    return Wording(demands={**OWN.demands, **own.demands}, limits={**OWN.limits, **own.limits})


def _change(previous_workers: int | None, target_workers: int) -> str:
    if previous_workers is None:
        return f"set to {target_workers}"
    if previous_workers == target_workers:
        return f"kept at {target_workers}"
    return f"{previous_workers} → {target_workers}"


def _demand_text(demand: Demand, wording: Wording) -> DemandText:
    return DemandText(
        name=demand.name,
        label=wording.label(demand.name),
        slots=demand.slots,
        sentence=sentence_of(wording.clause(demand)),
    )


def _step_texts(decision: Decision, wording: Wording) -> tuple[StepText, ...]:
    texts = []
    for before, step in zip((None, *decision.steps), decision.steps, strict=False):
        sentence = None if before is None else _limit_sentence(before, step, decision, wording)
        label = wording.label(step.name)
        texts.append(
            StepText(name=step.name, label=label, workers=step.workers, sentence=sentence, moved=sentence is not None)
        )
    return tuple(texts)


def _limit_sentence(before: Step, after: Step, decision: Decision, wording: Wording) -> str | None:
    if before.workers == after.workers:
        return None
    known = wording.limits.get(after.name)
    if known is not None:
        return known.text(before, after, decision)
    way = "raises" if after.workers > before.workers else "lowers"
    return f"The limit “{words(after.name)}” {way} the count from {before.workers} to {after.workers}."


def _reason(decision: Decision, wording: Wording) -> str | None:
    """The greatest demand, after the figures that it follows from; ``None`` where none asks and nothing is known."""
    known = [queue for queue in decision.metrics if is_seen(queue)]
    queue = pooled(known) if known else None
    if decision.demands and decision.ranked_demands[0].slots > 0:
        greatest = decision.ranked_demands[0]
        known_words, clause = wording.demands.get(greatest.name), wording.clause(greatest)
        grounds = None if queue is None or known_words is None else _grounds(known_words.grounds, queue)
        return sentence_of(clause if grounds is None else f"{grounds}: {clause}")
    if queue is None or queue.waiting_jobs is None or not decision.is_fresh:
        return None
    if queue.waiting_jobs:
        return sentence_of(f"{depths(queue)}, and no demand is above zero")
    return "Nothing waits and nothing arrives." if queue.arrival_rate_per_s == 0 else sentence_of(depths(queue))


def _grounds(grounds: Grounds | None, queue: QueueMetrics) -> str | None:
    if grounds is Grounds.RATES:
        return arrivals(queue)
    return depths(queue) if grounds is Grounds.DEPTHS else None


def _unsaid_notes(decision: Decision, steps: tuple[StepText, ...]) -> list[str]:
    """The notes, without the one that a limit says as well."""
    said = NoteKind.STALE_METRICS if any(step.name == "hold_stale" and step.moved for step in steps) else None
    unsaid = decision.note_of(said) if said else None
    return [sentence_of(text) for text in decision.notes if text != unsaid]
