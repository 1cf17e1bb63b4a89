"""The TypeScript types of the page: generated, compiled strictly, and used by a program on a real control plane."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from security.planes import Plane
from support.npm import node_modules
from support.tree import ROOT

pytestmark = pytest.mark.e2e

PAGE = (ROOT / "docs/how-to/call-from-typescript.md").read_text()
PROJECT = ROOT / "tests/client/typescript"
_, GENERATED_BY = re.findall(r"```bash\n(.*?)```", PAGE, flags=re.DOTALL)
(PROGRAM,) = re.findall(r"```ts\n(.*?)```", PAGE, flags=re.DOTALL)


def ran(*words: str, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_types_of_the_page_compile_and_its_program_runs(plane: Plane, token_file, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(PROJECT, project)
    (project / "node_modules").symlink_to(node_modules(PROJECT))
    (project / "pools.ts").write_text(PROGRAM)

    viewer = {"HEADWAY_URL": plane.http, "HEADWAY_TOKEN_FILE": str(token_file("viewer"))}
    ran("bash", "-euc", GENERATED_BY, folder=project, no_proxy="127.0.0.1", **viewer)
    ran("npx", "tsc", "--noEmitOnError", folder=project)  # with what it must refuse, in mistakes.ts

    assert ran("node", "pools.js", folder=project, **viewer).startswith("403 ")
    with plane.client() as client:
        client.put("/v1/profiles/mail", json={"queues": ["rq/mail"], "template": "rq"}).raise_for_status()
    operator = {**viewer, "HEADWAY_TOKEN_FILE": str(token_file("operator"))}
    shown, scaled = ran("node", "pools.js", folder=project, **operator).splitlines()
    assert re.fullmatch("mail: unseen, 0 of (0|unknown) workers", shown)
    assert scaled == "mail: 5 workers by hand"
