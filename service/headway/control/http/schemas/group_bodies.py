"""Groups as the HTTP API takes and gives them. The core's own rules check them; these models describe them."""

from collections.abc import Iterable, Sequence

from pydantic import Field

from headway.control.http.schemas.requests import Taken
from headway.control.http.schemas.responses import ProfileChangeOut
from headway.control.http.schemas.schema_base import Given, with_fields_of
from headway.scaling.group import Group, group_to_mapping, used_units
from headway.scaling.model import Host
from headway.store.pools.groups import StoredGroup


@with_fields_of(Group, left_out=("name",))
class GroupBody(Taken):
    """A cap over several pools, in workers or in slots: exactly one of `workers_max` and `slots_max` is given."""

    pools: list[str] = Field(min_length=1)
    """The pools whose workers count, all together. A pool may be in several groups."""


class GroupOut(Given):
    """A group as it is stored, and what its pools have of its cap."""

    name: str
    version: int
    """Grows by one with each change; also the ETag."""
    updated_at_s: float
    group: GroupBody
    used: int
    """Workers, or slots, of its pools that exist by the last reports of all hosts: those that start, drain, or may
    still run on unreachable hosts included."""
    notes: list[str]
    """What profiles contradict: one sentence each."""
    changes: list[ProfileChangeOut] = Field(default_factory=list)
    """What the request changed, or would change, of a group that was there before."""

    @classmethod
    def of(cls, stored: StoredGroup, hosts: Iterable[Host], *, notes: Sequence[str]) -> "GroupOut":
        """The stored group as it is given."""
        return cls.taken_from(
            stored,
            name=stored.group.name,
            group=GroupBody.model_validate(group_to_mapping(stored.group), strict=False),
            used=used_units(stored.group, hosts),
            notes=list(notes),
        )


class GroupsOut(Given):
    """Every group, by name."""

    groups: list[GroupOut]
