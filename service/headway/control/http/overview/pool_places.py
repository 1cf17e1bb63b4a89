"""Where a pool's workers run, or could: the hosts, as pools search them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from headway.scaling.conditions.pool_sentences import ago, listed
from headway.scaling.model import Host, HostState
from headway.scaling.profile import Profile
from headway.store.overview import HostRow

PLACES_REPORT_LATE_S = 25.0  # agents report every 15 s, give or take a fifth; nearly half of a lease is left then


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


def is_overdue(row: HostRow) -> bool:
    """Whether a host that has a lease should have reported by now."""
    return row.host.is_known and not has_hung_up(row) and (row.host.silent_s or 0.0) > PLACES_REPORT_LATE_S


def has_hung_up(row: HostRow) -> bool:
    """Whether the connection of a host that has a lease has ended, and it has not reported since."""
    return row.host.is_known and row.hung_up_s is not None


def no_host(profile: Profile, places: Places) -> str | None:
    """Why no host can take a worker of the pool; ``None`` where one could, whether it has room or not."""
    rows = places.of_template(profile.template)
    able = [row for row in rows if _fits(row.host, profile)]
    serving = [row for row in able if row.host.is_known and row.host.state is HostState.SERVING]
    if any(row.host.can_write for row in serving):
        return None
    if serving:
        return f"no host with template {profile.template!r} can write to its state or log folder"
    if any(row.host.is_known for row in able):
        return f"every host with template {profile.template!r} is cordoned or draining"
    if able:
        return f"no reachable host has template {profile.template!r}; unreachable: {away(able)}"
    if not any(row.host.is_known for row in places.hosts):
        return "no host is reachable" if places.hosts else "no host has enrolled"
    if any(row.host.is_known for row in rows):
        return f"no host with template {profile.template!r} has the labels that the profile asks for"
    return f"no reachable host has template {profile.template!r}: no host.toml names it"


def away(hosts: Iterable[HostRow]) -> str:
    """The names of those that are unreachable, and when each last reported."""
    return reporters([row for row in hosts if not row.host.is_known])


def reporters(hosts: Iterable[HostRow]) -> str:
    """The names of hosts, and when each last reported."""
    return listed([f"{row.host.name} (last report {ago(row.host.silent_s)}{_expired(row)})" for row in hosts])


def expired_s(row: HostRow) -> float | None:
    """Since the certificate of a host that does not report has expired, which may be why; ``None``: it has not."""
    is_silent = not row.host.is_known or has_hung_up(row) or is_overdue(row)
    left_s = row.certificate_left_s
    return -left_s if is_silent and left_s is not None and left_s <= 0.0 else None


def _expired(row: HostRow) -> str:
    since_s = expired_s(row)
    return "" if since_s is None else f"; its certificate expired {ago(since_s)}"


def _fits(host: Host, profile: Profile) -> bool:
    """Whether the host's template has the labels that the profile asks for."""
    asked = profile.placement.labels
    return not asked or any(
        each.name == profile.template
        and all({**host.labels, **each.labels}.get(key) == value for key, value in asked.items())
        for each in host.templates
    )
