"""A rehearsal's report in a real browser: it loads nothing, fits the page, and draws what it says."""

from pathlib import Path

import pytest
from playwright.async_api import Browser

from browser.pages import IN_A_BROWSER
from headway.__main__ import main

pytestmark = IN_A_BROWSER


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "out.html"
    words = ["--synthetic", "flash:for=30m,rate=0.5", "--strategy", "hybrid,hybrid_v3", "--report", str(file)]
    assert main(["simulate", *words]) == 0
    return file


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (400, "dark")])
async def test_a_report_is_read_without_a_network(browser: Browser, report: Path, width: int, scheme: str) -> None:
    asked: list[str] = []
    page = await browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: asked.append(message.text))
    page.on("pageerror", lambda error: asked.append(str(error)))
    await page.goto(report.as_uri())
    assert asked == [report.as_uri()]
    assert await page.locator("tbody tr").count() == 2 * 3  # each with its least and its most over the tick phases
    assert await page.locator("svg:visible").count() == 3  # cost, workers, waits; the second strategy is folded
    await page.locator("summary").nth(1).click()
    assert await page.locator("svg:visible").count() == 5
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    ground = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(246, 246, 243)" if scheme == "light" else "rgb(17, 21, 27)")
