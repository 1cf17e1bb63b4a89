"""The pages beside Now: what each shows, how it is filtered, and that it fits."""

import asyncio
import time
from pathlib import Path

from playwright.async_api import Browser, expect

from browser.pages import IN_A_BROWSER, TOKEN, opened, sign_in, token_of
from browser.scene import play
from support.seed import Seed

pytestmark = IN_A_BROWSER


async def test_decisions_are_filtered_by_the_address_and_every_page_opens(browser: Browser, serve, seed: Seed) -> None:
    play(seed, now_s=time.time())
    async with serve() as (url, _, _), opened(browser, url) as (page, wrong):
        await page.goto(f"{url}decisions?pool=reports&direction=up")
        await expect(page.locator(".decisions > li")).to_have_count(2)
        await page.get_by_label("Decided by").fill("workers_max")
        await page.get_by_label("Decided by").press("Enter")
        await expect(page.locator(".decisions > li")).to_have_count(1)
        await page.goto(f"{url}decisions?until=2020-01-01T00:00")
        await expect(page.get_by_text("No decision is like this")).to_be_visible()
        for path, text in [
            ("hosts", "worker-3"),
            ("hosts/gone", "No host has this name"),
            ("system", "From broker to worker"),
            ("account", "has no token"),
            ("profiles", "reports"),
        ]:
            await page.goto(url + path)
            await expect(page.locator("main")).to_contain_text(text)
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        assert wrong == []


async def test_on_a_phone_no_pools_name_is_broken_to_letters_beside_its_decision(
    browser: Browser, serve, seed: Seed
) -> None:
    play(seed, now_s=time.time())
    viewport = {"width": 390, "height": 900}
    async with serve() as (url, _, _), opened(browser, f"{url}decisions", viewport=viewport) as (page, _):
        names = page.locator(".line b")
        await expect(names.first).to_be_visible()
        heights_px = await names.evaluate_all("names => names.map((each) => each.getBoundingClientRect().height)")
        assert max(heights_px) < 30  # one line


async def test_the_slo_report_shows_days_late_jobs_and_what_is_not_known(
    browser: Browser, serve, seed: Seed, tmp_path: Path
) -> None:
    now_s = time.time()
    play(seed, now_s=now_s)
    today_s = now_s // 86_400 * 86_400
    for day, late_jobs in enumerate([0, 4, 120, 8]):
        seed.execute_with(
            "insert into pool_attainment values ('emails', %s, 1000, %s)", today_s - day * 86_400, late_jobs
        )
    async with serve() as (url, _, _), opened(browser, f"{url}slo") as (page, wrong):
        row = page.get_by_role("row", name="emails")
        await expect(row).to_contain_text("96.7 %")  # 132 of 4,000 jobs were late
        await expect(row).to_contain_text("4,000")
        await expect(page.get_by_role("row", name="images")).to_contain_text("–")
        days = page.locator("details[data-pool=emails]")
        await expect(days.locator("summary")).to_contain_text("without measured jobs")
        await days.locator("summary").click()
        await expect(days.get_by_role("row").nth(3)).to_contain_text("88 %")  # newest first, below the heading
        for width in (1440, 390):
            await page.set_viewport_size({"width": width, "height": 900})
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
            await page.screenshot(path=tmp_path / f"slo-{width}.png", full_page=True)
        async with page.expect_download() as download:
            await page.get_by_role("link", name="Download as CSV").click()
        lines = (await asyncio.to_thread((await (await download.value).path()).read_text)).splitlines()
        assert any(line.startswith("emails,") and ",1000,120,0.88," in line for line in lines)
        await page.get_by_label("Pool").fill("nobody")
        await page.get_by_label("Pool").press("Enter")
        await expect(page.locator(".state-line")).to_contain_text("nobody")
        assert [each for each in wrong if "404" not in each] == []


async def test_alerts_that_go_on_are_silenced_with_a_reason_and_an_end(
    browser: Browser, serve, seed: Seed, tmp_path: Path
) -> None:
    now_s = time.time()
    play(seed, now_s=now_s)
    for rule, pool, since_s, until_s in [
        ("pool_late", "emails", now_s - 300, None),
        ("crash_loop", "images", now_s - 90, None),
        ("failing", "reports", now_s - 9_000, now_s - 8_400),
    ]:
        seed.execute_with(
            "insert into alerts (rule, severity, pool, host, kind, since_s, until_s, summary, action) "
            "values (%s, 'page', %s, '', '', %s, %s, %s, 'Look at its workers.')",
            rule, pool, since_s, until_s, f"what is wrong with {pool}",
        )  # fmt: skip
    async with serve(token=TOKEN) as (url, _, _), opened(browser, url) as (page, wrong):
        await sign_in(page, await token_of(page, url, "operator"))
        first = page.locator(".incidents li").filter(has_text="pool late")
        await expect(first).to_contain_text("what is wrong with emails")
        await expect(first).to_contain_text("5 min")
        await page.screenshot(path=tmp_path / "now-1440.png")
        await first.get_by_role("link", name="emails").click()
        await expect(page).to_have_url(f"{url}pools/emails")
        await page.goto(f"{url}alerts")
        await expect(page.locator("main .summary")).to_contain_text("2 alerts go on, 2 to be paged for")
        await expect(page.get_by_role("row", name="failing reports")).to_contain_text("10 min")
        await page.get_by_role("row", name="pool late emails").get_by_role("button", name="Silence").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Reason").fill("we know")
        await dialog.get_by_label("Ends by itself").select_option("1 hour")
        await dialog.get_by_role("button", name="Silence", exact=True).click()
        await expect(page.locator("main .summary")).to_contain_text("1 to be paged for")
        await expect(page.get_by_role("row", name="we know")).to_contain_text("rule=pool_late")
        for width in (1440, 390):
            await page.set_viewport_size({"width": width, "height": 900})
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
            await page.screenshot(path=tmp_path / f"alerts-{width}.png", full_page=True)
        await page.get_by_role("button", name="End…").click()
        await dialog.get_by_role("button", name="End it").click()
        await expect(page.get_by_text("Nothing is silenced.")).to_be_visible()
        assert [each for each in wrong if "401" not in each] == []
