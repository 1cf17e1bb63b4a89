"""`make release`: everything of a version is made at once, or nothing is changed."""

import hashlib
import json
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

import release
from install.conftest import AUTHOR, NEXT, copied, git

pytestmark = [pytest.mark.install, pytest.mark.timeout(600)]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This tree as a repository of one commit, with a change to release."""
    for name, value in AUTHOR.items():
        monkeypatch.setenv(name, value)
    return copied(tmp_path / "repository")


def test_a_release_is_made_at_once(released: Path) -> None:
    repository = released
    assert release.current_version(repository) == NEXT
    assert git(repository, "log", "-1", "--format=%s") == f"release: {NEXT}"
    assert git(repository, "describe", "--exact-match") == f"v{NEXT}"
    assert git(repository, "status", "--porcelain") == ""
    assert f"headway-{NEXT}-py3-none-any.whl" in (repository / "docs/how-to/install.md").read_text()

    dist = repository / "dist" / NEXT
    made = {file.name for file in dist.iterdir()}
    assert made == {
        f"headway-{NEXT}-py3-none-any.whl",
        f"headway-{NEXT}.tar.gz",
        f"headway-{NEXT}.cdx.json",
        f"headway-{NEXT}-docs.tar.gz",
        "NOTES.md",
        "SHA256SUMS",
    }
    for line in (dist / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest
    with zipfile.ZipFile(dist / f"headway-{NEXT}-py3-none-any.whl") as wheel:
        assert f'__version__ = "{NEXT}"' in wheel.read("headway/__init__.py").decode()
        assert f"\nVersion: {NEXT}\n" in wheel.read(f"headway-{NEXT}.dist-info/METADATA").decode()
    with tarfile.open(dist / f"headway-{NEXT}-docs.tar.gz") as site:
        index = site.extractfile(f"headway-{NEXT}-docs/docs/README.html")
        assert index is not None
        assert f"Headway {NEXT}" in index.read().decode()
    bom = json.loads((dist / f"headway-{NEXT}.cdx.json").read_text())
    versions = {each["name"]: each["version"] for each in bom["components"]}
    assert {"grpcio", "pyspark", "fastapi"} <= versions.keys()
    assert "pytest" not in versions

    notes = (dist / "NOTES.md").read_text()
    assert notes.startswith(f"# Headway {NEXT}\n\n### Fixed\n\n- A fault.\n")
    changelog = (repository / "CHANGELOG.md").read_text()
    assert re.search(rf"\n## Unreleased\n\n## {NEXT} \(\d{{4}}-\d\d-\d\d\)\n\n### Fixed\n\n- A fault\.\n", changelog)
    assert release.unreleased(changelog) == ""


def test_a_dry_run_keeps_nothing(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(release, "_build", lambda *_, **__: [])  # the same as above, and half a minute
    before = git(repository, "rev-parse", "HEAD")
    assert release.main([NEXT, "--check", "--root", str(repository)]) == 0
    assert f"{NEXT} can be made" in capsys.readouterr().out
    assert release.main([NEXT, "--dry-run", "--no-image", "--root", str(repository)]) == 0
    assert "nothing is kept" in capsys.readouterr().out
    assert git(repository, "rev-parse", "HEAD") == before
    assert git(repository, "tag", "--list") == ""
    assert git(repository, "status", "--porcelain") == ""
    assert not (repository / "dist").exists()


@pytest.mark.parametrize(
    ("version", "change", "says"),
    [
        ("1.2", "true", "is no version"),
        ("0.0.1", "true", "is not later than"),
        (NEXT, "echo >> README.md", "files are changed: M README.md"),
        (NEXT, f"git tag v{NEXT}", f"the tag v{NEXT} exists"),
        (
            NEXT,
            "printf '# Changelog\n\n## Unreleased\n' > CHANGELOG.md && git commit -qam c",
            "nothing under Unreleased",
        ),
    ],
)
def test_what_cannot_be_released_is_refused_in_one_sentence(
    repository: Path, version: str, change: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["bash", "-ec", change], cwd=repository, check=True)
    assert release.main([version, "--check", "--root", str(repository)]) == release.REFUSED
    assert says in capsys.readouterr().err
    assert release.main([version, "--root", str(repository)]) == release.REFUSED
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


def test_a_build_that_fails_changes_nothing(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "uv.lock").write_text("version = 1\n")
    git(repository, "commit", "--quiet", "--all", "--message", "all: break")
    before = git(repository, "rev-parse", "HEAD")
    assert release.main([NEXT, "--no-image", "--root", str(repository)]) == release.REFUSED
    assert "uv.lock has" in capsys.readouterr().err
    assert (git(repository, "rev-parse", "HEAD"), git(repository, "status", "--porcelain")) == (before, "")
