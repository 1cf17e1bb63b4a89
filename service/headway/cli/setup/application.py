"""The application of a folder, as its source says it: queues and brokers of each library, and Celery applications."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from headway.cli.setup.app_import import imported, interpreter_of, refuse_others_code
from headway.cli.setup.broker_candidates import VARIABLES_OF, addresses_of, as_read, place_of
from headway.cli.setup.found_connections import FoundConnection, kind_of
from headway.cli.setup.running_workers import RunningWorker
from headway.cli.setup.source import celery_apps
from headway.cli.setup.source.celery_apps import CeleryApp, module_file
from headway.cli.setup.source.declared_queues import DeclaredQueues, declared_by, files_with_queues
from headway.cli.setup.source.source_files import Sources, read_sources, source_file
from headway.connections import shown
from headway.errors import Misconfigured

LINES_NAMED = 3
LEVELS_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """What the source of a folder says."""

    apps: Sequence[CeleryApp] = ()
    """Celery's, those nearest to the folder first."""
    declared: Mapping[str, DeclaredQueues] = field(default_factory=dict)
    """The name of each of ``apps`` -> its queues; without a name, those of an application that a function makes."""
    rq_queues: Sequence[str] = ()
    unread_rq: Sequence[str] = ()
    """Where code makes the names of RQ's queues: files and lines."""
    rq_brokers: Sequence[tuple[str | None, str | None]] = field(default=(), repr=False)
    """The URL that is written out, and the variable that goes before it."""
    dramatiq_queues: Sequence[str] = ()
    dramatiq_modules: Sequence[str] = ()
    has_celery: bool = False
    """Whether it has an application of Celery, also where a function makes it that ``--app`` cannot name."""
    problems: Sequence[str] = ()
    files: Sequence[Path] = ()
    """The source that was read."""

    @property
    def title(self) -> str:
        """What it is called where one thing of it has to stand for all; empty: there is none."""
        queues = "queues of RQ" if self.rq_queues else "queues of Dramatiq" if self.dramatiq_queues else ""
        return self.apps[0].app if self.apps else "a Celery application" if self.has_celery else queues

    def factory_url(self, variables: Mapping[str, str]) -> str:
        """The URL in the settings of a Celery application that a function makes; empty where they have none."""
        settings = self.declared.get("", DeclaredQueues())
        return variables.get(settings.broker_variable or "") or settings.broker or ""

    def rq_urls(self, variables: Mapping[str, str]) -> Iterator[str]:
        """The URLs of RQ's brokers where ``variables`` are set."""
        for url, variable in self.rq_brokers:
            if found := variables.get(variable or "") or url:
                yield found


def application_in(folder: Path) -> Application:
    """The application whose source is in ``folder``. Nothing of it is run."""
    sources = read_sources(folder)
    files = files_with_queues(sources)
    apps = celery_apps.find(sources.files)
    factory = None if apps else celery_apps.factory(sources.files)
    declared = {each.app: declared_by(each, apps=apps, files=files) for each in apps}
    if factory is not None:
        declared[""] = declared_by(None, apps=(), files=files)
        path, line = factory
        sources.problems.append(
            f"{path}, line {line}, makes a Celery application in a function, where `--app` cannot name it: write into "
            "host.toml what your workers are given as --app"
        )
    return Application(
        apps=[_with_settings(each, declared[each.app]) for each in apps],
        declared=declared,
        rq_queues=list(dict.fromkeys(queue for each in files for queue in each.rq)),
        unread_rq=[f"{each.file.path}, line {line}" for each in files for line in dict.fromkeys(each.unread_rq_lines)],
        rq_brokers=[broker for each in files for broker in each.rq_brokers],
        dramatiq_queues=list(dict.fromkeys(queue for each in files for queue in each.dramatiq)),
        dramatiq_modules=[each.file.module for each in files if each.dramatiq],
        has_celery=bool(declared),
        problems=sources.problems,
        files=[each.path for each in sources.files],
    )


def declare(application: Application, found: Sequence[FoundConnection], variables: Mapping[str, str]) -> list[str]:
    """Give each connection the queues that the source declares for it. Returns what is assumed, a sentence each."""
    assumed: list[str] = []
    of_celery = [each for each in found if each.library == "celery"]
    urls = {each.app: each.broker_url(variables) for each in application.apps}
    urls[""] = application.factory_url(variables)
    for name, declared in application.declared.items():
        url = variables.get(VARIABLES_OF["celery"][0]) or urls.get(name)
        home = _home(of_celery, [url] if url else [], library="celery", declared=declared.queues)
        if home is None and url and any(each.broker.candidate.source == "--broker" for each in of_celery):
            # On no server of the URL, which may be a name that only containers know.
            servers = set(addresses_of(as_read(url)))
            others = (each for each in of_celery if servers.isdisjoint(addresses_of(each.broker.candidate.url)))
            home = next(others, None)
            does = "its queues are left out" if home is None else "--broker is taken in its place"
            assumed.append(f"{name or 'the Celery application'} names {shown(as_read(url))} as its broker: {does}")
        if home is None:
            continue
        home.declare(declared.queues)
        assumed += _assumption(name or "the Celery application", home)
        if declared.unread:
            routes = f"routes{f' of {name}' if name else ''}"
            assumed.append(
                f"{routes} were not read, where code makes them ({_listed(declared.unread)}): "
                "add --import-app, which asks the application itself, or write its queues into profiles.yaml"
            )
    if application.rq_queues:
        own = [each for each in found if each.library == "rq"]
        home = _home(own, list(application.rq_urls(variables)), library="rq", declared=application.rq_queues)
        if home is not None:
            home.declare(application.rq_queues)
            assumed += _assumption("RQ's queues here", home)
    if application.unread_rq:
        assumed.append(
            f"queues of RQ were not read, where code makes their names ({_listed(application.unread_rq)}): write them "
            "into profiles.yaml"
        )
    if application.dramatiq_queues:
        assumed += _declare_dramatiq(application, found)
    return assumed


def application_above(here: Path) -> Path | None:
    """The nearest folder above ``here``, in the same project, whose own files make a Celery application or use RQ."""
    for folder in [each for each in here.parents if each not in (Path.home(), Path("/"))][:LEVELS_MAX]:
        files = [found for path in sorted(folder.glob("*.py")) if (found := source_file(path, folder)) is not None]
        if celery_apps.find(files) or any(found.rq for found in files_with_queues(Sources(files=files))):
            # A package is imported from the folder that holds it.
            return next(each for each in (folder, *folder.parents) if not (each / "__init__.py").exists())
    return None


def as_imported(
    application: Application, name: str, *, here: Path, workers: Sequence[RunningWorker], variables: Mapping[str, str]
) -> Application:
    """``application`` with what its Celery applications say of themselves, after each was imported.

    ``name``: the only one, as ``--app`` takes it; empty: all that the source has.

    Raises:
        Misconfigured: there is none, it cannot be imported, or root would run another user's code.
    """
    apps = [each for each in application.apps if name in ("", each.app, each.app.partition(":")[0])]
    if name and not apps:
        apps = [CeleryApp(app=name, folder=here, file=module_file(name, here) or here)]
    if not apps:
        raise Misconfigured("--import-app: no Celery application was found here: name it, as in --import-app shop:app")
    pythons = {each.app: interpreter_of(each, here=here, workers=workers) for each in apps}
    own = [path for python in pythons.values() for path in (python, python.parent)]
    refuse_others_code([*own, *(each.folder for each in apps), *application.files])
    found = {each.app: imported(each, pythons[each.app], environment=variables) for each in apps}
    others = [each for each in application.apps if each.app not in found]
    return replace(
        application,
        apps=[*(replace(each, broker=found[each.app].broker or each.broker) for each in apps), *others],
        declared={**application.declared, **{app: DeclaredQueues(queues=each.queues) for app, each in found.items()}},
        has_celery=True,
    )


def _declare_dramatiq(application: Application, found: Sequence[FoundConnection]) -> Iterator[str]:
    """Dramatiq's queues are read in RabbitMQ, as those of any program there."""
    home = next((each for each in found if each.broker.library.name == "rabbitmq" and not each.is_declared_only), None)
    if home is None:
        yield (
            f"queues of Dramatiq ({', '.join(application.dramatiq_queues)}): Headway reads them in RabbitMQ only, and "
            "no RabbitMQ of this application was found"
        )
        return
    home.declared_library = "dramatiq"
    home.declare(application.dramatiq_queues)


def _with_settings(app: CeleryApp, declared: DeclaredQueues) -> CeleryApp:
    if app.broker is not None or app.broker_variable is not None:
        return app
    return replace(app, broker=declared.broker, broker_variable=declared.broker_variable)


def _home(
    found: Sequence[FoundConnection], urls: Sequence[str], *, library: str, declared: Sequence[str]
) -> FoundConnection | None:
    """The connection that an application reads: at the first of ``urls``, else the likeliest of its library."""
    if urls:
        places = [place_of(as_read(each)) for each in urls]
        return next((each for each in found if each.broker.candidate.place in places), None)
    usual = place_of("redis://127.0.0.1:6379/0")

    def likeliness(each: FoundConnection) -> tuple[bool, ...]:
        candidate = each.broker.candidate
        return (
            candidate.variable == VARIABLES_OF[library][0],
            candidate.source == "--broker",
            bool(each.workers),
            not candidate.is_guess,
            not {queue.name for queue in each.broker.queues}.isdisjoint(declared),
            candidate.place == usual,
        )

    # Of the databases of this machine that nobody names, the usual one may be meant, and no other.
    likely = [
        each
        for each in found
        if each.workers
        or not each.is_declared_only
        or each.broker.candidate.place == usual
        or kind_of(each.broker) != "redis"
    ]
    return max(likely, key=likeliness, default=None)


def _listed(places: Sequence[str]) -> str:
    return "; ".join([*places[:LINES_NAMED], *(["others"] if len(places) > LINES_NAMED else [])])


def _assumption(name: str, home: FoundConnection) -> Iterator[str]:
    if home.broker.candidate.is_guess and not home.workers:
        url = home.broker.candidate.url
        yield f"{name}: nothing here names its broker, and {url} is assumed: name it with --broker URL"
