"""Every script of `benchmarks/` and `tools/` is run by `make scripts`, which goes on where one fails and says so."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import smallest_runs
from bounded_run import TIMED_OUT
from smallest_runs import FOLDERS, NOT_HERE, SMALLEST, Recipe, SmallestRun
from support.processes import runs
from support.tree import ROOT

LEAVES_ONE = """
import subprocess, sys
left = subprocess.Popen(["sleep", "600"], start_new_session=True)
print(left.pid, file=open(sys.argv[1], "w"), flush=True)
"""
HANGS = f"{LEAVES_ONE}import time; time.sleep(600)"


def modules() -> Iterator[str]:
    for folder in FOLDERS:
        yield from (file.relative_to(ROOT).as_posix() for file in (ROOT / folder).rglob("*.py"))


def named() -> set[str]:
    """The modules that files of these folders and of the tests import, or name in a string, as RQ's workers are."""
    found: set[str] = set()
    for file in (file for folder in (*FOLDERS, "tests") for file in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value.rpartition(".")[0])
    return found


def test_every_script_has_a_smallest_run() -> None:
    assert sorted(SMALLEST) == smallest_runs.scripts_of(ROOT)


def test_what_is_no_script_is_read_by_one() -> None:
    """Else it would rot beside the scripts that are run."""
    built_with = (ROOT / "pyproject.toml").read_text()
    known = named()
    others = [name for name in modules() if name not in SMALLEST and not name.endswith("__init__.py")]
    called = {name: name.split("/", 1)[1].removesuffix(".py").replace("/", ".") for name in others}
    assert [name for name in others if called[name] not in known and f'"{name}"' not in built_with] == []


def test_ci_runs_the_field_and_the_scripts_after_the_tests() -> None:
    recipes = re.findall(r"\bmake (\w+) PYTHON", (ROOT / ".ci/run").read_text())
    assert recipes == ["install", "test", "field", "scripts"]
    recipe = r"^scripts: install .*\n\t@\$\(BIN\)/python tools/smallest_runs\.py \$\(ARGS\)$"
    assert re.search(recipe, (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree of three scripts and what they share."""
    written = {
        "benchmarks/good.py": "if __name__ == '__main__':\n    print('good')",
        "benchmarks/shared.py": "print('imported')",
        "benchmarks/deep/far.py": "if __name__ == '__main__': ...",
        "tools/bad.py": "if '__main__' == __name__:\n    raise SystemExit(1)",
    }
    for name, text in written.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_scripts_are_found_by_what_can_be_run(tree: Path) -> None:
    assert smallest_runs.scripts_of(tree) == ["benchmarks/deep/far.py", "benchmarks/good.py", "tools/bad.py"]


def test_one_that_fails_prints_its_last_lines_and_the_others_go_on(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "tools/bad.py").write_text("print(*range(1000), sep='\\n')\nraise SystemExit('at last')")
    scripts = {"tools/bad.py": SmallestRun(), "benchmarks/good.py": SmallestRun()}
    assert smallest_runs.run_all(Recipe(within_s=60.0, runs=scripts, root=tree), list(scripts), lanes=1) == 1
    said = capsys.readouterr().out
    assert re.search(r"tools/bad\.py FAILED with 1 after \d+ s:\n    976\n", said)
    assert "    999\n    at last\n" in said
    assert re.search(r"scripts: benchmarks/good\.py, \d+ s\n", said)
    assert re.search(r"scripts: 1 of 2 good in \d+ s; failed: tools/bad\.py\n$", said)


def test_one_without_a_smallest_run_has_failed(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert smallest_runs.run_all(Recipe(within_s=60.0, runs={}, root=tree), ["tools/bad.py"], lanes=1) == 1
    assert "tools/bad.py FAILED: it has no line in smallest_runs.py" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("status", "good", "ci", "ends_with"),
    [
        (0, (0,), "", 0),
        (3, (0, 3), "", 0),
        (3, (0,), "", 1),
        (NOT_HERE, (0,), "", 0),
        (NOT_HERE, (0,), "true", 1),  # as a test that is left out
    ],
)
def test_a_script_is_judged_by_its_status(
    tree: Path, monkeypatch: pytest.MonkeyPatch, status: int, good: tuple[int, ...], ci: str, ends_with: int
) -> None:
    monkeypatch.setenv("CI", ci)
    (tree / "tools/bad.py").write_text(f"print('no browser')\nraise SystemExit({status})")
    recipe = Recipe(within_s=60.0, runs={"tools/bad.py": SmallestRun(statuses=good)}, root=tree)
    assert smallest_runs.run_all(recipe, ["tools/bad.py"], lanes=1) == ends_with


def test_a_script_runs_in_a_folder_of_its_own_without_settings_of_headway(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_DATABASE_URL", "postgresql://somebodys")
    (tree / "tools/bad.py").write_text(
        "import os, sys\n"
        "assert os.listdir() == [] and sys.argv[1:] == [os.getcwd(), 'two words']\n"
        "assert [name for name in os.environ if name.startswith('HEADWAY_')] == ['HEADWAY_URL']\n"
    )
    run = SmallestRun(arguments="{folder} 'two words'", environment={"HEADWAY_URL": "http://127.0.0.1:1"})
    recipe = Recipe(within_s=60.0, runs={"tools/bad.py": run}, root=tree)
    assert smallest_runs.run_all(recipe, ["tools/bad.py"], lanes=1) == 0


@pytest.mark.parametrize(
    ("script", "within_s", "status", "says"),
    [
        (LEAVES_ONE, 60.0, 0, "ended what was left running: sleep"),
        (HANGS, 3.0, TIMED_OUT, "not ended after 3 s"),
    ],
)
def test_what_a_script_leaves_running_is_ended(
    tmp_path: Path, script: str, within_s: float, status: int, says: str
) -> None:
    pid_file = tmp_path / "pid"
    words = [ROOT / "tools/bounded_run.py", str(within_s), sys.executable, "-c", script, pid_file]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60, env=os.environ)
    assert (done.returncode, says in done.stderr) == (status, True), done.stderr
    assert not runs(int(pid_file.read_text()))
