"""The stream's checkpoint decides what is counted: nobody else writes it."""

import os
import stat
from pathlib import Path

import pytest

from headway.errors import Misconfigured
from headway_spark.stream.checkpoint import keep_private


@pytest.mark.parametrize(
    ("was", "is_shared", "mode"),
    [
        (None, False, 0o700),
        (0o755, False, 0o700),
        (0o777, False, 0o700),
        (0o700, False, 0o700),
        (0o2775, True, 0o2770),  # executors of a cluster, which are of its group
        (0o777, True, 0o770),
        (0o700, True, 0o700),
    ],
)
def test_a_checkpoint_is_closed_to_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, was: int | None, is_shared: bool, mode: int
) -> None:
    checkpoint = tmp_path / "a" / "checkpoint"
    if was is not None:
        checkpoint.mkdir(parents=True)
        checkpoint.chmod(was)
    keep_private(checkpoint, is_shared=is_shared)
    assert stat.S_IMODE(checkpoint.stat().st_mode) == mode
    assert ("was open to other users" in caplog.text) == (was not in {None, mode})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_checkpoint_of_another_user_is_refused(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir(mode=0o700)
    os.chown(checkpoint, 65534, 65534)
    with pytest.raises(Misconfigured, match="belongs to user id 65534, and the pipeline runs as 0"):
        keep_private(checkpoint)
