"""Real workers with jobs of more than a minute, while pools shrink, and an agent and a leader are killed: `make field`.

One ``headway up`` plays the story for a pairwise selection of the cases. Each case is judged by its application's own
log, the list of processes, and what Headway's API showed.
"""

import random
import shutil
from collections.abc import Mapping

import pytest

from field.cases import Case, Wrapper, selection
from field.field_run import Outcome, Story, play
from field.timeline import timeline

pytestmark = [pytest.mark.field, pytest.mark.timeout(900)]

SEED = 1
CASES = selection()


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mapping[Case, Outcome]:
    """Of the cases that this run of pytest was asked for."""
    asked = [item.callspec.params["case"] for item in request.session.items if "outcomes" in item.fixturenames]
    playable = [case for case in CASES if case in asked and (case.wrapper is not Wrapper.NPM or shutil.which("npm"))]
    return play(playable, tmp_path_factory.mktemp("field"), story=Story(), rng=random.Random(SEED))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_job_is_cut_and_the_pool_comes_down(outcomes: Mapping[Case, Outcome], case: Case, record_property) -> None:
    if case not in outcomes:
        pytest.skip("needs npm")
    outcome = outcomes[case]
    for name, value in outcome.verdict.figures.items():
        record_property(name, value)
    if faults := outcome.verdict.faults:
        pytest.fail("\n".join((*faults, "", *timeline(outcome.recording))), pytrace=False)
