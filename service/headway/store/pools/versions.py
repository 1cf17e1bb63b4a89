"""The version that a change of a profile or a group was made for."""

from dataclasses import dataclass

from headway.errors import Conflict, Refused


class StaleVersion(Conflict):
    """What is changed is not as the change was made for: it has another version, or exists where it should not."""


class VersionUnstated(Refused):
    """What is changed exists, and the change does not name the version that it is based on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a change takes for granted: that nothing is there, or that it has this version. Neither: nothing."""

    is_absent: bool = False
    version: int | None = None


def require_version(subject: str, version: int | None, expected: Expected) -> None:
    """Return if ``subject``, which is stored at ``version`` or, if that is ``None``, not at all, is as ``expected``.

    Raises:
        StaleVersion: it is not.
        VersionUnstated: it exists, and ``expected`` is not given.
    """
    if version is None:
        if expected.version is not None:
            raise StaleVersion(f"{subject} does not exist: it cannot be changed from version {expected.version}")
        return
    if expected.is_absent:
        raise StaleVersion(f"{subject} exists already, at version {version}: read it and change that")
    if expected.version is None:
        raise VersionUnstated(f"{subject} exists, at version {version}: say which version you change")
    if expected.version != version:
        raise StaleVersion(
            f"{subject} is at version {version}, not {expected.version}: "
            "somebody changed it since you read it; read it again"
        )
