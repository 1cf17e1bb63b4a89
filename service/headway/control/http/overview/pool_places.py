"""Where a pool's workers run, or could: the hosts, as pools search them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from headway.scaling.conditions.host_facts import HostRow
from headway.scaling.conditions.pool_facts import NoHost
from headway.scaling.model import Host, HostState
from headway.scaling.profile import Profile


class Places:
    """The hosts as pools search them. Made once an overview: ten thousand pools must not each read every host."""

    def __init__(self, hosts: Sequence[HostRow], *, now_s: float) -> None:
        self.hosts = hosts
        self._now_s = now_s
        self._with_template: dict[str, list[HostRow]] = defaultdict(list)
        self._with_pool: dict[str, list[HostRow]] = defaultdict(list)
        self._oldest_s: dict[str, float | None] = {}
        for row in hosts:
            for name in {template.name for template in row.host.templates}:
                self._with_template[name].append(row)
            for pool in {worker.pool for worker in row.host.workers}:
                self._with_pool[pool].append(row)

    def of_template(self, template: str) -> Sequence[HostRow]:
        """The hosts that have reported ``template``, unreachable ones included."""
        return self._with_template.get(template, [])

    def of_pool(self, pool: str) -> Sequence[HostRow]:
        """The hosts that run workers of ``pool``, or may."""
        return self._with_pool.get(pool, [])

    def reported_age_s(self, profile: Profile) -> float | None:
        """How old the counts of its workers are: of the oldest report among reachable hosts that run, or could, some.

        ``None`` where there is no such host.
        """
        if profile.template not in self._oldest_s:
            self._oldest_s[profile.template] = self._oldest_age_s(self.of_template(profile.template))
        ages = (self._oldest_s[profile.template], self._oldest_age_s(self.of_pool(profile.pool)))
        return max((age_s for age_s in ages if age_s is not None), default=None)

    def _oldest_age_s(self, rows: Iterable[HostRow]) -> float | None:
        reported = [row.reported_at_s for row in rows if row.host.is_known and row.reported_at_s is not None]
        return max(0.0, self._now_s - min(reported)) if reported else None


def why_no_host(profile: Profile, places: Places, able: Sequence[HostRow]) -> NoHost | None:
    """Why no host can take a worker of the pool; ``None`` where one could, whether it has room or not.

    ``able`` are the hosts that ``able_hosts`` returns for it.
    """
    serving = [row for row in able if row.host.is_known and row.host.state is HostState.SERVING]
    if any(row.host.can_write for row in serving):
        return None
    if serving:
        return NoHost.UNWRITABLE
    if any(row.host.is_known for row in able):
        return NoHost.SHUT
    if able:
        return NoHost.AWAY
    if not any(row.host.is_known for row in places.hosts):
        return NoHost.NONE_REACHABLE if places.hosts else NoHost.NONE_ENROLLED
    has_template = any(row.host.is_known for row in places.of_template(profile.template))
    return NoHost.UNLABELLED if has_template else NoHost.UNNAMED


def able_hosts(profile: Profile, places: Places) -> Sequence[HostRow]:
    """The hosts whose template has the labels that the profile asks for, unreachable ones included."""
    rows = places.of_template(profile.template)
    return [row for row in rows if _fits(row.host, profile)] if profile.placement.labels else rows


def _fits(host: Host, profile: Profile) -> bool:
    """Whether the host's template has the labels that the profile asks for."""
    asked = profile.placement.labels
    return not asked or any(
        each.name == profile.template
        and all({**host.labels, **each.labels}.get(key) == value for key, value in asked.items())
        for each in host.templates
    )
