"""From what each pool wants alone to what all get together: shared where room is short, and placed on hosts.

Hosts that went silent keep the rows they have; hosts that drain keep theirs until what replaces them runs.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from headway.scaling.allocation.failed_pools import failed_outcome, failures
from headway.scaling.allocation.fair_share import Claim, urgency, waited
from headway.scaling.allocation.grants import Allotment, allotted
from headway.scaling.allocation.group_caps import GroupCaps
from headway.scaling.allocation.handover import startable
from headway.scaling.allocation.host_drain import Leaving, elsewhere, leaving, staying
from headway.scaling.allocation.refusals import Refusals
from headway.scaling.allocation.unreachable_hosts import kept_rows
from headway.scaling.decisions.group_uses import GROUP_SHARE, use_of
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.decisions.predicted_pickup import pickups_of
from headway.scaling.group import Group
from headway.scaling.model import Assignment, GroupUse, Host, LastMove, Mode, Note, NoteKind, Step
from headway.scaling.placement.host_choice import HostCapacities
from headway.scaling.placement.pool_parts import PoolTarget
from headway.scaling.planning.feasibility import busy_slots_of, too_small_together
from headway.scaling.policy.day_budget import account_of
from headway.scaling.policy.ground import Ground
from headway.scaling.policy.limits import busy_workers, ceiling_of, paused_workers
from headway.scaling.profile_keys.pauses import NEVER_DOWN
from headway.scaling.reading.busy_slots import slots_of
from headway.scaling.reading.pool_times import times_of
from headway.scaling.reading.pooled_queue import pooled
from headway.scaling.reading.sample_age import freshness_of

CUT_FOR_ROOM = frozenset({"capacity", "share"})


def allocate(
    outcomes: Sequence[Outcome],
    hosts: Sequence[Host],
    current: Sequence[Assignment],
    *,
    held: Iterable[Assignment] = (),
    groups: Sequence[Group] = (),
) -> tuple[tuple[Outcome, ...], tuple[Assignment, ...]]:
    """The outcomes with what ``share`` left each, and where every worker of theirs goes.

    A pool that only gets advice takes part in nothing: its decision stays and its rows are not among the result. A pool
    with a figure that is NaN or infinite has failed: it keeps its rows, its decision says so, and the other pools are
    allocated beside these rows.

    Args:
        outcomes: one a pool, decided as if it were alone.
        hosts: all hosts.
        current: what is in place.
        held: rows of pools that were not decided and stay as they are; they are not returned.
        groups: caps over several pools, each known by another name. Their pools share them before hosts are shared.
    """
    failed = failures(_acting(outcomes, current))
    if not failed:
        return _allocated(outcomes, hosts, current, held=tuple(held), groups=groups)
    kept = tuple(row for row in current if row.pool in failed)
    left, rows = _allocated(
        [each for each in outcomes if each.decision.pool not in failed],
        hosts,
        [row for row in current if row.pool not in failed],
        held=(*held, *kept),
        groups=groups,
    )
    others = iter(left)
    merged = (
        failed_outcome(each, kept, figure=failed[pool]) if (pool := each.decision.pool) in failed else next(others)
        for each in outcomes
    )
    return tuple(merged), (*rows, *kept)


def _allocated(
    outcomes: Sequence[Outcome],
    hosts: Sequence[Host],
    current: Sequence[Assignment],
    *,
    held: tuple[Assignment, ...],
    groups: Sequence[Group],
) -> tuple[tuple[Outcome, ...], tuple[Assignment, ...]]:
    """The same of pools whose figures are finite."""
    outcomes = _unexchanged(outcomes, current)
    caps = GroupCaps.of(groups, outcomes, hosts, (*current, *held)) if groups else None
    if caps is not None:
        outcomes = _within_caps(outcomes, current, caps)
    acting = _acting(outcomes, current)
    moves = _moves(acting, hosts, current, caps)
    # While no known host can run its template, a pool's target is held, and there is nothing to place or to share.
    placeable = [outcome for outcome in acting if outcome.view.capacity_workers is not None]
    targets = [_target(outcome, moves.get(outcome.decision.pool)) for outcome in placeable]
    allotment = allotted(
        targets,
        hosts,
        current,
        claims=lambda: [_claim(outcome, target.workers) for outcome, target in zip(placeable, targets, strict=True)],
        held=held,
    )
    if allotment.short:
        lost = {each.pool: each.workers - allotment.short.get(each.pool, each.workers) for each in targets}
        outcomes = [_left(outcome, lost.get(outcome.decision.pool, 0)) for outcome in outcomes]
    alone = _Alone(hosts)
    outcomes = [_with_reasons(outcome, allotment, alone) for outcome in outcomes]
    pools = {outcome.decision.pool for outcome in acting}
    silent = kept_rows(hosts, (row for row in current if row.pool in pools))
    now = startable(
        allotment.rows,
        hosts,
        current,
        free_of=_free_of(acting, hosts, current),
        held=held,
        caps=None if caps is None else caps.startable(),
    )
    rows = (*now.rows, *_waiting(moves, allotment.rows))
    late = {each.pool: 0 for each in targets if each.pool in moves or each.pool in now.put_off}
    if late:
        for row in rows:
            if row.pool in late:
                late[row.pool] += row.workers
        outcomes = [_with_note(outcome, placed_workers=late.get(outcome.decision.pool)) for outcome in outcomes]
    return tuple(outcomes), (*rows, *silent)


def _unexchanged(outcomes: Sequence[Outcome], current: Iterable[Assignment]) -> Sequence[Outcome]:
    """The outcomes; a pool that is kept from going down has as many burst workers as are in place.

    A base worker never turns into a burst worker: to exchange one, a pause would ask it to leave.
    """
    kept = [outcome for outcome in outcomes if outcome.decision.mode in NEVER_DOWN]
    if not kept:
        return outcomes
    burst: Counter[str] = Counter()
    for row in current:
        burst[row.pool] += row.burst_workers
    return tuple(
        _with_burst(outcome, burst[outcome.decision.pool]) if outcome.decision.mode in NEVER_DOWN else outcome
        for outcome in outcomes
    )


def _with_burst(outcome: Outcome, workers: int) -> Outcome:
    burst = min(workers, outcome.decision.target_workers)
    if burst == outcome.decision.burst_workers:
        return outcome
    return replace(outcome, decision=replace(outcome.decision, burst_workers=burst))


def _acting(outcomes: Iterable[Outcome], current: Iterable[Assignment]) -> list[Outcome]:
    """Those to be placed. Most pools of a large installation have and want nothing: they need no place."""
    present = {row.pool for row in current}
    return [
        outcome
        for outcome in outcomes
        if outcome.decision.mode is not Mode.RECOMMEND
        and (outcome.decision.target_workers or outcome.decision.pool in present)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Move:
    """A pool that has workers on hosts that drain."""

    target_workers: int
    ceiling_workers: int
    leaving: Leaving

    @property
    def elsewhere_workers(self) -> int:
        return elsewhere(self.target_workers, ceiling_workers=self.ceiling_workers, leaving=self.leaving)


def _moves(
    acting: Iterable[Outcome], hosts: Sequence[Host], current: Sequence[Assignment], caps: GroupCaps | None
) -> dict[str, _Move]:
    away = leaving(hosts, current)
    moving = {outcome.decision.pool: outcome for outcome in acting if outcome.decision.pool in away}
    if not moving:
        return {}
    ceilings = {pool: max(each.decision.target_workers, _ceiling_workers(each)) for pool, each in moving.items()}
    if caps is not None:
        targets = {outcome.decision.pool: outcome.decision.target_workers for outcome in acting}
        existing = {pool: away[pool].existing_workers for pool in moving}
        ceilings = caps.ceilings_while_moving(ceilings, targets, existing)
    return {
        pool: _Move(target_workers=outcome.decision.target_workers, ceiling_workers=ceilings[pool], leaving=away[pool])
        for pool, outcome in moving.items()
    }


def _within_caps(outcomes: Sequence[Outcome], current: Iterable[Assignment], caps: GroupCaps) -> list[Outcome]:
    """``outcomes`` with what the caps of their groups leave to each."""
    acting = [outcome for outcome in _acting(outcomes, current) if caps.groups_of(outcome.decision.pool)]
    claims = [_claim(outcome, outcome.decision.target_workers) for outcome in acting]
    busy = {}
    if caps.is_any_unknown:
        busy = {each.decision.pool: min(each.decision.target_workers, busy_workers(_ground(each))) for each in acting}
    shares = caps.shared(claims, busy=busy)
    lost = {claim.pool: claim.workers - shares.granted[claim.pool] for claim in claims}
    short, taken = _too_small(acting, caps), caps.taken(shares.granted)
    together = {name: sum(of_group.values()) for name, of_group in taken.items()}

    def uses(outcome: Outcome) -> tuple[GroupUse, ...]:
        pool = outcome.decision.pool
        binding = shares.full.get(pool) or {use.name for use in outcome.decision.groups if use.is_binding}
        return tuple(
            use_of(group, taken_by_others=together[group.name] - taken[group.name][pool], binding=binding)
            for group in caps.groups_of(pool)
        )

    return [
        _with_groups(_left(each, lost.get(each.decision.pool, 0), step=GROUP_SHARE), uses(each), short)
        if caps.groups_of(each.decision.pool)
        else each
        for each in outcomes
    ]


def _too_small(acting: Sequence[Outcome], caps: GroupCaps) -> dict[str, Note]:
    """Group -> that its cap is less than what arrives in its pools keeps busy, where it is."""
    busy: dict[str, list[float]] = {group.name: [] for group in caps.groups}
    for outcome in acting:
        profile, slots = outcome.view.profile, busy_slots_of(pooled(outcome.view.queues), outcome.view.profile)
        for group in caps.groups_of(profile.pool):
            busy[group.name].append(slots if group.is_in_slots else slots / outcome.view.slots_per_worker)
    found = {group.name: too_small_together(group, busy[group.name]) for group in caps.groups if busy[group.name]}
    return {name: note for name, note in found.items() if note is not None}


def _with_groups(outcome: Outcome, uses: tuple[GroupUse, ...], short: Mapping[str, Note]) -> Outcome:
    """``outcome`` with the ``uses`` of its groups, and a note on each group that is too small for what arrives."""
    notes = [short[use.name] for use in uses if use.name in short]
    return replace(outcome, decision=replace(outcome.decision, groups=uses).with_notes(*notes))


def _ceiling_workers(outcome: Outcome) -> int:
    return ceiling_of(_ground(outcome))


def _ground(outcome: Outcome) -> Ground:
    view, before, at_s = outcome.view, outcome.before, outcome.decision.at_s
    queue = pooled(view.queues)
    return Ground(
        view=view,
        queue=queue,
        memory=before,
        last_workers=_last_workers(outcome),
        freshness=freshness_of(view.queues, view.profile, now_s=at_s),
        account=account_of(view, queue, before.day_paid, now_s=at_s),
        now_s=at_s,
    )


def _waiting(moves: Mapping[str, _Move], rows: Iterable[Assignment]) -> Iterator[Assignment]:
    """The rows of hosts that drain."""
    placed: dict[str, list[Assignment]] = {pool: [] for pool in moves}
    if not moves:
        return
    for row in rows:
        if row.pool in placed:
            placed[row.pool].append(row)
    for pool, move in moves.items():
        yield from staying(
            move.target_workers, placed[pool], ceiling_workers=move.ceiling_workers, leaving=move.leaving
        )


def _free_of(acting: Iterable[Outcome], hosts: Sequence[Host], current: Iterable[Assignment]) -> Callable[[str], int]:
    """For a pool, how many more of it may exist now: its ceiling less every worker that is there or may be."""
    outcomes = {outcome.decision.pool: outcome for outcome in acting}
    known = {host.host_id for host in hosts if host.is_known}
    assigned: Counter[str] = Counter()
    for row in current:
        if row.host_id in known:
            assigned[row.pool] += row.workers

    def free(pool: str) -> int:
        # The ceiling is less what may still run on unreachable hosts.
        return _ceiling_workers(outcomes[pool]) - assigned[pool] - outcomes[pool].view.leaving_workers

    return free


def _with_note(outcome: Outcome, *, placed_workers: int | None) -> Outcome:
    """``outcome`` with a note on those that wait for others to leave; ``None``: none of the pool does."""
    put_off = 0 if placed_workers is None else outcome.decision.target_workers - placed_workers
    if put_off <= 0:
        return outcome
    text = f"{put_off} of them start when draining workers have exited: until then there is no capacity for both"
    return replace(outcome, decision=outcome.decision.with_notes(Note(kind=NoteKind.LATER_START, text=text)))


def _target(outcome: Outcome, move: _Move | None) -> PoolTarget:
    """What is to be placed of a pool now, as its profile says."""
    workers = outcome.decision.target_workers if move is None else move.elsewhere_workers
    return PoolTarget(
        pool=outcome.decision.pool,
        template=outcome.view.profile.template,
        workers=workers,
        burst_workers=min(outcome.decision.burst_workers, workers),
        priority=outcome.view.profile.priority,
        labels=outcome.view.profile.placement.labels,
        spread=outcome.view.profile.placement.spread,
    )


def _claim(outcome: Outcome, workers: int) -> Claim:
    profile = outcome.view.profile
    return Claim(
        pool=profile.pool,
        template=profile.template,
        workers=workers,
        guaranteed_workers=_guarantee(outcome)[0],
        priority=profile.priority,
        weight=profile.weight,
        urgency=urgency(outcome.decision, profile),
        waited=waited(outcome.decision, profile),
        present_workers=outcome.view.assigned_workers,
        labels=profile.placement.labels,
    )


def _guarantee(outcome: Outcome) -> tuple[int, str]:
    """The floor of this moment, a pinned count, or what an operator keeps from going down, and its name."""
    profile = outcome.view.profile
    floor = profile.bounds_at(outcome.decision.at_s, outcome.view.zones).workers_min
    kept = _paused_workers(outcome) if outcome.decision.mode in NEVER_DOWN else 0
    return max((profile.pinned or 0, "pinned"), (floor, "workers_min"), (kept, "paused at"), key=itemgetter(0))


def _paused_workers(outcome: Outcome) -> int:
    """What an operator keeps from going down, others do not take: nor the places of busy workers beyond that."""
    ground = _ground(outcome)
    return max(paused_workers(outcome.decision.target_workers, ground), busy_workers(ground))


def _still_paused(outcome: Outcome, workers: int) -> int | None:
    """The paused count of a pool that others leave ``workers``: what it did not get, the pause does not keep for it."""
    paused = outcome.memory.paused_workers
    return None if paused is None else min(paused, max(_paused_workers(outcome), workers))


def _last_workers(outcome: Outcome) -> int:
    before = outcome.before
    return outcome.view.assigned_workers if before.target_workers is None else before.target_workers


def _left(outcome: Outcome, lost: int, *, step: str = "share") -> Outcome:
    """``outcome`` without what it ``lost``: a ``step`` says so; what is remembered and predicted is of what is left.

    Burst workers are lost first: the base stays.
    """
    decision, before = outcome.decision, outcome.before
    if not lost:
        return outcome
    workers = decision.target_workers - lost
    view, queue = replace(outcome.view, queues=decision.metrics), pooled(decision.metrics)
    moved = workers - _last_workers(outcome)
    pickups = pickups_of(queue, view, times_of(view), slots_of(view), target_workers=workers)
    return replace(
        outcome,
        decision=replace(
            decision,
            target_workers=workers,
            burst_workers=max(0, decision.burst_workers - lost),
            binding=step,
            steps=(*decision.steps, Step(name=step, workers=workers)),
            predicted_pickup_s=pickups.predicted_pickup_s,
            member_pickups=pickups.member_pickups,
        ),
        memory=replace(
            outcome.memory,
            target_workers=workers,
            paused_workers=_still_paused(outcome, workers),
            last_move=LastMove(at_s=decision.at_s, is_up=moved > 0) if moved else before.last_move,
        ),
    )


class _Alone:
    """Why the hosts do not hold what a pool is guaranteed, were it alone; made when first asked for."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._hosts = hosts
        self._refusals: Refusals | None = None

    def of(self, outcome: Outcome) -> str:
        self._refusals = self._refusals or Refusals(HostCapacities(self._hosts))
        profile = outcome.view.profile
        claim = Claim(pool=profile.pool, template=profile.template, workers=0, labels=profile.placement.labels)
        return self._refusals.of(claim)


def _with_reasons(outcome: Outcome, allotment: Allotment, alone: _Alone) -> Outcome:
    """``outcome`` with a note on what has no place though it is guaranteed, or though there is room in pieces."""
    decision = outcome.decision
    if decision.binding not in CUT_FOR_ROOM or decision.mode is Mode.RECOMMEND:
        return outcome
    about: tuple[str, ...] = ()
    if reason := _reason(outcome, allotment, alone):
        guaranteed, name = _guarantee(outcome)
        text, about = f"{name} {guaranteed}: {decision.target_workers} placed; {reason}", (name, reason)
    elif pieces := allotment.in_pieces.get(decision.pool):
        text = (
            f"there is capacity for {pieces} more, but no host has enough for one: "
            "other pools make room only for a workers_min"
        )
    else:
        return outcome
    if text in decision.notes:
        return outcome
    return replace(outcome, decision=decision.with_notes(Note(kind=NoteKind.NO_ROOM, text=text, about=about)))


def _reason(outcome: Outcome, allotment: Allotment, alone: _Alone) -> str | None:
    decision = outcome.decision
    if decision.binding == "share" or outcome.view.capacity_workers is None:
        return allotment.refusals.get(decision.pool)
    return alone.of(outcome) if decision.target_workers < _guarantee(outcome)[0] else None
