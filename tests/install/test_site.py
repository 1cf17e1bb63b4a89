"""The site builds without a warning, which a dead link is; it has every page, and loads nothing from elsewhere."""

import re
from pathlib import Path

import pytest

from install.conftest import NEXT
from support.archives import open_tar
from support.tree import ROOT

pytestmark = [pytest.mark.install, pytest.mark.timeout(600)]

API = ROOT / "docs" / "reference" / "python-api.md"
LOADED = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*?\bsrc=["']([^"']+)|<link\b[^>]*?\bhref=["']([^"']+)""")
LOADED_BY_STYLE = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")


@pytest.fixture(scope="module")
def site(released: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a release, which a warning would have ended."""
    folder = tmp_path_factory.mktemp("site")
    with open_tar(released / "dist" / NEXT / f"headway-{NEXT}-docs.tar.gz") as archive:
        archive.extractall(folder)
    return folder / f"headway-{NEXT}-docs"


def test_every_page_is_on_the_site(site: Path) -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    missing = [page for page in pages if not (site / page.relative_to(ROOT)).with_suffix(".html").exists()]
    assert missing == []


def test_a_reader_loads_nothing_from_elsewhere(site: Path) -> None:
    loaded = {
        (str(file.relative_to(site)), target)
        for pattern, kind in ((LOADED, "html"), (LOADED_BY_STYLE, "css"))
        for file in site.rglob(f"*.{kind}")
        for found in pattern.finditer(file.read_text())
        for target in found.groups()
        if target
    }
    assert loaded
    assert sorted(each for each in loaded if re.match(r"(?:https?:)?//", each[1])) == []


def test_the_search_is_a_file_of_the_site(site: Path) -> None:
    """Its index has the stems of words."""
    assert "autoscal" in (site / "searchindex.js").read_text()


def test_navigation_has_the_headings_of_the_index(site: Path) -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "docs/README.md").read_text(), flags=re.MULTILINE)
    captions = re.findall(r'class="caption-text">(.*?)<', (site / "docs/README.html").read_text())
    assert captions == ["Begin", *headings, "Project"]


def test_docstrings_are_on_the_page_of_the_api(site: Path) -> None:
    text = (site / "docs/reference/python-api.html").read_text()
    assert "One pool with one queue, decided for step by step." in text
    assert 'id="headway.emit.client.TelemetryClient.send"' in text


def test_what_the_how_tos_import_is_on_the_page_of_the_api() -> None:
    pages = [ROOT / "docs/how-to/drive-the-core.md", ROOT / "docs/how-to/write-a-strategy.md"]
    imported = {
        f"{module}.{name}"
        for page in pages
        for module, names in re.findall(r"^from (headway\S*) import (.+)$", page.read_text(), flags=re.MULTILINE)
        for name in names.split(", ")
    }
    listed = set(re.findall(r"^\.\. auto\w+:: (\S+)$", API.read_text(), flags=re.MULTILINE))
    assert imported
    assert sorted(imported - listed) == []


def test_no_role_needs_what_builds_the_site() -> None:
    project = (ROOT / "pyproject.toml").read_text().split("[dependency-groups]")[0]
    assert "sphinx" not in project
    assert "--no-dev" in (ROOT / "Dockerfile").read_text()
