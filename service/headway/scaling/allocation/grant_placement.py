"""Placing what was shared out, where room is short: guarantees first, whatever moves for them, then other grants.

What is in place beyond its pool's grant leaves only for somebody who was granted more than he has. What nobody needs
in the end stays, and what is left goes to who still wants it.
"""

import heapq
from collections.abc import Mapping, Sequence
from itertools import groupby

from headway.scaling.allocation.fair_share import Claim, Shares, pace_of
from headway.scaling.placement.displacement import Freed, Takeover
from headway.scaling.placement.guarantee_moves import GUARANTEE_MOVES_MAX, moved_for_guarantees
from headway.scaling.placement.pool_parts import Part
from headway.scaling.placement.worker_placer import Placing

GRANT_PASSES_MAX = 4  # each but the last brings somebody nearer to his grant; two are usual


class Realising:
    """One time of placing what was shared out."""

    def __init__(self, placing: Placing, claims: Sequence[Claim], shares: Shares) -> None:
        self._placing = placing
        self._claims = sorted(claims, key=lambda claim: (-claim.priority, claim.pool))
        self._shares = shares
        self._parts: dict[str, list[Part]] = {}
        for part in placing.parts:
            self._parts.setdefault(part.target.pool, []).append(part)
        self._moves_left = GUARANTEE_MOVES_MAX
        self._guaranteed = self._guarantees()
        self._granted = {pool: max(workers, self._guaranteed[pool]) for pool, workers in self._shares.granted.items()}

    @property
    def has_moved_guaranteed(self) -> bool:
        """Whether guaranteed workers made way for others that are guaranteed."""
        return self._moves_left < GUARANTEE_MOVES_MAX

    def _guarantees(self) -> Mapping[str, int]:
        """What was shared out of each guarantee; all of all where all are in place, which no search has to find."""
        wanted = {claim.pool: min(claim.guaranteed_workers, claim.workers) for claim in self._claims}
        is_in_place = all(self._placing.placed(pool) >= workers for pool, workers in wanted.items())
        return wanted if is_in_place else self._shares.guaranteed

    def realise(self) -> None:
        """Place as much as can be of what was granted, then of what is wanted."""
        for _ in range(GRANT_PASSES_MAX):
            moved = self._placing.leave_ailing()
            freed = self._freed()
            takeover = Takeover(self._placing, self._guaranteed, freed)
            gained = self._guarantee(takeover) + self._grant(takeover)
            self._restore(freed)
            while self._return():
                pass  # who returns leaves a place that another may return to
            gained += self._top_up()
            if not moved and (not gained or not self._is_any_lacking()):
                return

    def _is_any_lacking(self) -> bool:
        return any(self._placing.placed(pool) < workers for pool, workers in self._granted.items())

    def _grant_of(self, part: Part) -> int:
        """Base workers come first."""
        granted = self._granted[part.target.pool]
        base = min(granted, part.target.workers - part.target.burst_workers)
        return min(part.wanted, granted - base) if part.is_burst else base

    def _freed(self) -> Freed:
        """Let what is beyond the grants go for now."""
        freed = {}
        for part in self._placing.parts:
            beyond = part.placed - self._grant_of(part)
            if beyond > 0:
                freed[part] = self._placing.shrink(part, beyond, may_stay_shut=True)
        return freed

    def _guarantee(self, takeover: Takeover) -> int:
        """Give the guarantees their places, the largest workers of a priority first. Returns how many got one."""
        missing = [claim for claim in self._claims if self._placing.placed(claim.pool) < self._guaranteed[claim.pool]]
        missing.sort(key=lambda claim: (-claim.priority, -self._size(claim), claim.pool))
        before = sum(self._placing.placed(claim.pool) for claim in missing)
        is_through = True
        for claim in missing:
            while self._placing.placed(claim.pool) < self._guaranteed[claim.pool]:
                part = self._next(claim.pool)
                if self._placing.add_home(part) is None and takeover.take(part, is_guarantee=True) is None:
                    is_through = False
                    break
        if not is_through:
            self._moves_left -= moved_for_guarantees(
                self._placing, self._parts, self._guaranteed, self._shares.floors, moves_max=self._moves_left
            )
        return sum(self._placing.placed(claim.pool) for claim in missing) - before

    def _size(self, claim: Claim) -> float:
        return self._placing.rooms.part_of(self._parts[claim.pool][0].kind)

    def _next(self, pool: str) -> Part:
        """The part of a pool that gets the next worker."""
        return next(part for part in self._parts[pool] if part.missing > 0)

    def _grant(self, takeover: Takeover) -> int:
        """Give the other grants their places. Returns how many got one."""
        gained = 0
        # Where small ones spread first, no host might be left to a large one that was granted its place beside them.
        for part in sorted(self._placing.hardest_first(), key=lambda part: -part.target.priority):
            granted = self._grant_of(part)
            while part.placed < granted:
                if self._placing.add_home(part) is None and takeover.take(part, is_guarantee=False) is None:
                    break
                gained += 1
        return gained

    def _restore(self, freed: Freed) -> None:
        """Let stay what nobody needed the place of."""
        for part, left in freed.items():
            for host_id, workers in left.items():
                room = self._placing.rooms.by_host[host_id]
                if back := min(workers, room.fitting(part.kind)):
                    self._placing.put(part, host_id, back)

    def _return(self) -> int:
        """Let stay where it was what moved and need not have. Returns how many."""
        returned = 0
        for part in self._placing.parts:
            left = [each for each, workers in part.before.items() if part.by_host[each] < workers]
            came = [each for each, there in part.by_host.items() if there > part.before.get(each, 0)] if left else []
            for host_id in left:
                while came and part.by_host[host_id] < part.before[host_id] and self._placing.may_return(part, host_id):
                    self._placing.put(part, host_id, 1)
                    self._placing.put(part, came[-1], -1)
                    returned += 1
                    if part.by_host[came[-1]] == part.before.get(came[-1], 0):
                        came.pop()
        return returned

    def _top_up(self) -> int:
        """Give what is left to who wants it, always one more to the pool that is furthest behind. Returns how many."""
        gained = 0
        for _, rank in groupby(self._claims, key=lambda claim: claim.priority):
            behind = [
                (self._placing.placed(claim.pool) * pace, -claim.urgency, claim.pool, pace)
                for claim in rank
                if self._placing.placed(claim.pool) < claim.workers
                for pace in [pace_of(claim, self._placing.rooms, self._parts[claim.pool][0].kind)]
            ]
            heapq.heapify(behind)
            while behind:
                _, calm, pool, pace = behind[0]
                if self._placing.add_home(self._next(pool)) is None:
                    heapq.heappop(behind)
                    continue
                gained += 1
                if any(part.missing > 0 for part in self._parts[pool]):
                    heapq.heapreplace(behind, (self._placing.placed(pool) * pace, calm, pool, pace))
                else:
                    heapq.heappop(behind)
        return gained
