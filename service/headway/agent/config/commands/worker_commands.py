"""Command lines of workers: of which library, for which queues, and which of their words a template may keep. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from headway.agent.config.commands.worker_options import CELERY, RQ, SOLO, Options
from headway.agent.config.worker_programs import library_of, program_of
from headway.connections import has_password

NAMED_ONLY = frozenset({"arq", "dramatiq", "huey", "procrastinate", "taskiq"})
"""Libraries whose workers Headway starts and whose queues no collector reads."""
_SHOWN_LEVELS = {"DEBUG", "INFO"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazard:
    """An option that does damage in workers that an agent starts and stops."""

    option: str
    reason: str
    """Without its full stop."""


SCHEDULER = Hazard(
    option="--with-scheduler",
    reason="without it in any worker of a queue, nobody moves its scheduled jobs, and its retries and repeats with an "
    "interval, into the queue when they are due",
)
"""What a worker of RQ needs for work that is due later."""


RQ_FORKING_CLASSES = frozenset(
    {
        *("headway.workers.rq.DrainingWorker", "headway.workers.rq.ReportingWorker"),
        *("rq.Worker", "rq.worker.RandomWorker", "rq.worker.RoundRobinWorker", "rq.worker.Worker"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerCommand:
    """A worker's command line, understood."""

    library: str
    program: tuple[str, ...]
    """What starts the library: a program, or an interpreter with a module or script."""
    words: tuple[str, ...] = ()
    """The arguments that a template keeps, without queues and concurrency."""
    queues: tuple[str, ...] = ()
    """As named; none: those that its application declares."""
    excluded: tuple[str, ...] = ()
    broker: str | None = field(default=None, repr=False)
    concurrency: int | None = None
    is_single: bool = False
    """Whether it runs one job at once whatever its concurrency says."""
    folder: str | None = None
    """Where it changes to, if it says so."""
    app: str | None = None
    paths: tuple[str, ...] = ()
    """Where it searches its modules first, if it says so."""
    has_settings: bool = False
    """Whether a module that it names may say where its broker is."""
    worker_class: str | None = None
    dequeue_strategy: str = "default"
    """Of RQ: how it says that its workers take from several queues."""
    remarks: tuple[str, ...] = ()
    """What was left out and is missed, and what is kept and does damage, a sentence each."""
    hazards: tuple[Hazard, ...] = ()
    """What does damage in it as it is."""
    lacks: tuple[Hazard, ...] = ()
    """Options without which some jobs never run, unless another worker has them."""


@dataclass(slots=True)
class _Taken:
    """Words of a command, taken apart."""

    kept: list[str] = field(default_factory=list)
    positional: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)


def understood(argv: Sequence[str]) -> WorkerCommand | None:
    """The worker that ``argv`` starts; ``None``: it starts something else."""
    program, rest = program_of(argv)
    name = PurePath(program[-1]).name if program else ""
    library = library_of(program)
    if name == "manage.py" and rest[:1] == ["rqworker"]:
        return _rq(program, rest)
    if library == "celery":
        return _celery(program, rest)
    if library == "rq":
        return _rq(program, rest if name != "rqworker" else ["worker", *rest])
    if library in NAMED_ONLY and (library not in {"procrastinate", "taskiq"} or "worker" in rest):
        return WorkerCommand(library=library, program=program)
    return None


def runs_jobs_in_own_groups(argv: Sequence[str]) -> bool:
    """Whether the worker of RQ that ``argv`` starts runs each job in a process group of the job's own.

    One that runs jobs itself has their processes in its own group, and a class of the application's may do so.
    """
    command = understood(argv)
    if command is None or command.library != "rq" or "worker-pool" in argv:
        return False
    return command.worker_class is None or command.worker_class in RQ_FORKING_CLASSES


def leaves_due_jobs(argv: Sequence[str]) -> bool:
    """Whether the worker that ``argv`` starts never moves jobs that are due later into its queue."""
    command = understood(argv)
    return command is not None and SCHEDULER in command.lacks


def _celery(program: tuple[str, ...], rest: list[str]) -> WorkerCommand | None:
    taken = _taken(rest, CELERY)
    if taken.positional[:1] != ["worker"]:
        return None
    values = taken.values
    level = values.get("--loglevel", "").upper()
    spare = [*_secret_remarks(taken), *_dropped_remarks(taken, CELERY)]
    is_solo = values.get("--pool") == "solo"
    spare += [f"--pool solo is kept: {SOLO}"] if is_solo else []
    grown = _number(values.get("--autoscale", "").partition(",")[0])  # which counts more than --concurrency
    return WorkerCommand(
        library="celery",
        program=program,
        words=(*taken.kept, "--loglevel", level if level in _SHOWN_LEVELS else "INFO"),
        queues=_listed(values.get("--queues")),
        excluded=_listed(values.get("--exclude-queues")),
        broker=values.get("--broker"),
        concurrency=grown or _number(values.get("--concurrency")),
        is_single=is_solo,
        folder=values.get("--workdir"),
        app=values.get("--app"),
        remarks=tuple(spare),
        hazards=(*_hazards(taken, CELERY), *([Hazard(option="--pool solo", reason=SOLO)] if is_solo else [])),
    )


def _rq(program: tuple[str, ...], rest: list[str]) -> WorkerCommand | None:
    taken = _taken(rest, RQ)
    words = taken.positional
    if not words or words[0] not in {"worker", "worker-pool", "rqworker"}:
        return None
    verb, *queues = words
    return WorkerCommand(
        library="rq",
        program=program,
        words=("worker" if verb == "worker-pool" else verb, *taken.kept),
        queues=tuple(dict.fromkeys(queues)) or ("default",),
        broker=taken.values.get("--url"),
        paths=tuple(value for name, value in taken.values.items() if name in {"--path", "--pythonpath"}),
        has_settings=verb == "rqworker" or "--config" in taken.given,
        concurrency=1,
        is_single=True,
        worker_class=taken.values.get("--worker-class"),
        dequeue_strategy=taken.values.get("--dequeue-strategy", "default"),
        remarks=(*_secret_remarks(taken), *_dropped_remarks(taken, RQ)),
        hazards=tuple(_hazards(taken, RQ)),
        lacks=() if SCHEDULER.option in taken.given else (SCHEDULER,),
    )


def _taken(words: Iterable[str], options: Options) -> _Taken:
    taken = _Taken()
    rest = iter(words)
    for word in rest:
        name, value, spelled = _option(word, rest, options)
        if name is None:
            taken.positional.append(word)
            taken.kept += [] if options.are_words_queues else [word]
            continue
        taken.given.add(name)
        if value is not None:
            taken.values[name] = value
        is_secret = value is not None and has_password(value)
        if name not in options.dropped and not is_secret:
            taken.kept += spelled
    return taken


def _option(word: str, rest: Iterator[str], options: Options) -> tuple[str | None, str | None, list[str]]:
    """The option that ``word`` begins, with its value and as it was written; no name: it is no option."""
    if not word.startswith("-") or word == "-":
        return None, None, [word]
    name, equals, value = word.partition("=")
    if equals and word.startswith("--"):
        return options.taking.get(name, name), value, [word]
    if word in options.taking:
        value = next(rest, "")
        return options.taking[word], value, [word, value]
    short = next((each for each in options.taking if len(each) == 2 and word.startswith(each)), None)
    if short and not word.startswith("--"):  # -c4
        return options.taking[short], word[2:].removeprefix("="), [word]
    return options.flags.get(word, word), None, [word]


def _secret_remarks(taken: _Taken) -> Iterator[str]:
    for name, value in taken.values.items():
        if has_password(value) and name not in {"--broker", "--url"}:
            yield f"{name} is left out, whose value holds a password: give it in a variable, or add it"


def _dropped_remarks(taken: _Taken, options: Options) -> Iterator[str]:
    for name in sorted(taken.given):
        if options.dropped.get(name):
            yield f"{name} is left out: {options.dropped[name]}"


def _hazards(taken: _Taken, options: Options) -> Iterator[Hazard]:
    for name in sorted(taken.given & options.hazards):
        yield Hazard(option=name, reason=options.dropped[name])


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.strip() for each in (text or "").split(",") if each.strip()))


def _number(text: str | None) -> int | None:
    """The number above zero in ``text``: to Celery, zero is a job per core."""
    try:
        number = int(float(text or 0))
    except (ValueError, OverflowError):
        return None
    return number if number > 0 else None
