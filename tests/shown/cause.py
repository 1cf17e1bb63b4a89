"""One thing that goes wrong: how it is made and mended, and which words of which view name it."""

import re
from dataclasses import dataclass

from shown.acts import Act, nothing

LEASE_S = 45.0
SHOWN_WITHIN_S = 15.0
HOST_WITHIN_S = LEASE_S + 5.0
MORE_WITHIN_S = 30.0  # of what keeps more workers from starting or helping: first one has to be wanted
SHARE_WITHIN_S = 60.0  # of jobs that fail, and of workers that end too early


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One thing that goes wrong."""

    name: str
    about: str
    """In words, for the table."""
    begin: Act
    end: Act = nothing
    prepare: Act = nothing
    """What it takes to be able to; the site is well before and after."""
    says: str
    """A pattern of which the dashboard, `top` and health each say some of."""
    kind: str
    """What `/metrics` and the alerts call it: a label of theirs, or the name of an alert."""
    red_within_s: float = SHOWN_WITHIN_S
    named_within_s: float = SHOWN_WITHIN_S
    group: str = "apart"
    """Causes of one group share a site."""
    needs_spark: bool = False
    needs_disk: bool = False
    begins_away: bool = False
    """Whether the control plane is not there when it begins."""
    is_awaited: bool = False
    """Whether it comes by itself, when ``begin`` returns."""

    def names(self, view: str, sentence: str) -> bool:
        """Whether what a view shows names this cause."""
        if view in {"/metrics", "alerts"}:
            return re.search(self.kind, sentence) is not None
        return re.search(self.says, sentence, re.IGNORECASE) is not None
