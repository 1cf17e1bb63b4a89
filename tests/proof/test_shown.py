"""What goes wrong, and what people see of it: each cause is made, and each view is read until it names the cause.

Each cause is a test of its own, and a row of ``tests/proof/results/shown.jsonl``, of which ``docs/proofs/shown.md`` is
made.
Causes of one group share an installation; one that fails is taken down, and the next cause begins in another.
``HEADWAY_SHOWN_PIPELINE=stand-in`` proves what needs no Spark without it.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from proof.conftest import RESULTS, proven_commit
from shown.cause import Cause
from shown.causes import CAUSES
from shown.site import Site, site
from shown.table import judged, machine, settle, write_page

pytestmark = [pytest.mark.proof, pytest.mark.timeout(1500)]

LEDGER = RESULTS / "shown.jsonl"
PAGE = Path(__file__).parents[2] / "docs/proofs/shown.md"
HAS_SPARK = os.environ.get("HEADWAY_SHOWN_PIPELINE", "spark") == "spark"


class Sites:
    """One installation at a time, that of a group."""

    def __init__(self, folder: Callable[[str], Path]) -> None:
        self._folder = folder
        self._group = ""
        self._stack = ExitStack()
        self._site: Site | None = None

    def of(self, group: str) -> Site:
        """The group's: the one that is there, or a new one."""
        if self._site is None or group != self._group:
            self.end()
            folder, self._group = self._folder(group), group
            made = site(folder, has_spark=HAS_SPARK and group != "clock", is_encrypted=group == "encrypted")
            self._site = self._stack.enter_context(made)
        return self._site

    def end(self) -> None:
        """Take down the one that is there."""
        self._site = None
        self._stack.close()


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    made = Sites(tmp_path_factory.mktemp)
    yield made
    made.end()


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)
def test_it_is_shown_everywhere(sites: Sites, cause: Cause) -> None:
    if cause.needs_spark and not HAS_SPARK:
        pytest.skip("of Spark's own JVM")
    try:
        there = sites.of(cause.group)
        if cause.needs_disk and not there.disks.are_small:
            pytest.skip("only who may mount has a small disk")
        row = judged(cause, there)
        _record(row, pipeline="spark" if there.has_spark else "stand-in")
        if cause.group == "apart":
            settle(there)
    except BaseException:
        sites.end()
        raise


def _record(row: dict[str, object], *, pipeline: str) -> None:
    line = {**row, "pipeline": pipeline, "commit": proven_commit(), **machine()}
    with LEDGER.open("a") as ledger:
        ledger.write(json.dumps(line) + "\n")
    write_page(LEDGER, PAGE)


def test_the_page_is_made_of_the_ledger(tmp_path: Path) -> None:
    page = tmp_path / "shown.md"
    write_page(LEDGER, page)
    assert page.read_text() == PAGE.read_text()
