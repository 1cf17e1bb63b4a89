"""Why workers fail to start: codes of a fixed list. What the workers printed, and their files, stay on their host."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class StartFailure(StrEnum):
    """What kept a worker from its start, by what it printed, or by what the agent found before it started."""

    MAXCLIENTS = "maxclients"
    """The broker accepts no more connections."""
    CONNECTION_REFUSED = "connection_refused"
    """Nothing listens at the address of the broker, or of another server that the worker calls."""
    CONNECTION_CLOSED = "connection_closed"
    """The broker closes the connection, as one above its limit of connections may do without a word."""
    UNKNOWN_HOST = "unknown_host"
    """The host name of that address does not resolve."""
    OUT_OF_MEMORY = "out_of_memory"
    """The broker is above its ``maxmemory`` and refuses writes."""
    READ_ONLY = "read_only"
    """The broker is a replica, or refuses writes because it cannot save to its disk."""
    LOADING = "loading"
    """The broker is loading its data and refuses commands."""
    AUTHENTICATION = "authentication"
    """The broker refuses the login."""
    MODULE_MISSING = "module_missing"
    """The worker cannot import its application, or a package of it."""
    HOST_MEMORY = "host_memory"
    """The host has no memory for the worker."""
    DISK_FULL = "disk_full"
    """A disk that the worker writes to is full."""
    ENVIRONMENT_FILE_MISSING = "environment_file_missing"
    """The agent cannot read the template's ``environment_file``."""
    ENVIRONMENT_FILE_UNSAFE = "environment_file_unsafe"
    """Others than root and the agent's user can read or replace the template's ``environment_file``."""
    ENVIRONMENT_FILE_INVALID = "environment_file_invalid"
    """The template's ``environment_file`` has a line that is no variable, or could be read in two ways."""

    @property
    def text(self) -> str:
        """The cause and its cure, without its full stop; for people."""
        return _TEXTS[self]


_TEXTS: Mapping[StartFailure, str] = MappingProxyType(
    {
        StartFailure.MAXCLIENTS: (
            "the broker accepts no more connections (maxclients): raise its limit, or lower workers_max"
        ),
        StartFailure.CONNECTION_REFUSED: (
            "a connection was refused: start the broker, or correct the address in the worker's settings"
        ),
        StartFailure.CONNECTION_CLOSED: (
            "the broker closes the connection: see its log, and whether it accepts no more connections (maxclients)"
        ),
        StartFailure.UNKNOWN_HOST: "a host name does not resolve: correct the address in the worker's settings",
        StartFailure.OUT_OF_MEMORY: (
            "the broker is out of memory (maxmemory) and refuses writes: raise maxmemory, or delete data"
        ),
        StartFailure.READ_ONLY: "the broker refuses writes: it is a replica, or cannot save to its disk",
        StartFailure.LOADING: "the broker is loading its data: workers start when it is done",
        StartFailure.AUTHENTICATION: "the broker refuses the login: correct user and password in the worker's settings",
        StartFailure.MODULE_MISSING: (
            "a Python module cannot be imported: correct working_directory or the environment in host.toml, or "
            "install the package"
        ),
        StartFailure.HOST_MEMORY: "the host has no memory left for a worker",
        StartFailure.DISK_FULL: "a disk that the worker writes to is full",
        StartFailure.ENVIRONMENT_FILE_MISSING: (
            "the agent cannot read the template's environment_file: create it on the host, or correct its path in "
            "host.toml"
        ),
        StartFailure.ENVIRONMENT_FILE_UNSAFE: (
            "others could read or replace the template's environment_file: it must be a regular file of root or of "
            "the agent's user, with mode 0600"
        ),
        StartFailure.ENVIRONMENT_FILE_INVALID: (
            "the template's environment_file has a mistake: `headway agent check` on the host names the line"
        ),
    }
)
