"""A demo that has ended: viewers see its report, and not that a connection was lost."""

import json
import time

from playwright.async_api import Browser, expect

from browser.pages import CONTRAST, IN_A_BROWSER, opened
from browser.scene import play
from headway.cli.demo.comparison import Terms, comparison
from headway.cli.demo.demo_report import report_of
from headway.cli.demo.report_text import report_shown
from support.demo_runs import MAIL, REPORTS, job, life, run
from support.seed import Seed

pytestmark = IN_A_BROWSER


def ended_report() -> str:
    """Of eight jobs, as the demo writes it."""
    jobs = [*[job(0, 1, 11)] * 6, job(0, 0, 20, queue="reports"), job(0, 20, 40, queue="reports")]
    ran = run(jobs, [life(0, 12)] * 4 + [life(0, 42)], goals=(MAIL, REPORTS))
    figures = {**report_of(ran), "comparison": comparison(ran, Terms(peak_window_s=9)), "faults": []}
    shown = report_shown({**figures, "workload": {"title": "a recorded day, 400 times as fast"}})
    return json.dumps({**shown, "again": "headway demo --for 90s", "page": "/data/report.html"})


async def test_an_ended_demo_shows_its_report_on_every_page_and_is_live_again_when_started_again(
    browser: Browser, serve, seed: Seed
) -> None:
    play(seed, now_s=time.time())
    async with serve(ended_report=ended_report()) as (url, _, server):
        port = server.port
        async with opened(browser, url, viewport={"width": 390, "height": 800}) as (page, _):
            await expect(page.locator("#link")).to_have_text("Live")
            await expect(page.locator("#ended")).to_be_hidden()
            await expect(page.locator("#announcer")).not_to_have_text("")  # the page is there: it speaks no later
            await server.stop()
            await expect(page.locator("#link")).to_have_text("The demo has ended")
            ended = page.get_by_role("region", name="This demo has ended")
            await expect(ended).to_contain_text("worker-hours of a pool sized for the peak")
            await expect(ended.locator("tr").filter(has_text="best fixed pool")).to_contain_text("100.0 %")
            await expect(ended).to_contain_text("8 done")
            await expect(ended).to_contain_text("Start it again: headway demo --for 90s")
            await expect(ended).to_contain_text("/data/report.html")
            await expect(page.locator("#announcer")).to_contain_text("The demo has ended. Headway took")
            await expect(page.locator("#headline")).to_contain_text("Last known")
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert await page.evaluate(f"({CONTRAST})().filter((each) => each.ratio < 4.5)") == []
            async with serve(port=port):
                await expect(page.locator("#link")).to_have_text("Live", timeout=20_000)
                await expect(ended).to_be_hidden()
