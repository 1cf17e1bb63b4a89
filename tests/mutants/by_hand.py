"""Mistakes that a hand could make: a wrong sign, a wrong bound, one too many, the lesser for the greater."""

from dataclasses import dataclass

DEMAND = ("test_demand.py", "test_hybrid.py", "laws/test_law_01_more_never_lowers_a_demand.py")
HYBRID = ("test_hybrid.py", "test_decide.py", "laws/test_law_01_more_never_lowers_a_demand.py")
HANDOVER = ("test_handover.py", "test_never_above_the_ceiling.py", "test_settle.py")
INSTANT = ("test_instant.py",)
LIMITS = ("test_limits.py", "test_limit_laws.py", "laws/test_law_06_bounds_hold.py")
PAUSES = ("test_pause.py", "test_limits.py")
SHARE = ("test_share.py", "test_settle.py", "laws/test_law_07_no_worker_is_lost_or_invented.py")
PERIOD = ("test_period.py",)
PLACEMENT = ("test_placement.py", "test_share.py", "laws/test_law_07_no_worker_is_lost_or_invented.py")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake: in ``module`` of the core, ``right`` becomes ``wrong``."""

    module: str
    right: str
    wrong: str
    tests: tuple[str, ...]
    """Where it is expected to be found, the likeliest first; then all of the core are run."""


def _in(module: str, tests: tuple[str, ...], *changes: tuple[str, str]) -> tuple[Mutant, ...]:
    return tuple(Mutant(module, right, wrong, tests) for right, wrong in changes)


MUTANTS = (
    *_in(
        "demand.py",
        DEMAND,
        ("expected - self.caution * math.sqrt", "expected + self.caution * math.sqrt"),
        ("sure += coming.slots * self.per_slot(within_s - coming.ready_in_s)", "sure += coming.slots"),
        ("if coming.ready_in_s <= within_s:", "if coming.ready_in_s >= within_s:"),
        ("return 1.0 + max(0.0, within_s) / self.service_time_s", "return max(0.0, within_s) / self.service_time_s"),
        ("per_slot_s = min(per_slot_s, of_late)", "per_slot_s = max(per_slot_s, of_late)"),
        ("return busy_slots * per_slot_s", "return busy_slots / per_slot_s"),
        ("math.inf if told_s is None", "0.0 if told_s is None"),
        ("age_s = arrivals.ended_ago_s + view.tick_s", "age_s = arrivals.ended_ago_s"),
        ("jobs = min(left_jobs, arrivals.jobs)", "jobs = max(left_jobs, arrivals.jobs)"),
        ("    found.reverse()\n", ""),
        ("target_s - waited_s - margin_s", "target_s - waited_s + margin_s"),
        ("if each.within_s < can_wait_s:", "if each.within_s > can_wait_s:"),
        ("ahead_jobs += each.jobs", "ahead_jobs = each.jobs"),
        ("can_wait_s = view.tick_s + ready_in_s", "can_wait_s = view.tick_s"),
        ("view.lag_s + MARGIN_S - view.profile", "view.lag_s - view.profile"),
        ("ahead_jobs + spare_jobs, within_s", "ahead_jobs, within_s"),
        ("left_s = max(within_s, start_up_s)", "left_s = min(within_s, start_up_s)"),
        ("left_jobs = jobs - given.starts(left_s)", "left_jobs = jobs + given.starts(left_s)"),
        ("if kept_slots <= given.idle_slots:", "if kept_slots >= given.idle_slots:"),
        ("left_jobs -= given.idle_slots * from_idle", "left_jobs -= given.idle_slots"),
        ("new_slots=math.ceil(left_jobs / from_new - ROUNDING)", "new_slots=math.floor(left_jobs / from_new)"),
        ("math.floor((left_s - start_up_s) / given", "math.floor(left_s / given"),
        ("max(new_slots, each.new_slots)", "min(new_slots, each.new_slots)"),
    ),
    *_in(
        "strategies/hybrid.py",
        HYBRID,
        ("caution=CAUTION / view.profile.risk", "caution=CAUTION * view.profile.risk"),
        (
            "given.busy_slots + view.starting_workers * view.slots",
            "given.busy_slots - view.starting_workers * view.slots",
        ),
        ("slots=in_use + drain.slots", "slots=drain.slots"),
        ("slots=in_use + stand.slots", "slots=stand.slots"),
        ("and not view.running_workers and not", "and not"),
        ("objective_of(member.queue).target_s", "objective.target_s"),
        ("at_s + start_up_s(view) - now_s", "at_s - start_up_s(view) - now_s"),
        ("if exposed_s(view) > 0:", "if exposed_s(view) < 0:"),
    ),
    *_in(
        "instant.py",
        INSTANT,
        ("min(newest.values(), default=None)", "max(newest.values(), default=None)"),
        ("max(newest.get(connection, queue.sampled_at_s)", "min(newest.get(connection, queue.sampled_at_s)"),
        ("sum(ready_at_s > at_s for", "sum(ready_at_s < at_s for"),
        ("running = max(running_workers - fresh, min(", "running = min(running_workers - fresh, max("),
        ("starting_workers=present - running,", "starting_workers=starting_workers,"),
        ("taken_jobs=min(begun_jobs, free_slots)", "taken_jobs=begun_jobs"),
        ("if worker.state is not WorkerState.RUNNING:", "if worker.state is WorkerState.STARTING:"),
    ),
    *_in(
        "handover.py",
        HANDOVER,
        ("free[row.pool] -= allowed", "free[row.pool] += allowed"),
        ("allowed = room.keep(row.template, allowed)", "pass"),
        ("max(0, free.get(row.pool, workers))", "max(0, workers)"),
        ("growing & (moving | draining)", "growing & moving"),
        ("growing & (moving | draining)", "growing & draining"),
        ("worker.is_busy is not False", "worker.is_busy"),
        ("            room.take(worker.template, 1)", "            pass"),
        ("max(stays, min(row.workers, at_work[row.pool]))", "stays"),
        ("for row in (*rows, *held)", "for row in rows"),
    ),
    *_in(
        "limits.py",
        LIMITS,
        (
            "return count if ground.is_fresh else max(count, ground",
            "return count if ground.is_fresh else min(count, ground",
        ),
        ("return min(ground.last_workers, max([count, *recent]))", "return max([count, *recent])"),
        ("if wanted.at_s >= since_s]", "if wanted.at_s <= since_s]"),
        ("max(ground.last_workers, min([count, *lows]))", "max(ground.last_workers, max([count, *lows]))"),
        ("abs(count - ground.last_workers) <= room", "count - ground.last_workers <= room"),
        ("min(count, last_workers + most)", "max(count, last_workers + most)"),
        ("return max(1, workers or 0, math.floor", "return max(0, workers or 0, math.floor"),
        ("return max(count, profile.fallback_workers)", "return min(count, profile.fallback_workers)"),
        ("return max(count, bounds_of(ground).workers_min)", "return min(count, bounds_of(ground).workers_min)"),
        (
            "return min(count, _known(bounds_of(ground).workers_max, ground))",
            "return min(count, bounds_of(ground).workers_max)",
        ),
        ("slots = rate_per_s * service_time_s(", "slots = rate_per_s / service_time_s("),
        ("return min(count, _known(ceiling, ground))", "return max(count, _known(ceiling, ground))"),
        (
            "payable.append(_whole(profile.budget_per_hour / profile",
            "payable.append(_whole(profile.budget_per_hour * profile",
        ),
        ("return min(count, _known(min(payable), ground))", "return min(count, _known(max(payable), ground))"),
        ("max(0.0, day_hours - spent_hours)", "max(0.0, day_hours + spent_hours)"),
        ("left_hours - floor * left_of_day_h) / min(1.0", "left_hours - floor * left_of_day_h) / max(1.0"),
        (
            "max(0, ceiling - ground.view.unknown_workers, min",
            "max(0, ceiling + ground.view.unknown_workers, min",
        ),
        ("ceiling - ground.view.leaving_workers))", "ceiling + ground.view.leaving_workers))"),
        ("max(ground.view.assigned_workers, ceiling", "min(ground.view.assigned_workers, ceiling"),
        ("copied(ground.view, leaving_workers=0)", "ground.view"),
        ("ground.last_workers if room is None else room", "0 if room is None else room"),
        ("(workers_max, pinned, rate_limit, budget, capacity)", "(workers_max, pinned, rate_limit, capacity)"),
        ("(fallback, pause, override, schedule, workers_min)", "(fallback, override, pause, schedule, workers_min)"),
    ),
    *_in(
        "limits.py",
        PAUSES,
        ("return ground.memory.paused_workers\n", "return ground.last_workers\n"),
        ("view.assigned_workers + ground.view.unknown_workers", "view.assigned_workers"),
        ("if ground.is_fresh else ()", "if not ground.is_fresh else ()"),
        (", min(ceiling, busy_workers(ground)))", ")"),
    ),
    *_in(
        "story.py",
        ("test_story.py",),
        ('return _FIGURE.sub("#", note)', "return note"),
        ("tuple(map(_circumstance, decision.notes))", "()"),
        ("decision.target_workers, decision.binding, decision.mode", "decision.target_workers, decision.binding"),
    ),
    *_in(
        "decide.py",
        ("test_decide.py", "test_crash_loop.py"),
        ("is not None and not fallback.is_due(view, now_s=now_s)", "is not None"),
        ("if queue.waiting_jobs is None or view.is_failing:", "if queue.waiting_jobs is None:"),
    ),
    *_in(
        "fallback.py",
        ("test_limits.py", "test_decide.py"),
        ("age_s > profile.fallback_after_s", "age_s < profile.fallback_after_s"),
        ("or is_fresh(view, now_s=now_s)", ""),
    ),
    *_in(
        "pauses.py",
        PAUSES,
        ("return max(last_workers, min(count, existing_workers))", "return last_workers"),
        ("return max(last_workers, min(count, existing_workers))", "return existing_workers"),
        ("        return max(paused_workers, busy_workers)\n", "        return paused_workers\n"),
        ("max(count, paused_workers, busy_workers)", "max(count, paused_workers)"),
        ("min(count, max(paused_workers, busy_workers))", "min(count, paused_workers)"),
        ("now_s >= self.until_s", "now_s <= self.until_s"),
        ("return max(paused_workers, target_workers)", "return paused_workers"),
        ("return min(paused_workers, asked_workers)", "return paused_workers"),
    ),
    *_in(
        "profile.py",
        PAUSES,
        ("return self.mode if pause is None else pause.mode", "return self.mode"),
    ),
    *_in(
        "settle.py",
        PAUSES,
        ("return max(paused_workers(outcome.decision.target_workers, ground), busy", "return max(0, busy"),
        ("outcomes = _unexchanged(outcomes, current)", "outcomes = tuple(outcomes)"),
        ("None if paused is None else min(paused, max", "None if paused is None else max(paused, max"),
    ),
    *_in(
        "share.py",
        SHARE,
        ("(-claim.priority, claim.pool)", "(claim.priority, claim.pool)"),
        ("min(claim.guaranteed_workers, claim.workers)", "claim.guaranteed_workers"),
        ("min(claim.guaranteed_workers, claim.workers)", "0"),
        ("/ (claim.weight * urgency_weight(claim.urgency))", "* (claim.weight * urgency_weight(claim.urgency))"),
        ("claim.weight * urgency_weight(claim.urgency)", "claim.weight"),
        ("-claim.urgency, claim.pool, kinds[claim.pool])", "claim.urgency, claim.pool, kinds[claim.pool])"),
        ("if granted[pool] == wanted[pool]:", "if granted[pool] > wanted[pool]:"),
        ("return max((weight for", "return min((weight for"),
        ("if urgency >= from_urgency", "if urgency > from_urgency"),
        ("(worst_wait_s(decision) or 0.0) / decision", "(worst_wait_s(decision) or 0.0) * decision"),
    ),
    *_in(
        "placement.py",
        PLACEMENT,
        ("(-target.priority, target.pool)", "(target.priority, target.pool)"),
        ("self.missing += workers - kept", "self.missing -= workers - kept"),
        ("rooms.put(host_id, self.kind, -1)", "rooms.put(host_id, self.kind, 1)"),
        ("return not has_idle, -beside, -rooms.by_host", "return has_idle, -beside, -rooms.by_host"),
        ("return not has_idle, -beside, -rooms.by_host", "return not has_idle, -beside, rooms.by_host"),
        ("each.target.priority >= part.target.priority", "each.target.priority > part.target.priority"),
        ("part.by_host.get(host_id, 0) + 1", "part.by_host.get(host_id, 0)"),
        ("and worker.is_busy is not False:", "and worker.is_busy:"),
        ("worker.state is WorkerState.RUNNING and worker", "worker"),
        ("has_idle = self.by_host[host_id] > busy", "has_idle = self.by_host[host_id] < busy"),
        ("key=lambda offer: len(offer[1])", "key=lambda offer: -len(offer[1])"),
        ("target.workers - target.burst_workers) - sum(", "target.workers) - sum("),
        ("row.restart_generation if row else 0", "0"),
    ),
    *_in(
        "room.py",
        PLACEMENT,
        ("if host.is_known), key", "if host), key"),
        ("kept = min(workers, self.fitting(kind))", "kept = workers"),
        ("fitting = min(fitting, self._memory_left // memory)", "fitting = max(fitting, self._memory_left // memory)"),
        ("return max(cpu_load, memory_load)", "return min(cpu_load, memory_load)"),
        ("self._cpu_left -= cpu * workers", "self._cpu_left -= cpu"),
        ("if rooms else None", "if rooms else 0"),
    ),
    *_in(
        "feasibility.py",
        ("test_feasibility.py",),
        ("beside = math.floor(busy_workers) if burst_slots", "beside = math.ceil(busy_workers) if burst_slots"),
        ("beside + math.ceil(burst_slots / slots_per_worker)", "beside + math.floor(burst_slots / slots_per_worker)"),
        ("guard.by_rate.least_spare(1 - percentile / 100)", "guard.by_rate.least_spare(percentile / 100)"),
        ("max(0.0, _strictest_s(profile) - MARGIN_S)", "max(0.0, _strictest_s(profile) + MARGIN_S)"),
    ),
    *_in(
        "queueing.py",
        ("test_queueing.py",),
        ("each = 1 + math.floor(target_s / service_time_s + ROUNDING)", "each = 1 + target_s / service_time_s"),
    ),
    *_in(
        "beat.py",
        PERIOD,
        ("return max(tick_s / 2, self.stray_s) + self._unsure", "return self._unsure"),
        ("tick_s / 2 + STRAYS * self.stray_s + self._unsure_s(tick_s))", "tick_s / 2)"),
        ("jobs * ODD_TIMES >= self.jobs[0]", "jobs > 0"),
        ("evidence=rhythm.evidence + against", "evidence=rhythm.evidence - against"),
        ("evidence=min(SURE, rhythm.evidence + more)", "evidence=rhythm.evidence + more"),
        ("more = of_hit if is_right else", "more = of_hit if True else"),
        ("rank = 1 if len(bursts) >= ODD_BURSTS", "rank = 1 if len(bursts) < ODD_BURSTS"),
        ("rhythm.jobs[-1] - max(rhythm.bursts[-1], default=0)", "rhythm.jobs[-1]"),
        ("if whole >= len(sums) - 1:", "if whole > len(sums) - 1:"),
        ("evidence = likeliest.evidence - math.log(len(tried))", "evidence = likeliest.evidence + 5"),
        ("evidence += for_hit if len(hits) > 2 else 0.0", "evidence += for_hit"),
        ("return period_s, mean_s + (beat - mean_beat)", "return period_s, mean_s + (mean_beat - beat)"),
        ("-bursts_per_s * 2 * half_s", "-bursts_per_s * half_s / 2"),
    ),
    *_in(
        "period.py",
        PERIOD,
        ("jobs <= AGAIN_TIMES * sum(burst.counts)", "jobs >= 0"),
        ("or silent_jobs >= SILENT_LOG", ""),
        ("CHANCE_SIGMAS * math.sqrt(mean_jobs)", "CHANCE_SIGMAS * mean_jobs"),
        ("each.evidence >= BELIEVED", "each.evidence >= 0"),
        ("(0 if is_of_rhythm else arrived_jobs)", "arrived_jobs"),
        ("after_s=each.near_s(tick_s)", "after_s=0.0"),
        ("unexplained_s = tuple(each_s for each_s in unexplained_s if each_s not in its_own)", "pass"),
        ("from_s=max(now_s, due_s - half_s)", "from_s=due_s - half_s"),
        ("test in (is_due, is_near) for", "test in (is_due,) for"),
    ),
)  # fmt: skip
