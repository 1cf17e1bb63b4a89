"""Make a release: version, changelog, wheel, sdist, SBOM, site, checksums, image, commit and tag.

    make release VERSION=1.2.0 [ARGS=--dry-run]     # or --check: only whether it can be made

Everything is made in a clone of this repository's last commit. Only when all of it is there do the commit and the tag
come back, and the files go to dist/VERSION/. With --dry-run nothing comes back: the files are made, listed and thrown
away. Nothing is pushed or uploaded; the last line says how.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
ENGINES = ("docker", "podman")

VERSION_FILES = {
    "pyproject.toml": '\nversion = "{}"\n',
    "service/headway/__init__.py": '\n__version__ = "{}"\n',
    "uv.lock": '\nname = "headway"\nversion = "{}"\n',
}
WHEEL = "headway-{}-py3-none-any.whl"


REFUSED = 3  # the exit status of a release that cannot be made


class CannotRelease(Exception):
    """What stands in the way of a release, in one sentence."""


def main(words: Sequence[str] | None = None) -> int:
    """Make the release that the arguments name. Returns the exit status."""
    given = _options(words)
    try:
        if given.check:
            check(given.version, root=given.root.resolve())
            print(f"release: {given.version} can be made")
        else:
            _release(given.version, root=given.root.resolve(), is_dry=given.dry_run, has_image=not given.no_image)
    except CannotRelease as error:
        print(f"release: {error}", file=sys.stderr)
        return REFUSED
    return 0


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make release", description="Make a release of the last commit.")
    parser.add_argument("version", help="the new version, as 1.2.0")
    parser.add_argument("--check", action="store_true", help="only say whether it can be made")
    parser.add_argument("--dry-run", action="store_true", help="make everything, keep nothing")
    parser.add_argument("--no-image", action="store_true", help="build no container image, even where an engine runs")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository (this one)")
    return parser.parse_args(words)


def _release(version: str, *, root: Path, is_dry: bool, has_image: bool) -> None:
    check(version, root=root)
    with tempfile.TemporaryDirectory(prefix="headway-release-") as scratch:
        clone, dist = Path(scratch) / "headway", Path(scratch) / "dist"
        _run("git", "clone", "--quiet", "--local", str(root), str(clone), cwd=root)
        before = current_version(clone)
        for changed in rewrite(clone, before=before, version=version, day=datetime.now(UTC).date().isoformat()):
            print(f"release: {changed}: {before} is {version}")
        dist.mkdir()
        for made in _build(clone, dist, version=version):
            print(f"release: {made.name}, {made.stat().st_size:,} bytes")
        _commit(clone, version)
        image = _image(clone, version) if has_image else "left out, as asked"
        print(f"release: image: {image}")
        if is_dry:
            print("release: dry run, nothing is kept")
            return
        _run("git", "pull", "--quiet", "--ff-only", "--tags", str(clone), "HEAD", cwd=root)
        shutil.copytree(dist, root / "dist" / version)
    print(f"release: dist/{version}/ and the tag v{version} are made; publish with: git push --follow-tags")


def check(version: str, *, root: Path) -> None:
    """Whether a release can be made.

    Raises:
        CannotRelease: The version is no later one, files are changed, the tag exists, or the changelog says nothing.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise CannotRelease(f"'{version}' is no version; it has three numbers, as 1.2.0")
    before = current_version(root)
    if _numbers(version) <= _numbers(before):
        raise CannotRelease(f"{version} is not later than {before}")
    if changed := _run("git", "status", "--porcelain", "--untracked-files=no", cwd=root).split("\n")[0]:
        raise CannotRelease(f"the release is made of the last commit, and files are changed: {changed.strip()}")
    if _run("git", "tag", "--list", f"v{version}", cwd=root):
        raise CannotRelease(f"the tag v{version} exists")
    if not unreleased((root / "CHANGELOG.md").read_text()):
        raise CannotRelease("CHANGELOG.md has nothing under Unreleased: there is nothing to release")


def current_version(root: Path) -> str:
    """The version in ``pyproject.toml``."""
    found = re.search(r'^version = "(.+)"$', (root / "pyproject.toml").read_text(), flags=re.MULTILINE)
    assert found is not None
    return found[1]


def unreleased(changelog: str) -> str:
    """What stands below Unreleased; empty where there is no line of a change."""
    _, _, after = changelog.partition("\n## Unreleased\n")
    section = re.split(r"^## ", after, flags=re.MULTILINE)[0].strip()
    return section if re.search(r"^- ", section, flags=re.MULTILINE) else ""


def rewrite(root: Path, *, before: str, version: str, day: str) -> Iterator[str]:
    """Set the version in the project, in pages that name the wheel, and over the changes. Yields the files.

    Raises:
        CannotRelease: A file does not have its version where it should be.
    """
    for name, line in VERSION_FILES.items():
        _replace(root / name, line.format(before), line.format(version))
        yield name
    for name in _run("git", "grep", "--files-with-matches", "--fixed-strings", WHEEL.format(before), cwd=root).split(
        "\n"
    ):
        if name and name != "CHANGELOG.md":
            file = root / name
            file.write_text(file.read_text().replace(WHEEL.format(before), WHEEL.format(version)))
            yield name
    _replace(root / "CHANGELOG.md", "\n## Unreleased\n", f"\n## Unreleased\n\n## {version} ({day})\n")
    yield "CHANGELOG.md"


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    if text.count(old) != 1:
        raise CannotRelease(f"{file.name} has '{old.strip()}' {text.count(old)} times, not once")
    file.write_text(text.replace(old, new))


def _build(clone: Path, dist: Path, *, version: str) -> Iterator[Path]:
    """The files of a release, in ``dist``."""
    uv = str(BIN / "uv")
    # Both of the clone, where that leaves the generated client, which the site describes.
    _run(uv, "--quiet", "build", "--sdist", "--wheel", "--out-dir", str(dist), cwd=clone)
    bom = dist / f"headway-{version}.cdx.json"
    exported = ("export", "--quiet", "--frozen", "--all-extras", "--no-dev", "--format", "cyclonedx1.5")
    _run(uv, *exported, "--output-file", str(bom), cwd=clone)
    site = clone / "build" / "docs"
    _run(str(BIN / "sphinx-build"), "-q", "-W", "-c", "docs", ".", str(site), cwd=clone, source=clone / "service")
    with tarfile.open(dist / f"headway-{version}-docs.tar.gz", "w:gz") as archive:
        archive.add(
            site, arcname=f"headway-{version}-docs", filter=lambda each: each if ".doctrees" not in each.name else None
        )
    notes = (clone / "CHANGELOG.md").read_text().split(f"\n## {version} ", 1)[1].split("\n## ", 1)[0].partition("\n")[2]
    (dist / "NOTES.md").write_text(f"# Headway {version}\n\n{notes.strip()}\n")
    for left in dist.glob(".gitignore"):
        left.unlink()
    files = sorted(dist.iterdir())
    sums = dist / "SHA256SUMS"
    sums.write_text("".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files))
    yield from (*files, sums)


def _commit(clone: Path, version: str) -> None:
    _run("git", "commit", "--quiet", "--all", "--message", f"release: {version}", cwd=clone)
    _run("git", "tag", "--annotate", f"v{version}", "--message", f"Headway {version}", cwd=clone)


def _image(clone: Path, version: str) -> str:
    """The image's name, or why there is none."""
    for engine in ENGINES:
        if shutil.which(engine) and subprocess.run([engine, "info"], capture_output=True, check=False).returncode == 0:
            _run(engine, "build", "--tag", f"headway:{version}", ".", cwd=clone)
            return f"headway:{version}, built by {engine}"
    return f"left out, as none of {' and '.join(ENGINES)} runs here"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def _run(*words: str, cwd: Path, source: Path | None = None) -> str:
    """What a program prints.

    Raises:
        CannotRelease: It failed. ``git grep`` that finds nothing has not.
    """
    env = {**os.environ, **({} if source is None else {"PYTHONPATH": str(source)})}
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0 and words[:2] != ("git", "grep"):
        raise CannotRelease(f"`{' '.join(words)}` failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
