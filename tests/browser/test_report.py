"""A rehearsal's report in a real browser: it loads nothing, fits the page, and draws what it says."""

import shutil
from pathlib import Path

import pytest
from playwright.async_api import async_playwright

from headway.__main__ import main

CHROMIUM = shutil.which("chromium")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the PATH: apt-get install chromium"),
]


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (400, "dark")])
async def test_a_report_is_read_without_a_network(tmp_path: Path, width: int, scheme: str) -> None:
    file = tmp_path / "out.html"
    words = ["--synthetic", "flash:for=2h,rate=0.5", "--strategy", "hybrid,hybrid_v3", "--report", str(file)]
    assert main(["simulate", *words]) == 0
    asked: list[str] = []
    async with async_playwright() as browsers:
        browser = await browsers.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = await browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: asked.append(message.text))
        page.on("pageerror", lambda error: asked.append(str(error)))
        await page.goto(file.as_uri())
        assert asked == [file.as_uri()]
        assert await page.locator("tbody tr").count() == 2 * 3  # each with its least and its most over the tick phases
        assert await page.locator("svg:visible").count() == 3  # cost, workers, waits; the second strategy is folded
        await page.locator("summary").nth(1).click()
        assert await page.locator("svg:visible").count() == 5
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        ground = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(246, 246, 243)" if scheme == "light" else "rgb(17, 21, 27)")
        await browser.close()
