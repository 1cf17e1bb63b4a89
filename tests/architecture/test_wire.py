"""The contracts on the wire: well made, not broken, and the code that speaks them freshly generated."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.tree import ROOT, SERVICE

BUF = Path(sys.executable).with_name("buf")


def _breaking(proto: Path) -> subprocess.CompletedProcess[str]:
    asked = [BUF, "breaking", "--against", ROOT / "proto" / "baseline.binpb"]
    return subprocess.run(asked, cwd=proto, capture_output=True, text=True, check=False, timeout=60)


def test_the_contracts_break_nothing_that_was_promised() -> None:
    """What breaks them on purpose also replaces proto/baseline.binpb, and says so in the changelog."""
    checked = _breaking(ROOT / "proto")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("promised", "broken"),
    [
        ("uint32 base_workers = 3;", "uint32 base_workers = 9;"),
        ("string pool = 1;", "bytes pool = 1;"),
        ("rpc Poll(", "rpc Ask("),
    ],
)
def test_a_breaking_change_is_reported(tmp_path: Path, promised: str, broken: str) -> None:
    proto = shutil.copytree(ROOT / "proto", tmp_path / "proto")
    agent = proto / "headway" / "wire" / "v1" / "agent.proto"
    text = agent.read_text()
    assert promised in text
    agent.write_text(text.replace(promised, broken, 1))
    assert _breaking(proto).returncode != 0


@pytest.mark.install  # the pinned generator is fetched once
def test_generated_code_is_what_the_generator_makes(tmp_path: Path) -> None:
    # -o: the environment that runs this test is up to date, whatever the clock says of its files.
    asked = ["make", "-o", ".venv/.installed", "proto", f"PROTO_OUT={tmp_path}"]
    subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True, timeout=110)
    fresh, committed = _generated(tmp_path / "headway" / "wire" / "v1"), _generated(SERVICE / "wire" / "v1")
    assert sorted(fresh) == sorted(committed)
    assert [name for name in fresh if fresh[name] != committed[name]] == []


def _generated(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob("*_pb2*")}
