"""One wheel a session, and bare environments with parts of it, as a user would have them."""

import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path

import pytest

import release
from support.tree import ROOT

UV = Path(sys.executable).with_name("uv")
AUTHOR = {f"GIT_{who}_{what}": "release@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
NEXT = "97.1.0"


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment that has Headway from its wheel, and nothing of this checkout."""

    folder: Path

    def run(self, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        """What the program ``argv[0]`` of this environment does, with no more of our environment than it needs."""
        plain = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "JAVA_HOME") if name in os.environ}
        program = [str(self.folder / "bin" / argv[0]), *argv[1:]]
        return subprocess.run(
            program, cwd=self.folder, env={**plain, **env}, capture_output=True, text=True, check=False, timeout=500
        )

    def headway(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return self.run("headway", *words, **env)

    def python(self, code: str, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run("python", "-c", code, *words)

    def distributions(self) -> set[str]:
        listed = self.python(
            "from importlib.metadata import distributions as all_of; print(*(one.name.lower() for one in all_of()))"
        )
        return set(listed.stdout.split())


@pytest.fixture(scope="session")
def scratch() -> Iterator[Path]:
    # Not pytest's folder, which keeps those of the last three runs: these environments are a gigabyte.
    folder = Path(tempfile.mkdtemp(prefix="headway-install-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def wheel(scratch: Path) -> Path:
    _uv("build", "--wheel", "--out-dir", str(scratch / "dist"), str(ROOT))
    (built,) = (scratch / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="session")
def installed(scratch: Path, wheel: Path) -> Callable[..., Environment]:
    """Makes an environment with an extra of the wheel, once a session: ``installed("control")``.

    An extra's packages are those of uv.lock: what was tried, and in uv's cache since this checkout was installed. With
    ``pins``, and for the wheel alone, they are found as for any user.
    """
    made: dict[tuple[str, ...], Environment] = {}

    def environment(extra: str = "", *pins: str) -> Environment:
        key = (extra, *pins)
        if key not in made:
            folder = scratch / f"environment-{len(made)}"
            _uv("venv", "--python", sys.executable, str(folder))
            if extra:
                _uv("sync", "--frozen", "--no-dev", "--no-install-project", "--extra", extra, into=folder)
                _uv("pip", "install", "--no-deps", "--python", str(folder), str(wheel))
            else:
                _uv("pip", "install", "--python", str(folder), *pins, str(wheel))
            made[key] = Environment(folder)
        return made[key]

    return environment


def _uv(*words: str, into: Path | None = None) -> None:
    environment = {**os.environ, **({"UV_PROJECT_ENVIRONMENT": str(into)} if into else {})}
    subprocess.run(
        [UV, "--quiet", *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=800
    )


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, capture_output=True, text=True, check=True, env={**os.environ, **AUTHOR}
    )
    return done.stdout.strip()


def copied(folder: Path) -> Path:
    """This tree as a repository of one commit in ``folder``, with a change to release."""
    for name in git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    changelog = folder / "CHANGELOG.md"
    changelog.write_text(
        changelog.read_text().replace("## Unreleased\n", "## Unreleased\n\n### Fixed\n\n- A fault.\n", 1)
    )
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "all: begin")
    return folder


@pytest.fixture(scope="session")
def released(scratch: Path) -> Path:
    """A repository of this tree of which a release has been made, its documents among it: a quarter of a minute."""
    repository = copied(scratch / "repository")
    with pytest.MonkeyPatch.context() as environment, redirect_stderr(io.StringIO()) as said:
        for name, value in AUTHOR.items():
            environment.setenv(name, value)
        assert release.main([NEXT, "--no-image", "--root", str(repository)]) == 0, said.getvalue()
    return repository
