"""A picture of every page, light and dark, at three widths, with few queues and with many: `make screenshots`."""

import time

import pytest
from playwright.async_api import Browser

from browser import crowd
from browser.every_page import PAGES, past, show
from browser.pages import IN_A_BROWSER, opened
from browser.scene import play
from support.seed import Seed
from support.tree import ROOT
from support.waiting import eventually_of

pytestmark = [*IN_A_BROWSER, pytest.mark.proof]

FOLDER = ROOT / "build/screenshots"
FITS = "document.documentElement.scrollWidth <= innerWidth"
WIDTHS_PX = (1440, 1024, 390)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("installation", ["few", "many"])
async def test_every_page_fits_each_width_and_is_drawn(
    browser: Browser, serve, seed: Seed, installation: str, scheme: str
) -> None:
    play(seed, now_s=time.time())
    if installation == "many":
        crowd.add(seed, now_s=time.time(), queues=200, hosts=50)
    past(seed, now_s=time.time())
    FOLDER.mkdir(parents=True, exist_ok=True)
    async with serve() as (url, _, _), opened(browser, url, color_scheme=scheme) as (page, wrong):
        for name in PAGES:
            await show(page, url, name)
            for width_px in WIDTHS_PX:
                await page.set_viewport_size({"width": width_px, "height": 900})
                await eventually_of(lambda: page.evaluate(FITS), within_s=15.0)  # the charts follow
                await page.screenshot(path=FOLDER / f"{installation}-{name}-{scheme}-{width_px}.png", full_page=True)
        assert wrong == []
