"""The dashboard's pages: the shell at their paths, and at no other."""

import re

import httpx
import pytest

from headway.control.http.dashboard import PAGES, WEB, is_page
from headway.control.http.middleware import SECURITY_HEADERS


def test_the_server_and_the_router_know_the_same_pages() -> None:
    registered = re.findall(r'\bpath: "([^"]+)"', (WEB / "pages" / "registry.js").read_text())
    assert registered == list(PAGES)


@pytest.mark.parametrize(
    ("path", "up"),
    [("/", ""), ("/pools/mail", "../"), ("/queues/redis/mail", "../../"), ("/queues/redis%2F..", "../")],
)
async def test_a_page_is_the_shell_whose_files_are_found_from_there(
    client: httpx.AsyncClient, path: str, up: str
) -> None:
    answer = await client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.headers["Cache-Control"] == "no-cache"
    assert answer.headers["Content-Security-Policy"] == SECURITY_HEADERS["Content-Security-Policy"]
    assert f'src="{up}static/app.js"' in answer.text
    assert (await client.get(str(answer.url.join(f"{up}static/app.js")))).status_code == 200


@pytest.mark.parametrize("path", ["/nowhere", "/v1", "/v1/nowhere", "/static/nowhere.js", "/index.html"])
async def test_at_any_other_path_there_is_no_page(client: httpx.AsyncClient, path: str) -> None:
    assert not is_page(path)
    answer = await client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


def test_nothing_of_the_shell_is_a_script_or_style_in_the_page() -> None:
    """The policy forbids both, and a browser would leave them out without a word."""
    html = (WEB / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\bon\w+=|\bstyle=", html) == []
