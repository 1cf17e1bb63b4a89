"""Where the servers of this control plane listen."""

from typing import Protocol


class ListenAddress(Protocol):
    """Its text is ``host:port``."""

    @property
    def host(self) -> str:
        """A name or number of an interface."""

    @property
    def port(self) -> int:
        """The port; 0 takes any free one."""
