"""How a worker comes to load the reporter: words and variables that the agent adds to what its template says.

They are no part of the template's hash, so an agent of another version replaces no worker. Celery ends where it cannot
import a module of ``--include``. So a start that ends before it is ready is repeated without the reporter. Where that
helps twice, or the worker names the reporter as it ends, the template's workers are started without from then on: once
may be by chance, as where the broker was away. A worker that is taken for ready by its age alone counts as ready here
once it reports, or has stayed for a while.
"""

import logging
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.agent.config.celery_command import including, worker_word
from headway.agent.config.templates import REPORTER_PIPE, Reporter, Template
from headway.agent.reporting.run_folder import REPORTER

PYTHONPATH = "PYTHONPATH"

ENDS_WITH_MAX = 2  # of starts that loaded the reporter, each repeated well without it

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """What is added to the start of one worker, so that it reports."""

    module: Path
    """The folder that holds the reporter."""
    pipe: Path

    def argv(self, argv: Sequence[str]) -> tuple[str, ...]:
        """``argv`` with the reporter; unchanged where only a person can add it, as behind a shell."""
        return including(argv, REPORTER)

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """``environment`` with the reporter's pipe, and its folder where it takes no other module's place: last."""
        before = environment.get(PYTHONPATH)
        return {
            **environment,
            PYTHONPATH: f"{before}{os.pathsep}{self.module}" if before else str(self.module),
            REPORTER_PIPE: str(self.pipe),
        }


def loads_by_itself(template: Template) -> bool:
    """Whether the agent can have the template's workers load the reporter."""
    return template.reporter is Reporter.CELERY and worker_word(template.argv) is not None


class LoadingDoubts:
    """The templates of which a start with the reporter has ended before it was ready, for one content of host.toml."""

    def __init__(self) -> None:
        self._suspected: set[str] = set()
        """A start ended, and one without the reporter has not ended or become ready yet."""
        self._repeated_well: Counter[str] = Counter()
        """Starts that ended and became ready without the reporter, since the last one that became ready with it.

        Of workers that were started together and ended together, one counts: they had one reason.
        """
        self._refused: set[str] = set()
        """Their workers do without the reporter."""

    def forget(self) -> None:
        """Try again: host.toml is another."""
        self._suspected.clear()
        self._repeated_well.clear()
        self._refused.clear()

    def allows(self, template: str) -> bool:
        """Whether a worker of the template may load the reporter now."""
        return template not in self._suspected | self._refused

    def note_end(self, template: str, *, has_loaded: bool, why: str) -> bool:
        """Take note of a start that ended before it was ready. Returns whether to repeat it without the reporter.

        ``why`` is what the worker printed last.
        """
        if not has_loaded:
            self._suspected.discard(template)  # it ends without, too: that is not the reporter's fault
            return False
        if self.allows(template):
            log.warning(
                "started again without its reporter template=%s: it ended before it had reported: %r",
                template,
                why,
            )
        (self._refused if REPORTER in why else self._suspected).add(template)
        return True

    def note_ready(self, template: str, *, has_loaded: bool) -> None:
        """Take note of a start that became ready."""
        is_suspected = template in self._suspected
        self._suspected.discard(template)
        if has_loaded:
            del self._repeated_well[template]
            return
        self._repeated_well[template] += is_suspected
        if not is_suspected or self._repeated_well[template] < ENDS_WITH_MAX:
            return
        self._refused.add(template)
        log.warning(
            "not reporting template=%s: its workers are ready without the reporter only; until host.toml changes, what "
            "they do is unknown where the broker does not say it",
            template,
        )
