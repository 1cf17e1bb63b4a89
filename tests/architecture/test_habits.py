"""What people who change Headway are given: templates, hooks and the map of roles are of this tree."""

import re
import subprocess
import tomllib
from typing import Any

import pytest
import yaml

from support.tree import ROOT, SERVICE

GITHUB = ROOT / ".github"
FORMS = sorted(form for form in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if form.name != "config.yml")
HOOKS: dict[str, Any] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_a_form_asks_what_a_code_host_can_show(form) -> None:
    asked = yaml.safe_load(form.read_text())
    assert {"name", "description", "body"} <= asked.keys()
    fields = [field for field in asked["body"] if field["type"] != "markdown"]
    assert {field["type"] for field in fields} <= {"input", "textarea", "dropdown", "checkboxes"}
    assert all(field["attributes"]["label"] for field in fields)
    assert len({field["id"] for field in fields}) == len(fields)
    assert any(field.get("validations", {}).get("required") for field in fields)


@pytest.mark.parametrize("text", [*FORMS, GITHUB / "pull_request_template.md"], ids=lambda file: file.stem)
def test_what_a_template_names_exists(text) -> None:
    said = text.read_text()
    files = [name for name in re.findall(r"[\w/.-]+(?:\.md|/)(?=[\s`.,])", said) if "/" in name or name.isupper()]
    assert [name for name in files if not (ROOT / name).exists()] == []
    recipes = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert [recipe for recipe in re.findall(r"`make ([a-z-]+)", said) if recipe not in recipes] == []


def test_hooks_run_what_the_recipes_run() -> None:
    """Of the same environment, so of the same versions; without --check, as a hook may mend what it finds."""
    makefile = (ROOT / "Makefile").read_text().replace("$(BIN)", ".venv/bin")
    recipes = re.sub(r" --check \.| \.(?=$| )", "", makefile, flags=re.MULTILINE)
    hooks = [hook for repository in HOOKS["repos"] for hook in repository["hooks"]]
    assert len(hooks) >= 3
    assert {repository["repo"] for repository in HOOKS["repos"]} == {"local"}
    assert [hook["entry"] for hook in hooks if hook["entry"] not in recipes] == []


def test_every_folder_has_a_role() -> None:
    rows = re.search(r"^\| folder \| role \|.*\n\|[ |-]+\n((?:\|.*\n)+)", CONTRIBUTING, flags=re.MULTILINE)
    assert rows is not None
    owned = re.findall(r"\[([\w./]+)\]\(\1\)", rows[1])
    assert [folder for folder in owned if not (ROOT / folder).is_dir()] == []
    assert len(owned) == len(set(owned))
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    roots = {name.split("/")[0] for name in tracked if "/" in name} - {"service"}
    packages = {f"service/headway/{folder.parent.name}" for folder in SERVICE.glob("*/__init__.py")}
    assert sorted((roots | packages) - set(owned)) == []


def test_versions_agree() -> None:
    """The three places that a release sets."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f'\n__version__ = "{version}"\n' in (SERVICE / "__init__.py").read_text()
    assert f'\nname = "headway"\nversion = "{version}"\n' in (ROOT / "uv.lock").read_text()


def test_no_test_imports_from_another() -> None:
    """What several share is in ``tests/support``, or in a module of their folder that is no test."""
    files = [file for folder in ("tests", "benchmarks", "tools") for file in (ROOT / folder).rglob("*.py")]
    imports = re.compile(r"^ *(?:from|import) (?:\w+\.)*test_\w+", flags=re.MULTILINE)
    found = {str(file.relative_to(ROOT)): imports.findall(file.read_text()) for file in files}
    assert {file: lines for file, lines in found.items() if lines} == {}
