"""What a request to silence incidents says."""

from typing import Self

from pydantic import Field, model_validator

from headway.control.http.schemas.requests import HELD_S_MAX, Seconds, Taken, Text, end_s, one_end


class Matchers(Taken):
    """The labels of the incidents that are meant: each that is named must be equal."""

    rule: Text | None = None
    severity: Text | None = None
    pool: Text | None = None
    host: Text | None = None
    kind: Text | None = None

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.model_dump(exclude_none=True):
            raise ValueError("name at least one label: nothing silences everything")
        return self


class SilenceBody(Taken):
    """Which incidents are not to disturb anybody, until when and why."""

    matchers: Matchers
    reason: Text
    for_s: float | None = Field(default=None, gt=0, le=HELD_S_MAX)
    """Seconds from now; or say `until_s`."""
    until_s: Seconds | None = None
    """Unix seconds, at most 31 days ahead."""

    _one_end = model_validator(mode="after")(one_end)

    @property
    def labels(self) -> dict[str, str]:
        """The labels that are named."""
        return self.matchers.model_dump(exclude_none=True)

    def end_s(self, *, now_s: float) -> float:
        """When it ends. Raises ``Invalid`` where that has passed, or is too far ahead."""
        return end_s(self.for_s, self.until_s, now_s=now_s)
