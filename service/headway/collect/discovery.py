"""What a broker holds: which queues, and of which library."""

from dataclasses import dataclass

from headway.collect.libraries import Libraries
from headway.collect.source import FoundQueue, Library
from headway.connections import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """What is in the broker of one connection."""

    library: Library
    queues: tuple[FoundQueue, ...]
    """By name."""


def discover(connection: Connection, libraries: Libraries) -> Discovered:
    """The queues in a broker, read once.

    Raises:
        Misconfigured: the URL cannot be one, or no library reads it.
        Unavailable: the broker does not answer.
    """
    library = libraries.of(connection)
    source = library.open(connection, None)
    try:
        return Discovered(library=library, queues=source.discover())
    finally:
        source.close()
