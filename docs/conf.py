"""The site of the documents: `make docs` builds it into build/docs, and a warning ends the build.

Pages are read where they are, README and CONTRIBUTING included, so that a link is valid on a code host and on the site.
Navigation is the index, docs/README.md: its headings are captions, its links are the pages.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

from headway import __version__

ROOT = Path(__file__).parents[1]
INDEX = "docs/README"

project = "Headway"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = INDEX
include_patterns = ["*.md", "docs/**.md"]
# Without the folders that hold no page: looking through .venv alone takes longer than the build.
exclude_patterns = [
    ".*",
    "benchmarks",
    "build",
    "dist",
    "migrations",
    "proto",
    "service",
    "sparkjobs",
    "tests",
    "tools",
]
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]  # a command with an ellipsis in it is no valid shell

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True

html_theme = (
    "furo"  # loads nothing from anywhere else: the reader's own fonts, and its few scripts lie beside the pages
)
html_title = f"Headway {release}"
html_show_copyright = False
html_copy_source = False


def setup(app: Sphinx) -> None:
    """Connect what the pages need to be a site."""
    app.connect("source-read", _as_site)


def _as_site(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace a page's text by what the site shows of it."""
    folder = (ROOT / docname).parent
    pages = {ROOT / f"{page}.md" for page in app.env.found_docs}
    text = re.sub(r"(?<!!)\[([^\]]*)\]\(([^)#\s]+)\)", lambda link: _link(link, folder, pages), source[0])
    source[0] = "\n\n".join([text, *_navigation(source[0])]) if docname == INDEX else text


def _link(link: re.Match[str], folder: Path, pages: set[Path]) -> str:
    """The link, or its words alone where it leads to what a code host shows and a site does not."""
    target = (folder / link[2]).resolve()
    is_elsewhere = target.is_dir() or (target.suffix == ".md" and target.exists() and target not in pages)
    return link[1] if is_elsewhere else link[0]


def _navigation(index: str) -> Iterator[str]:
    """A hidden table of contents for each heading of the index, of the pages that are linked below it."""
    first, *sections = index.split("\n## ")
    yield _contents("Begin", ["../README", *_linked(first)])
    for section in sections:
        caption, _, body = section.partition("\n")
        yield _contents(caption, _linked(body))
    yield _contents("Project", ["../CONTRIBUTING", "../SECURITY", "../CHANGELOG"])


def _linked(text: str) -> list[str]:
    """The pages that a part of the index links to; behind a folder's README, the other pages of that folder."""
    pages = dict.fromkeys(re.findall(r"\]\(([\w/.-]+)\.md\)", text))
    for page in [page for page in pages if page.endswith("/README")]:
        beside = sorted((ROOT / INDEX).parent.glob(f"{Path(page).parent}/*.md"))
        pages.update(dict.fromkeys(f"{Path(page).parent}/{each.stem}" for each in beside))
    return list(pages)


def _contents(caption: str, pages: list[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```"])
