"""What shall go wrong in a rehearsal, as it is written on a command line: ``loss:from=10m,until=12m``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from headway.cli.terminal.units import count, described, fraction, seconds
from headway.errors import Invalid
from headway.simulate.engine.faults import Faults, HostOutage, Stretch

Values = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrongs:
    """Everything that goes wrong in one rehearsal."""

    faults: Faults = field(default_factory=Faults)
    host_outages: tuple[HostOutage, ...] = ()
    control_outages: tuple[Stretch, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _FaultKind:
    """A kind of fault: its keys, those that it needs, and one as it is written."""

    keys: Mapping[str, Callable[..., float]]
    needed: frozenset[str]
    example: str


_WHEN = MappingProxyType({"from": seconds, "until": seconds})
KINDS = MappingProxyType(
    {
        "jobs": _FaultKind(
            keys={"fail": fraction, "attempts": count, "retry": seconds},
            needed=frozenset({"fail"}),
            example="jobs:fail=2%,attempts=3,retry=30s",
        ),
        "workers": _FaultKind(
            keys={"live": seconds, "redeliver": seconds},
            needed=frozenset({"live"}),
            example="workers:live=30m,redeliver=60s",
        ),
        "crash-loop": _FaultKind(keys=_WHEN, needed=frozenset(_WHEN), example="crash-loop:from=20m,until=25m"),
        "lag": _FaultKind(keys={"by": seconds}, needed=frozenset({"by"}), example="lag:by=4s"),
        "loss": _FaultKind(keys=_WHEN, needed=frozenset(_WHEN), example="loss:from=20m,until=22m"),
        "host": _FaultKind(
            keys={"number": count, **_WHEN},
            needed=frozenset({"number", *_WHEN}),
            example="host:number=1,from=20m,until=40m",
        ),
        "control": _FaultKind(keys=_WHEN, needed=frozenset(_WHEN), example="control:from=20m,until=22m"),
    }
)


def wrongs_of(texts: Sequence[str], *, hosts: int) -> Wrongs:
    """All that ``texts`` describe, ``KIND:key=value,…`` each.

    Raises:
        Invalid: with every unknown kind and key, and every value that is wrong or missing.
    """
    wrongs, breaches = Wrongs(), []
    for text in texts:
        try:
            wrongs = _with(wrongs, text)
        except Invalid as error:
            breaches += [f"--fault={text!r}: {rule}" for rule in error.rules]
    known = {f"host-{number}" for number in range(1, hosts + 1)}
    if unknown := [outage.host_id for outage in wrongs.host_outages if outage.host_id not in known]:
        breaches.append(f"--fault: there is no {unknown[0]}: --hosts says how many there are, as in 3x8")
    if breaches:
        raise Invalid(*breaches)
    return wrongs


def _with(wrongs: Wrongs, text: str) -> Wrongs:
    name, pairs = described(text)
    kind = KINDS.get(name)
    if kind is None:
        raise Invalid(f"no kind {name!r}; known: {', '.join(KINDS)}")
    values: dict[str, float] = {}
    for key, value in pairs:
        if key not in kind.keys:
            raise Invalid(f"no key {key!r}; known: {', '.join(kind.keys)}")
        values[key] = kind.keys[key](value, option=key)
    if missing := kind.needed - values.keys():
        raise Invalid(f"{' and '.join(sorted(missing))} must be given, as in {kind.example}")
    when = (Stretch(from_s=values["from"], until_s=values["until"]),) if "from" in values else ()
    match name:
        case "control":
            return replace(wrongs, control_outages=wrongs.control_outages + when)
        case "host":
            outages = tuple(HostOutage(host_id=f"host-{values['number']:g}", stretch=each) for each in when)
            return replace(wrongs, host_outages=wrongs.host_outages + outages)
        case _:
            return replace(wrongs, faults=_faults(wrongs.faults, name, values, when))


def _faults(was: Faults, name: str, values: Values, when: tuple[Stretch, ...]) -> Faults:
    """``was`` with the fault of that kind, which is one of a pool's own."""
    match name:
        case "jobs":
            return replace(
                was,
                job_failure_fraction=values["fail"],
                attempts_max=int(values.get("attempts", was.attempts_max)),
                retry_after_s=values.get("retry", was.retry_after_s),
            )
        case "workers":
            again_s = values.get("redeliver", was.redeliver_after_s)
            return replace(was, worker_life_s=values["live"], redeliver_after_s=again_s)
        case "crash-loop":
            return replace(was, crash_loops=was.crash_loops + when)
        case "lag":
            return replace(was, metric_lag_s=values["by"])
        case _:
            return replace(was, metric_losses=was.metric_losses + when)
