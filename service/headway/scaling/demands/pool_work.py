"""What the jobs of a pool need: those of all members together, and never less than any one by its own objective.

Source: docs/why/demand.md, "Several queues in one pool".
"""

from dataclasses import dataclass, replace

from headway.scaling.demands.deadlines import backlog_drain, completions_per_s, taking, waiting
from headway.scaling.demands.due_work import due_work
from headway.scaling.demands.jobs_in_front import drain_behind, without_slots
from headway.scaling.demands.needs import NO_NEED, Need, Supply, greatest, need
from headway.scaling.demands.trust import slow_start_s
from headway.scaling.model import QueueMetrics
from headway.scaling.model.queue_order import OrderedQueues
from headway.scaling.profile import Profile
from headway.scaling.reading.pool_times import MARGIN_S, PoolTimes
from headway.scaling.view import copied


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolWork:
    """The jobs of a pool, and what says how soon they must start."""

    queue: QueueMetrics
    """All its queues as one."""
    members: OrderedQueues
    profile: Profile
    times: PoolTimes
    slots_max: int
    """The most that the pool may have."""

    def drain(self, given: Supply) -> Need:
        """The slots for the waiting jobs.

        Jobs of other members that start before its own take slots from a member, by the order in which workers take
        jobs.
        """
        needs = [taking(self.queue, given), self._drain_of(self.queue, given, target_s=self._loosest_s)]
        members = self.members.queues
        if len(members) > 1 or self.profile.member_objectives:
            needs += [
                self._drain_of(
                    member,
                    self._with_own_completions(member, given),
                    target_s=self.profile.objective_of(member.queue).target_s,
                    is_behind_others=len(members) > 1,
                )
                for member in members
            ]
        return greatest(needs)

    def drain_of_wave(self, given: Supply, *, slots: int) -> Need | None:
        """The slots for waiting jobs beyond the ``slots`` of a rhythm; ``None`` where these are not to be relied on.

        Jobs of a wave come evenly: the oldest has waited longest and starts first, the newest waits for all others, and
        between those two each waits as much of both as its place in the queue.
        """
        waiting_jobs, left_s = self.queue.waiting_least_jobs, self.profile.objective.target_s - MARGIN_S
        is_late = left_s - (self.queue.oldest_age_s or 0.0) <= 0
        there_slots = given.busy_slots + given.idle_slots + given.coming_slots
        if there_slots < slots or is_late or len(self.members.queues) > 1:
            return None
        if not waiting_jobs:
            return NO_NEED
        sure = replace(given, caution=0.0)  # what the rhythm needs was counted without, and a burst's scatter with
        return need(waiting_jobs, left_s, sure, start_up_s=given.start_up_s)

    def due(self, given: Supply, *, price_s: float) -> Need:
        """The slots for jobs that are due later; to start a worker again costs ``price_s`` worker-seconds."""
        members = [member for member in self.members.queues if member.delayed]
        alone = [(member, self.profile.objective_of(member.queue).target_s) for member in members]
        return greatest(
            due_work(each, given, target_s=target_s, slow_start_s=self._slow_start_s, price_s=price_s)
            for each, target_s in [(self.queue, self._loosest_s), *alone]
        )

    def left_for(self, exposed: QueueMetrics, given: Supply) -> tuple[Supply, int]:
        """What will start jobs of the exposed members, and how many idle slots are about to take jobs of others.

        Whatever the order of the queues: while no job of theirs waits, each slot takes one of the others.
        """
        if exposed is self.queue:
            return given, 0
        own = replace(self._with_own_completions(exposed, given), cycle_s=self.times.cycle_s(exposed))
        return without_slots(own, self.queue.waiting_least_jobs - exposed.waiting_least_jobs)

    def _with_own_completions(self, queue: QueueMetrics, given: Supply) -> Supply:
        """``given`` with none of the slots busy that run jobs of other queues: those may be long ones."""
        # Which slots run an unknown number of its jobs, nobody knows: any of them may, and few of them need.
        least_slots = max(0, queue.in_flight_least_jobs - (queue.reserved_jobs or 0))
        busy_slots = given.busy_slots if queue.running_jobs is None else queue.running_jobs
        per_s = completions_per_s(queue, self.times, least_slots)
        return replace(given, busy_slots=busy_slots, completions_per_s=per_s)

    def _drain_of(self, queue: QueueMetrics, given: Supply, *, target_s: float, is_behind_others: bool = False) -> Need:
        of_batch_s = self.times.batch_cycle_s(queue)
        per_s = min(given.completions_per_s, given.busy_slots / of_batch_s)
        is_same = of_batch_s == given.cycle_s and per_s == given.completions_per_s
        batch = given if is_same else copied(given, cycle_s=of_batch_s, completions_per_s=per_s)
        due = waiting(queue, target_s=target_s, slow_start_s=self._slow_start_s, tick_s=self.times.tick_s)
        alone = backlog_drain(due, batch, slots_max=self.slots_max)
        if not is_behind_others:
            return alone
        behind = drain_behind(queue, due, batch, self.members, self.times, slots_max=self.slots_max)
        return greatest((alone, behind))

    @property
    def _slow_start_s(self) -> float:
        return slow_start_s(self.profile, self.times)

    @property
    def _loosest_s(self) -> float:
        """Within how long all jobs of the pool may wait: those of a stricter queue are counted for themselves."""
        return max(self.profile.objective_of(queue.queue).target_s for queue in self.members.queues)
