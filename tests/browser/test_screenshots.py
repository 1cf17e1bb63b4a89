"""A picture of every page, light and dark, at three widths: few queues, many, and a demo. `make screenshots`."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from browser import crowd
from browser.every_page import PAGES, past, show
from browser.pages import IN_A_BROWSER, opened
from browser.scene import play
from support.demos import demos
from support.seed import Seed
from support.tree import ROOT
from support.waiting import eventually_of

pytestmark = [*IN_A_BROWSER, pytest.mark.proof]

FOLDER = ROOT / "build/screenshots"
FITS = "document.documentElement.scrollWidth <= innerWidth"
WIDTHS_PX = (1440, 1024, 390)
SCHEMES = ("light", "dark")
# Pages of the demo: each path, and a text that is there once the page shows what it read.
OF_THE_DEMO = {
    "now": ("", "demo/reports"),
    "pool": ("pools/reports?range=15m", "objective30 s"),
    "queue": ("queues/demo/mail?range=15m", "objective10 s"),
    "profiles": ("profiles", "reports"),
    "profile": ("profiles/reports", "Check the change"),
    "decisions": ("decisions", "decisions, "),
    "alerts": ("alerts", "Ended"),
    "slo": ("slo", "reports"),
    "hosts": ("hosts", "reporting"),
    "system": ("system", "From broker to worker"),
}
DEMO_LENGTH = "5m"  # longer than a busy machine draws
DEMO_DRAWN_AFTER_S = 75.0  # in the busy hours of its day
DEMO_WITHIN_S = 600.0


@pytest.fixture(autouse=True)
def folder() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("installation", ["few", "many"])
async def test_every_page_fits_each_width_and_is_drawn(
    browser: Browser, serve, seed: Seed, installation: str, scheme: str
) -> None:
    play(seed, now_s=time.time())
    if installation == "many":
        crowd.add(seed, now_s=time.time(), queues=200, hosts=50)
    past(seed, now_s=time.time())
    async with serve() as (url, _, _), opened(browser, url, color_scheme=scheme) as (page, wrong):
        for name in PAGES:
            await show(page, url, name)
            await _draw(page, f"{installation}-{name}", scheme)
        assert wrong == []


@pytest.mark.timeout(1500)
async def test_a_demo_is_drawn_while_it_runs_and_its_report_once_it_has_ended(browser: Browser, tmp_path: Path) -> None:
    with demos(tmp_path / "data") as start:
        demo = start("--for", DEMO_LENGTH)
        url = f"{await asyncio.to_thread(demo.url)}/"
        async with (
            opened(browser, url, color_scheme="light") as (light, _),
            opened(browser, url, color_scheme="dark") as (dark, _),
        ):
            pages = {"light": light, "dark": dark}
            await asyncio.sleep(DEMO_DRAWN_AFTER_S)
            for name, (path, text) in OF_THE_DEMO.items():
                for scheme, page in pages.items():
                    await page.goto(url + path)
                    await expect(page.locator("#main")).to_contain_text(text)
                    await _draw(page, f"demo-{name}", scheme)
            await _visit(pages, url)
            assert await asyncio.to_thread(lambda: demo.end(within_s=DEMO_WITHIN_S)) == 0, demo.said
            for scheme, page in pages.items():
                await expect(page.locator("#link")).to_have_text("The demo has ended")
                await _draw(page, "demo-ended", scheme)


async def _visit(pages: Mapping[str, Page], url: str) -> None:
    for page in pages.values():
        await page.goto(url)
        await expect(page.locator("#link")).to_have_text("Live")


async def _draw(page: Page, name: str, scheme: str) -> None:
    """One picture a width, with what is below the screen."""
    for width_px in WIDTHS_PX:
        await page.set_viewport_size({"width": width_px, "height": 900})
        await eventually_of(lambda: page.evaluate(FITS), within_s=15.0)  # the charts follow
        await page.screenshot(path=FOLDER / f"{name}-{scheme}-{width_px}.png", full_page=True)
