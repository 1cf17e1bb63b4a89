"""How the counts of other makers' strategies change: limits, so they only ever hold the last target."""

from headway.peers.formulas.cooldown import conservative, is_reversal_held
from headway.scaling.explanations.wording import LimitWording
from headway.scaling.policy.ground import Ground


def cooldown(count: int, ground: Ground) -> int:
    """No change, up or down, within ``cooldown_s`` of the last: an urgent rise waits as well."""
    last = ground.memory.last_move
    if last is None or ground.now_s - last.at_s >= ground.view.options["cooldown_s"]:
        return count
    return ground.last_workers


def anti_flapping(count: int, ground: Ground) -> int:
    """No turn within ``cooldown_s`` of the last move, but for a rise in a breach, and down by a share at most.

    The whole rule of the third version: its cooldown, then its conservative policy.
    """
    objective_s = ground.view.profile.objective.target_s
    ages_s = [queue.oldest_age_s or 0.0 for queue in ground.view.queues]
    if is_reversal_held(
        ground.last_workers,
        count,
        ground.memory.last_move,
        now_s=ground.now_s,
        cooldown_s=ground.view.options["cooldown_s"],
        is_breaching=max(ages_s, default=0.0) >= objective_s,
    ):
        return ground.last_workers
    return conservative(ground.last_workers, count, share=ground.view.options["step_down_share"])


COOLDOWN = {
    "cooldown": LimitWording("{before} are needed, but the strategy's cooldown allows no change yet: {after} stay.")
}
ANTI_FLAPPING = {
    "anti_flapping": LimitWording(
        label="anti-flapping",
        sentence="{before} are needed; the strategy turns only after its cooldown and scales down by a share at a "
        "time: {after} for now.",
    )
}
