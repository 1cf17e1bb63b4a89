"""A few causes of ``tests/proof/test_shown.py``: each is made, and every view names it, without Spark."""

from pathlib import Path

import pytest

from shown.causes import CAUSES
from shown.site import site
from shown.table import judged, settle

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

NAMES = ("template-missing", "pipeline-killed", "broker-stopped")
LAST = "token-revoked"
"""Is named for two minutes after it has been mended: that it ends then is a rule of ``control/http``'s own tests."""
SLACK_S = 120.0  # a machine that tests share: how soon it is shown is the proof's to say
PAUSES = 4.0  # for the same reason


def test_what_goes_wrong_is_named_in_every_view(tmp_path: Path) -> None:
    by_name = {cause.name: cause for cause in CAUSES}
    with site(tmp_path, has_spark=False) as there:
        for name in NAMES:
            judged(by_name[name], there, slack_s=SLACK_S, pauses=PAUSES)
        settle(there, pauses=PAUSES)
        judged(by_name[LAST], there, slack_s=SLACK_S, pauses=PAUSES)
