"""The dashboard's files: one shell, served at the path of every page, and what it loads under /static."""

import re
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import compile_path
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

WEB = Path(__file__).parents[1] / "web"
NOT_STORED = {"Cache-Control": "no-cache"}  # a browser asks every time, so that an upgrade shows at once

# The paths of web/pages/registry.js, which a test compares: at any other path nobody gets the shell.
PAGES = (
    "/",
    "/queues/{queue:path}",
    "/pools/{pool}",
    "/profiles",
    "/profiles/{name:path}",
    "/decisions",
    "/alerts",
    "/slo",
    "/hosts",
    "/hosts/{name:path}",
    "/system",
    "/account",
)

router = APIRouter(include_in_schema=False)


def is_page(path: str) -> bool:
    """Whether a page of the dashboard is at ``path``. Pages hold nothing secret: what they show, they ask the API."""
    return any(pattern.match(path) for pattern in _PATTERNS)


class Files(StaticFiles):
    """What the shell loads."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file at ``path``."""
        response = await super().get_response(path, scope)
        response.headers.update(NOT_STORED)
        return response


async def _shell(request: Request) -> HTMLResponse:
    # Its own files are named from where the page is, so that it also works below the path of a proxy.
    raw_path: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    up = "../" * (raw_path.count(b"/") - 1)
    html = (WEB / "index.html").read_text(encoding="utf-8")
    return HTMLResponse(re.sub(r'((?:href|src)=")static/', rf"\g<1>{up}static/", html), headers=NOT_STORED)


for _path in PAGES:
    router.add_api_route(_path, _shell)

_PATTERNS = tuple(compile_path(path)[0] for path in PAGES)
