"""What a request to silence incidents says."""

from typing import Self

from pydantic import Field, model_validator

from headway.control.http.schemas.requests import Seconds, Taken, Text
from headway.errors import Invalid

SILENCE_S_MAX = 31 * 86_400.0


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
    for_s: float | None = Field(default=None, gt=0, le=SILENCE_S_MAX)
    """Seconds from now; or say `until_s`."""
    until_s: Seconds | None = None
    """Unix seconds, at most 31 days ahead."""

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if (self.for_s is None) == (self.until_s is None):
            raise ValueError("give one of for_s and until_s")
        return self

    @property
    def labels(self) -> dict[str, str]:
        """The labels that are named."""
        return self.matchers.model_dump(exclude_none=True)

    def end_s(self, *, now_s: float) -> float:
        """When it ends. Raises ``Invalid`` where that has passed, or is too far ahead."""
        end_s = now_s + (self.for_s or 0.0) if self.until_s is None else float(self.until_s)
        if not now_s < end_s <= now_s + SILENCE_S_MAX:
            raise Invalid(f"until_s={end_s} must be ahead, and at most 31 days")
        return end_s
