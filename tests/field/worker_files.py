"""How the workers of a case are started: command line, ``host.toml`` and ``profiles.yaml``, as ``init`` has them."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from field.cases import Case, Queues, Workers, Wrapper
from headway.agent.config.library_presets import RQ_SAFE, STARTERS, LibraryPreset, template_text
from headway.agent.config.templates import WORKER_ID, WORKER_ID_IN_ARGV, Template
from support.environments import python_with

APPS = Path(__file__).parent / "apps"
PACKAGES = ("celery[redis]==5.7.0", "gevent==25.9.1", "rq==2.12.0", "dramatiq[rabbitmq]==2.2.1")
"""Of the applications, whose environment has nothing of Headway."""
TARGET_S = 30.0  # longer than a worker takes to start here, or workers are pre-warmed and pools stay above their floor
READY_WITHIN_S = 200  # many workers start at once
KNOWS_REPORTER = "reporter" in {field.name for field in fields(Template)}
"""Whether ``host.toml`` has the key ``reporter``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the application of a case is: its broker as each side names it, its queues, its log."""

    case: Case
    connection: str
    """Name of the broker in ``profiles.yaml``."""
    connection_table: Mapping[str, str]
    """The broker in ``profiles.yaml``."""
    url: str
    """The broker, as the application names it."""
    folder: Path
    """Of this case alone."""

    @property
    def queue(self) -> str:
        """The first queue."""
        return f"{self.case.name}.mail"

    @property
    def second_queue(self) -> str | None:
        """The other queue; ``None`` if there is one queue."""
        return None if self.case.queues is Queues.ONE else f"{self.case.name}.bulk"

    @property
    def served(self) -> Sequence[str]:
        """The queues that the workers serve."""
        is_second_served = self.case.queues is Queues.TWO_IN_POOL and self.second_queue
        return [self.queue, *([self.second_queue] if is_second_served and self.second_queue else [])]

    @property
    def log(self) -> Path:
        """The application's own log."""
        return self.folder / "jobs.log"


def host_file(places: Iterable[Place], *, starting_max: int) -> str:
    """``host.toml`` with a template per case. The host has the machine's name, as workers report it to their broker."""
    head = f"[host]\nstarting_max = {starting_max}\n"
    return head + "".join(_template(place) for place in places)


def profiles(places: Iterable[Place], *, workers_min: int, workers_max: int) -> str:
    """``profiles.yaml`` with a pool per case. A lower count counts at once, so that workers leave beside long jobs."""
    connections = {place.connection: place.connection_table for place in places}
    pools = {
        place.case.name: {
            "queues": [f"{place.connection}/{queue}" for queue in place.served],
            "template": place.case.name,
            "workers_min": workers_min,
            "workers_max": workers_max,
            "hold_down_s": 0,
            "forecast": "off",
            "objective": {"target_s": TARGET_S, "percentile": 99},
        }
        for place in places
    }
    return json.dumps({"brokers": connections, "pools": pools}, indent=1)  # which is YAML


def _template(place: Place) -> str:
    text = "\n" + template_text(place.case.name, _preset(place), is_first=False) + "measured = false\n"
    text = re.sub(r"ready_timeout_s = \d+", f"ready_timeout_s = {READY_WITHIN_S}", text)
    return _with_reporter(text, place.case)


def _with_reporter(text: str, case: Case) -> str:
    """``text`` with the key that says whether a reporter is loaded, where the file format has that key."""
    text = re.sub(r"(?m)^reporter = .*\n", "", text)
    if not KNOWS_REPORTER or not case.is_celery:
        return text
    table, value = f"[templates.{case.name}]\n", "celery" if case.has_reporter else "none"
    return text.replace(table, f'{table}reporter = "{value}"\n', 1)


def _preset(place: Place) -> LibraryPreset:
    preset = {"celery": _celery, "rq": _rq, "dramatiq": _dramatiq}[place.case.library](place)
    program = python_with(*PACKAGES).with_name(preset.argv[0])
    return replace(
        preset,
        argv=_wrapped([str(program), *preset.argv[1:]], place),
        working_directory=str(APPS),
        environment={**preset.environment, "JOB_LOG": str(place.log), "ACKS": place.case.acks},
        cpu_cores=0.02,  # so that the cores of this machine limit no pool
        memory="32MB",
    )


def _celery(place: Place) -> LibraryPreset:
    preset, case = STARTERS["celery"], place.case
    pool = [] if case.workers in (Workers.PREFORK_1, Workers.PREFORK_4) else ["--pool", case.workers]
    given = {"APP": "celery_app", "QUEUE": ",".join(place.served), f"{preset.slots}": f"{case.slots}"}
    words = [given.get(word, word) for word in preset.argv]
    words += [*pool, *([] if case.has_heartbeat else ["--without-heartbeat"])]
    return replace(preset, argv=words, slots=case.slots, environment={"CELERY_BROKER_URL": place.url})


def _rq(place: Place) -> LibraryPreset:
    # `init` leaves Headway's own class out where the application's environment does not have it.
    preset = STARTERS["rq"]
    words = [word for word in preset.argv if word not in (*RQ_SAFE, "QUEUE")]
    simple = ["--worker-class", "rq.worker.SimpleWorker"] if place.case.workers is Workers.RQ_SIMPLE else []
    return replace(preset, argv=[*words, *simple, *place.served], environment={"RQ_REDIS_URL": place.url})


def _dramatiq(place: Place) -> LibraryPreset:
    preset = STARTERS["dramatiq"]
    at = preset.argv.index("QUEUE")
    words = ["dramatiq_app" if word == "APP" else word for word in preset.argv]
    variables = {"BROKER_URL": place.url, "QUEUES": ",".join(place.served)}
    return replace(preset, argv=[*words[:at], *place.served, *words[at + 1 :]], environment=variables)


def _wrapped(argv: Sequence[str], place: Place) -> Sequence[str]:
    """The command behind the wrapper of the case, which stays there as long as the worker lives."""
    plain = shlex.join(word.replace(WORKER_ID_IN_ARGV, WORKER_ID) for word in argv)
    command = plain.replace(WORKER_ID, f"${{{WORKER_ID}}}")
    match place.case.wrapper:
        case Wrapper.NONE:
            return argv
        case Wrapper.SH:
            return ["sh", "-c", f"{command}; echo ended"]
        case Wrapper.BASH:
            script = place.folder / "worker.sh"
            script.write_text(f"#!/bin/bash\ncd {shlex.quote(str(APPS))}\n{command}\n")
            script.chmod(0o755)
            return [str(script)]
        case Wrapper.NPM:
            scripts = {"worker": f"cd {shlex.quote(str(APPS))} && {command}"}
            (place.folder / "package.json").write_text(json.dumps({"name": "shop", "scripts": scripts}))
            return ["npm", "--prefix", str(place.folder), "run", "worker"]
