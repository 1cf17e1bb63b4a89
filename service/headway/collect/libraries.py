"""The queue libraries that can be read: those that come with Headway, and those of packages that announce theirs.

A package announces one as an entry point of the group ``headway.collectors`` whose name is the library's. One that has
several brokers has an entry point for each, as ``celery`` and ``celery.rabbitmq``: what follows the dot is no part of
the library's name. Where every connection names its library, no other is loaded.
"""

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points

from headway import __version__
from headway.collect.source import Library
from headway.connections import AUTO, Connection
from headway.errors import Misconfigured
from headway.scaling.mapping import near

GROUP = "headway.collectors"
BUILT_IN = (
    EntryPoint(name="rq", value="headway.collect.rq.rq_source:RQ [collect]", group=GROUP),
    EntryPoint(name="celery", value="headway.collect.celery.celery_source:CELERY [collect]", group=GROUP),
    EntryPoint(
        name="celery.rabbitmq",
        value="headway.collect.celery.celery_on_rabbitmq:CELERY_ON_RABBITMQ [rabbitmq]",
        group=GROUP,
    ),
    EntryPoint(name="rabbitmq", value="headway.collect.rabbitmq.rabbitmq_source:RABBITMQ [rabbitmq]", group=GROUP),
)
"""Known without their announcement, too, which a checkout that was updated lacks until it is installed anew."""


class Libraries:
    """The libraries that are installed, each loaded when it is first asked for."""

    def __init__(self, announced: Iterable[EntryPoint] | None = None) -> None:
        """Those of ``announced`` entry points, else of those that are installed.

        Raises:
            Misconfigured: two packages announce the same name.
        """
        self._entries = {entry.name: entry for entry in BUILT_IN}
        for entry in entry_points(group=GROUP) if announced is None else announced:
            if self._entries.setdefault(entry.name, entry).value != entry.value:
                raise Misconfigured(f"{_named(entry)}: the name is taken; give it another")

    @property
    def names(self) -> tuple[str, ...]:
        """Of every library, in their order."""
        return tuple(sorted({_library_name(entry) for entry in self._entries}))

    def _entries_of(self, name: str) -> tuple[str, ...]:
        """The entry points of the library ``name``, of all for ``auto``."""
        found = tuple(each for each in self._entries if name in (AUTO, each, _library_name(each)))
        if not found:
            meant = near(name, self.names) or f" known: {', '.join(self.names)}"
            raise Misconfigured(f"library {name!r} is not known;{meant}")
        return found

    def breaches(self, connections: Iterable[Connection]) -> list[str]:
        """A sentence for each thing that is wrong with ``connections``, before anything is opened."""
        breaches: list[str] = []
        for connection in connections:
            found = connection.file_breaches()
            try:
                found += self.of(connection).refusals(connection)
            except Misconfigured as error:
                found.append(str(error))
            breaches += [f"connection {connection.name!r}: {each}" for each in found]
        return breaches

    def of(self, connection: Connection) -> Library:
        """The library that ``connection`` names, else the one that its URL's scheme belongs to.

        Raises:
            Misconfigured: there is none, there are several, or it cannot be loaded.
        """
        is_named = connection.library != AUTO
        known: list[Library] = []
        uninstalled: list[Uninstalled] = []
        for name in self._entries_of(connection.library):
            try:
                known.append(_loaded(self._entries[name]))
            except Uninstalled as error:
                uninstalled.append(error)
        fitting = [each for each in known if connection.scheme in each.schemes]
        fitting = [each for each in fitting if each.is_first_choice] or fitting
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            names = " or ".join(each.name for each in fitting)
            raise Misconfigured(f"{connection.scheme}:// may hold queues of several libraries: write library: {names}")
        if uninstalled:
            raise Uninstalled("; or ".join(str(each) for each in uninstalled)) if is_named else uninstalled[0]
        schemes = " or ".join(sorted({f"{scheme}://" for each in known for scheme in each.schemes}))
        raise Misconfigured(
            f"broker URL {connection.shown_url!r}: expected {schemes}{f' for {known[0].title}' if is_named else ''}"
        )


class Uninstalled(Misconfigured):
    """A library is known, and the client that it reads brokers with is not installed."""


def _loaded(entry: EntryPoint) -> Library:
    try:
        library = entry.load()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in {"headway", entry.module.partition(".")[0]}:
            raise Misconfigured(f"{_named(entry)}: {type(error).__name__}: {error}") from error
        raise Uninstalled(f"library {entry.name!r} needs the package {error.name!r}: {_install(entry)}") from error
    except Exception as error:  # importing others' code may raise anything
        raise Misconfigured(f"{_named(entry)}: {type(error).__name__}: {error}") from error
    if not isinstance(library, Library):
        raise Misconfigured(f"{_named(entry)}: expected a headway.collect.source.Library, got {library!r}")
    if library.name != _library_name(entry.name):
        raise Misconfigured(f"{_named(entry)}: it calls itself {library.name!r}; the two names must agree")
    return library


def _library_name(entry: str) -> str:
    return entry.partition(".")[0]


def _install(entry: EntryPoint) -> str:
    """What installs the client of a library: the extra that its entry point names."""
    extras = f"[{','.join(entry.extras)}]" if entry.extras else ""
    if entry not in BUILT_IN:
        return f"pip install '{entry.dist.name}{extras}'" if entry.dist else f"install what {entry.value} imports"
    return (
        f"pip install 'headway-{__version__}-py3-none-any.whl{extras}', the wheel that this came from; "
        f"in a clone, pip install '.{extras}'"
    )


def _named(entry: EntryPoint) -> str:
    package = f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.value
    return f"collector {entry.name!r} of package {package} cannot be loaded"
