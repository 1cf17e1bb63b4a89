"""Which rehearsals are asked for, and one of them after the other: a workload under a strategy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from headway.cli.profiles_file import load_profiles_file
from headway.cli.rehearse.trace_files import Workload
from headway.errors import Invalid
from headway.scaling.model import Mode
from headway.scaling.profile import Profile
from headway.scaling.strategy import Strategy
from headway.simulate.report.rows import Row
from headway.simulate.studies.single_pool import Setting, rehearse
from headway.strategies import refuse_unknown
from headway.zones import zones_of

CAP_WORKERS = 1000  # without a profile: enough not to be what decides
HOSTS_MAX = 1000
SWEPT = "hybrid"
"""The strategy that the risk knob moves."""
SWEEP = (0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0)


def hosts_of(text: str | None) -> tuple[int, int]:
    """How many hosts, and how many workers each has room for, as in ``3x8``."""
    if text is None:
        return 0, 0
    hosts, _, room = text.lower().partition("x")
    if not (hosts.isdecimal() and room.isdecimal() and 1 <= int(hosts) <= HOSTS_MAX and int(room) >= 1):
        raise Invalid(f"--hosts={text!r} must be hosts and the workers that fit on each, as in 3x8")
    return int(hosts), int(room)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One rehearsal: a workload under the strategy that its profile names."""

    workload: Workload
    profile: Profile
    risk: float | None = None
    """The risk knob's place, where it is swept."""
    is_drawn: bool = True
    pools: int = 1

    @property
    def jobs(self) -> int:
        """How many there are."""
        return len(self.workload.jobs)

    @property
    def length_s(self) -> float:
        """From the start to the last arrival."""
        return self.workload.jobs.at_s[-1]

    def rows(
        self, setting: Setting, *, strategies: Mapping[str, Strategy], on_tick: Callable[[float], None] | None = None
    ) -> tuple[Row, ...]:
        """What came of it, in one row. ``on_tick`` receives the time that has passed."""
        profile = self.profile
        result = rehearse(
            self.workload.jobs,
            profile,
            setting,
            begins_at_s=self.workload.begins_at_s,
            strategies=strategies,
            zones=zones_of(profile),
            on_tick=on_tick,
        )
        row = Row(
            workload=self.workload.name,
            strategy=label_of(profile, strategies),
            result=result,
            percentile=profile.objective.percentile,
            risk=self.risk,
            is_drawn=self.is_drawn,
        )
        return (row,)


def base_profile(
    source: str | Profile | None,
    *,
    target_s: float | None = None,
    percentile: float | None = None,
    floor_workers: int | None = None,
    cap_workers: int | None = None,
) -> Profile:
    """The profile to rehearse: that of a file, the one given, else the defaults; what options say replaces its keys."""
    if source is None:
        profile = Profile(pool="rehearsed", queues=("rehearsed/jobs",), template="rehearsed", workers_max=CAP_WORKERS)
    else:
        profile = _profile_of(source) if isinstance(source, str) else source
    objective = replace(
        profile.objective,
        target_s=profile.objective.target_s if target_s is None else target_s,
        percentile=profile.objective.percentile if percentile is None else percentile,
    )
    # A pool that is paused or only advised is rehearsed as if it were let act: else nothing would happen.
    return replace(
        profile,
        objective=objective,
        workers_min=profile.workers_min if floor_workers is None else floor_workers,
        workers_max=profile.workers_max if cap_workers is None else cap_workers,
        mode=Mode.ACT,
        pause=None,
        override=None,
    )


def _profile_of(source: str) -> Profile:
    path, pool = Path(source), ""
    if not path.exists() and ":" in source:
        name, _, pool = source.rpartition(":")
        path = Path(name)
    profiles = {profile.pool: profile for profile in load_profiles_file(path).profiles}
    if pool and pool not in profiles:
        raise Invalid(f"{path} has no pool {pool!r}; it has {', '.join(profiles) or 'none'}")
    if not pool and len(profiles) != 1:
        raise Invalid(
            f"{path} has {len(profiles)} pools: say which, as in --profile {path}:{next(iter(profiles), 'POOL')}"
        )
    return profiles[pool] if pool else next(iter(profiles.values()))


def strategies_of(text: str | None, profile: Profile, known: Mapping[str, Strategy]) -> list[Profile]:
    """A profile for each strategy that ``a,b:key=value,c`` names, each once; without a text the profile alone.

    The numbers of the profile's own strategy are not those of another.
    """
    if text is None:
        refuse_unknown(profile, known)
        return [profile]
    chosen: list[Profile] = []
    breaches: list[str] = []
    for part in dict.fromkeys(part.strip() for part in text.split(",") if part.strip()):
        name, *pairs = part.split(":")
        kept = profile.strategy_options if name == profile.strategy else {}
        try:
            options = {**kept, **dict(map(_option, pairs))}
            chosen.append(replace(profile, strategy=name, strategy_options=options))
            refuse_unknown(chosen[-1], known)
        except Invalid as error:
            breaches += error.rules
    if breaches or not chosen:
        raise Invalid(*(breaches or ["it names none"]), where="--strategy")
    return chosen


def _option(text: str) -> tuple[str, float]:
    key, _, value = text.partition("=")
    try:
        return key, float(value)
    except ValueError as error:
        raise Invalid(f"{text!r} is no number with a name, as in hold_s=30") from error


def risks_of(text: str | None, profile: Profile) -> list[float]:
    """The places of the risk knob to be tried, the profile's own among them; none without a text."""
    if text is None:
        return []
    try:
        risks = SWEEP if text == "sweep" else [float(part) for part in text.split(",")]
        return sorted({*(replace(profile, risk=risk).risk for risk in risks), profile.risk})
    except ValueError as error:
        raise Invalid(f"--risk={text!r}: expected numbers as in 0.5,1,2, or the word sweep") from error


def cases(workloads: Sequence[Workload], profiles: Sequence[Profile], risks: Sequence[float]) -> list[Case]:
    """Every workload under every profile; where the risk knob moves its strategy, at each of the knob's places."""
    found = []
    for workload, profile in product(workloads, profiles):
        if profile.strategy != SWEPT or not risks:
            found.append(Case(workload=workload, profile=profile))
            continue
        for risk in risks:
            swept = replace(profile, risk=risk)
            found.append(Case(workload=workload, profile=swept, risk=risk, is_drawn=risk == profile.risk))
    return found


def label_of(profile: Profile, known: Mapping[str, Strategy]) -> str:
    """The strategy, and those of its numbers that are not its defaults."""
    defaults = known[profile.strategy].options
    changed = [f"{key}={value:g}" for key, value in profile.strategy_options.items() if defaults[key] != value]
    return ":".join([profile.strategy, *changed])
