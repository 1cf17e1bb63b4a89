"""How one worker is started, as ``host.toml`` says it: like one that runs here, or as its library's makers would."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

from headway.agent.config.celery_command import excluding
from headway.agent.config.commands.worker_commands import SCHEDULER
from headway.agent.config.library_presets import CELERY_NODE, NOTES, RQ, RQ_SAFE, STARTERS, LibraryPreset
from headway.agent.reporting.run_folder import REPORTER
from headway.cli.setup.broker_candidates import URL_VARIABLES, Candidate, as_read, place_of
from headway.cli.setup.running_workers import RunningWorker
from headway.cli.setup.source.celery_apps import CeleryApp
from headway.cli.setup.worker_environment import carried
from headway.connections import has_password

CELERY_URL_VARIABLE = "CELERY_BROKER_URL"  # where Celery and RQ themselves read it
RQ_URL_VARIABLE = "RQ_REDIS_URL"
CELERY_SLOT_CPU_CORES = 0.1
CELERY_SLOT_MEMORY_MB = 64
NO_APP = "APP"
ENVIRONMENTS = (".venv", "venv", "env")
UNKNOWN_SLOTS = (
    "its command line does not say how many jobs it runs at once: write the worker_concurrency of its application as "
    "slots, or 1 where its worker_pool is solo; here slots is the number of cores, Celery's default"
)
_SECRET_NOTE = {"environment": "the URL holds a password, which would show in the list of processes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Templates:
    """What templates are made with, beside the workers."""

    source_folder: Path
    """Where the command was typed: where the code is found."""
    folder: Path
    """Where the files are written: other folders are written as paths."""
    env: Mapping[str, str] = field(repr=False)
    dotenv: Mapping[str, str] = field(repr=False)
    apps: Sequence[CeleryApp] = ()
    """The Celery applications found here."""
    queues_of: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The name of each of ``apps`` -> the queues that its source names."""
    dramatiq_modules: Sequence[str] = ()

    def plain(self, library: str, queues: Sequence[str], candidate: Candidate) -> LibraryPreset:
        """A worker of ``library`` where none runs."""
        if library == "dramatiq":
            return self._dramatiq(queues)
        return self._celery(queues, candidate) if library == "celery" else self._rq(queues, candidate)

    def like(self, worker: RunningWorker, queues: Sequence[str], candidate: Candidate) -> LibraryPreset:
        """A worker as ``worker`` is, for ``queues``."""
        variables, _ = self._taken_over(worker, candidate)
        if worker.command.library == "celery":
            made = self._like_celery(worker, queues, variables)
        else:
            made = self._like_rq(worker, queues, candidate, variables)
        return replace(
            made,
            working_directory=self._directory(Path(worker.folder)),
            user=worker.user,
            remarks=[f"like process {worker.pid}, which runs here", *made.remarks, *self.remarks(worker, candidate)],
        )

    def remarks(self, worker: RunningWorker, candidate: Candidate) -> list[str]:
        """What a template like ``worker`` leaves out, a sentence each."""
        _, missing = self._taken_over(worker, candidate)
        needs = f"{', '.join(missing)} of its environment is left out: start Headway with what its jobs need, or add it"
        by = worker.wrapper
        wrapper = [f"{by.name}, which started it, is left out: {by.hazard}"] if by else []
        return [*worker.command.remarks, *wrapper, *([needs] if missing else [])]

    def _taken_over(self, worker: RunningWorker, candidate: Candidate) -> tuple[dict[str, str], list[str]]:
        """The variables of ``worker`` that a template has, and the names of those that it lacks."""
        taken = carried(worker.environment, own=self.env, written=self.dotenv)
        # Where it and whoever types the command mean the same broker, that URL is no secret of the worker's.
        same = {
            name: candidate.given
            for name in taken.missing
            if name in URL_VARIABLES and place_of(as_read(worker.environment[name])) == candidate.place
        }
        return {**taken.variables, **same}, [name for name in taken.missing if name not in same]

    def program(self, name: str) -> str:
        """The program as a person here would call it, whose Python has the code of the jobs; else as it is called."""
        for folder in ENVIRONMENTS:
            program = (self.source_folder / folder / "bin" / name).absolute()
            # Where that is Headway's own environment, the code may well be in another.
            if os.access(program, os.X_OK) and program.parent != Path(sys.executable).absolute().parent:
                return str(program)
        found = shutil.which(name) or shutil.which(Path(sys.executable).with_name(name))
        return str(Path(found).absolute()) if found else name

    def _rq(self, queues: Sequence[str], candidate: Candidate) -> LibraryPreset:
        program = self.program("rq")
        safe = RQ_SAFE if _has_headway(program) else ()
        words, variables = _rq_broker(candidate.given)
        return replace(
            RQ,
            argv=(program, "worker", *safe, SCHEDULER.option, *words, *queues),
            environment=variables,
            notes=_rq_notes(safe, variables),
        )

    def _like_rq(
        self, worker: RunningWorker, queues: Sequence[str], candidate: Candidate, variables: Mapping[str, str]
    ) -> LibraryPreset:
        command = worker.command
        has_class = command.worker_class is not None or not _has_headway(command.program[0])
        is_django = command.words[0] == "rqworker"  # which reads its broker in Django's settings
        words, more = ((), {}) if is_django else _rq_broker(candidate.given)
        safe = () if has_class else RQ_SAFE
        return replace(
            RQ,
            argv=(*command.program, *command.words, *safe, *words, *queues),
            environment={**variables, **more},
            notes=_rq_notes(safe, more),
        )

    def _dramatiq(self, queues: Sequence[str]) -> LibraryPreset:
        preset = STARTERS["dramatiq"]
        modules, named = self.dramatiq_modules or (NO_APP,), {"APP": "", "QUEUE": ""}
        argv = [word for word in preset.argv[1:] if word not in named]
        at = argv.index("--queues") + 1
        return replace(
            preset,
            argv=(self.program("dramatiq"), *modules, *argv[:at], *queues, *argv[at:]),
            working_directory=self._directory(self.source_folder),
        )

    def _celery(self, queues: Sequence[str], candidate: Candidate) -> LibraryPreset:
        app, others = self._apps_for(queues, candidate)
        preset = STARTERS["celery"]
        argv = [app.app if app and word == NO_APP else word for word in preset.argv[1:]]
        argv[argv.index("QUEUE")] = ",".join(queues)
        remarks = []
        if app is None:
            remarks.append(
                f"put the module of your Celery application in the place of {NO_APP}, as in `--app shop.tasks`"
            )
        elif others:
            names, at = ", ".join(each.app for each in others[:5]), ", ".join(queues)
            remarks.append(f"{names} may send to {at}, too: a worker of {app.app} discards tasks that it does not know")
        return replace(
            preset,
            argv=(self.program("celery"), *argv),
            environment={CELERY_URL_VARIABLE: celery_url(candidate.given)},
            working_directory=self._directory(app.folder if app else self.source_folder),
            remarks=remarks,
        )

    def can_serve(self, worker: RunningWorker, queue: str) -> bool:
        """Whether a worker like ``worker`` knows the tasks of ``queue``, unless the source gives them to other apps."""
        senders = self._senders([queue])
        return worker.app is None or not senders or worker.app.file in {each.file for each in senders}

    def _apps_for(self, queues: Sequence[str], candidate: Candidate) -> tuple[CeleryApp | None, list[CeleryApp]]:
        """The application whose worker serves ``queues``, and others whose tasks may be in them."""
        variables = {**self.dotenv, **self.env}
        here = [each for each in self.apps if place_of(as_read(each.broker_url(variables))) == candidate.place]
        known = here or list(self.apps)
        senders = [each for each in self._senders(queues) if each in known] or known
        return next(iter(senders), None), senders[1:]

    def _senders(self, queues: Sequence[str]) -> list[CeleryApp]:
        return [each for each in self.apps if not set(queues).isdisjoint(self.queues_of.get(each.app, ()))]

    def _like_celery(self, worker: RunningWorker, queues: Sequence[str], variables: Mapping[str, str]) -> LibraryPreset:
        command, preset = worker.command, STARTERS["celery"]
        known = 1 if command.is_single else command.concurrency or worker.children
        slots = known or os.cpu_count() or 1
        words = [*excluding(command.words, REPORTER), "--queues", ",".join(queues)]
        if known:  # else the option would override what its application says
            words += ["--concurrency", str(known)]
        if not any(word.startswith("--prefetch-multiplier") for word in words):
            words += ["--prefetch-multiplier", "1"]
        words += CELERY_NODE
        url = {CELERY_URL_VARIABLE: celery_url(command.broker)} if command.broker else {}
        return replace(
            preset,
            argv=(*command.program, *words),
            environment={**variables, **url},
            slots=slots,
            # With this variable, TERM ends its jobs at once.
            stop_signal="INT" if variables.get("REMAP_SIGTERM") else preset.stop_signal,
            cpu_cores=round(CELERY_SLOT_CPU_CORES * slots, 3),
            memory=f"{CELERY_SLOT_MEMORY_MB * slots}MB",
            remarks=() if known else (UNKNOWN_SLOTS,),
        )

    def _directory(self, folder: Path) -> str:
        return "." if folder.absolute() == self.folder.absolute() else str(folder.absolute())


def celery_url(url: str) -> str:
    """``url`` as Celery writes it: a socket's has another scheme there."""
    parts = urlsplit(url)
    if parts.scheme != "unix":
        return url
    query = {("virtual_host" if name == "db" else name): value[0] for name, value in parse_qs(parts.query).items()}
    login = f"{parts.netloc}" if parts.netloc else ""
    return f"redis+socket://{login}{parts.path}" + (f"?{urlencode(query)}" if query else "")


def _rq_broker(url: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The words, or else the variables, that say to RQ where its broker is."""
    return ((), {RQ_URL_VARIABLE: url}) if has_password(url) else (("--url", url), {})


def _rq_notes(safe: Sequence[str], variables: Mapping[str, str]) -> dict[str, str]:
    """What host.toml says beside the keys of a template whose broker is in ``variables``, or else in its words."""
    return {
        **RQ.notes,
        **({} if safe else {"argv": NOTES["argv"]}),
        **(_SECRET_NOTE if variables else {}),
    }


def _has_headway(program: str) -> bool:
    """Whether the Python of ``program`` finds Headway's worker class: it is installed beside this program."""
    folder = Path(program).parent
    return folder == Path(sys.executable).absolute().parent or (folder / "headway").exists()
