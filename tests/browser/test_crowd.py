"""The dashboard with many queues and hosts: what needs attention comes first, and the rest is found by name."""

import asyncio
import re
import time

import pytest
from playwright.async_api import Browser, expect

from browser.crowd import LATE, SILENT, UNKNOWN, decide, gather
from browser.pages import CONTRAST, IN_A_BROWSER, opened
from headway.scaling.profile import Profile
from support.seed import Seed

NAMES = "[...document.querySelectorAll('tbody [data-part=name]')].map((each) => each.textContent)"
NEIGHBOUR = """[...document.querySelectorAll('tbody tr')].find((each) => each.textContent.includes('redis/mail-8'))
    .getBoundingClientRect().top - document.querySelector('.box').getBoundingClientRect().top"""
MOVES_EACH_S = 0.1  # of a pointer that does not rest

pytestmark = IN_A_BROWSER


async def test_late_queues_and_silent_hosts_come_first_and_are_counted(browser: Browser, serve, seed: Seed) -> None:
    gather(seed, now_s=time.time(), queues=200, hosts=50)
    async with serve() as (url, _, _), opened(browser, url) as (page, wrong):
        queues, hosts = page.locator("#queues-section"), page.locator("#hosts-section")
        await expect(queues.get_by_text("3 of 200 late · 2 without fresh data")).to_be_visible()
        await expect(hosts.get_by_text("2 of 50 unreachable")).to_be_visible()
        names = await page.evaluate(NAMES)
        assert len(names) == 200
        assert names[:7] == [*LATE, *UNKNOWN, "redis/exports-0", "redis/exports-1"]
        assert names.index("redis/mail-9") < names.index("redis/mail-10")  # as people count
        shown = await hosts.locator("#hosts [data-part=name]").all_text_contents()
        assert shown[:4] == [*SILENT, "eu-host-1", "eu-host-3"]
        assert len(shown) == 50
        assert wrong == []


async def test_of_very_many_queues_the_first_are_drawn_and_the_rest_when_asked(
    browser: Browser, serve, seed: Seed
) -> None:
    gather(seed, now_s=time.time(), queues=260)
    async with serve() as (url, _, _), opened(browser, url) as (page, wrong):
        rows = page.locator("tbody tr")
        await expect(rows).to_have_count(250)
        await page.get_by_role("searchbox", name=re.compile("queues")).fill("search-64")  # one that is not drawn
        await expect(rows).to_have_count(1)
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Show 10 more").click()
        await expect(rows).to_have_count(260)
        await expect(page.get_by_role("button", name=re.compile("^Show"))).to_be_hidden()
        assert wrong == []


async def test_a_queue_is_found_by_a_part_of_its_name_and_the_link_finds_it_again(
    browser: Browser, serve, seed: Seed
) -> None:
    gather(seed, now_s=time.time())
    async with serve() as (url, _, _), opened(browser, url) as (page, wrong):
        rows = page.locator("tbody tr")
        await expect(rows).to_have_count(40)
        await page.keyboard.press("/")
        await page.keyboard.type("Orders-")
        await expect(rows).to_have_count(10)
        await expect(page.get_by_text("10 found")).to_be_visible()
        await expect(page.locator("#chart-title")).to_contain_text("redis/orders-3")  # the worst of them
        await expect(page).to_have_url(f"{url}?queues=Orders-")
        async with opened(browser, f"{url}?queues=Orders-&hosts=eu-") as (other, _):
            await expect(other.locator("tbody tr")).to_have_count(10)
            await expect(other.locator("#hosts > li")).to_have_count(5)
            await expect(other.locator("#chart-title")).to_contain_text("redis/orders-3")
        await page.keyboard.type("/")
        await expect(page.get_by_text("No queue or pool has “orders-/” in its name.")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(rows).to_have_count(40)
        await expect(page).to_have_url(url)
        assert wrong == []


async def test_a_click_on_a_heading_sorts_by_its_column(browser: Browser, serve, seed: Seed) -> None:
    gather(seed, now_s=time.time())
    async with serve() as (url, _, _), opened(browser, url) as (page, _):
        state, waiting, name = (page.get_by_role("columnheader", name=name) for name in ("State", "Waiting", "Queue"))
        await expect(state).to_have_attribute("aria-sort", "descending")
        await waiting.get_by_role("button").click()
        await expect(waiting).to_have_attribute("aria-sort", "descending")
        await expect(page.locator("[aria-sort]")).to_have_count(1)
        assert (await page.evaluate(NAMES))[:3] == ["redis/search-9", "redis/mail-7", "redis/orders-3"]
        await name.get_by_role("button").press("Enter")
        await expect(name).to_have_attribute("aria-sort", "ascending")
        assert (await page.evaluate(NAMES))[:3] == ["redis/exports-0", "redis/exports-1", "redis/exports-2"]


async def test_the_arrow_keys_go_from_row_to_row_and_tab_stops_at_one(browser: Browser, serve, seed: Seed) -> None:
    gather(seed, now_s=time.time())
    async with serve() as (url, _, _), opened(browser, url) as (page, _):
        stop = page.locator("tbody button[tabindex='0']")
        await expect(stop).to_have_text(LATE[0])
        await stop.focus()
        for key, name in [("ArrowDown", LATE[1]), ("End", "redis/search-8"), ("ArrowUp", "redis/search-7")]:
            await page.keyboard.press(key)
            await expect(page.get_by_role("button", name=name, exact=True)).to_be_focused()
            await expect(stop).to_have_text(name)


async def test_rows_wait_for_the_pointer_before_they_change_places(browser: Browser, serve, seed: Seed) -> None:
    gather(seed, now_s=time.time())
    async with serve() as (url, feed, _), opened(browser, url) as (page, _):
        aimed = page.get_by_role("button", name="redis/exports-0")
        await aimed.hover()
        box = await aimed.bounding_box()
        assert box is not None
        seed.sample("redis/search-5", at_s=time.time(), waiting_jobs=9, oldest_age_s=3000.0)
        feed.publish()
        before = await page.evaluate(NAMES)
        async with asyncio.timeout(60):
            is_late = False
            while not is_late:
                for step in (3, 4):
                    await page.mouse.move(box["x"] + step, box["y"] + 5)
                await asyncio.sleep(MOVES_EACH_S)
                is_late, names = await page.evaluate(
                    f"[document.querySelectorAll('[data-state=breaching]').length > 3, {NAMES}]"
                )
                assert names == before
        await page.mouse.move(2, 2)
        await expect(page.locator("tbody tr").nth(2)).to_contain_text("redis/search-5")


async def test_a_refresh_takes_neither_focus_nor_place_nor_what_is_unfolded(
    browser: Browser, serve, seed: Seed
) -> None:
    gather(seed, now_s=time.time())
    decide(seed, "mail-7", now_s=time.time())  # the pool that is shown first, and whose decisions are
    async with serve() as (url, feed, _), opened(browser, url) as (page, _):
        await page.locator("#decisions summary").first.click()
        unfolded = page.locator("#decisions details[open]")
        text = await unfolded.locator(".more").inner_text()
        await page.mouse.move(1, 1)  # rows that a pointer is over keep their places
        row = page.get_by_role("button", name="redis/mail-9")
        await row.focus()
        assert await page.evaluate("document.querySelector('.box').scrollTop") > 0
        place = await page.evaluate(NEIGHBOUR)
        seed.sample("redis/mail-9", at_s=time.time(), waiting_jobs=9, oldest_age_s=3000.0)
        for _ in range(25):  # more than are shown
            decide(seed, "mail-7", now_s=time.time())
        feed.publish()
        await expect(page.locator("tbody tr").nth(1)).to_contain_text("redis/mail-9")
        await expect(row).to_be_focused()
        await page.wait_for_function(f"(place) => Math.abs({NEIGHBOUR} - place) < 1", arg=place)  # where it was seen
        await expect(page.locator("#decisions > li")).to_have_count(21)
        assert await unfolded.locator(".more").inner_text() == text


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (900, "light")])
async def test_many_are_readable_at_every_width(browser: Browser, serve, seed: Seed, width: int, scheme: str) -> None:
    gather(seed, now_s=time.time())
    seed.profile(Profile(pool="p" * 60, queues=("redis/" + "q" * 120, "redis/" + "r" * 120), template="rq"))
    options = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    async with serve() as (url, _, _), opened(browser, url, **options) as (page, wrong):
        await expect(page.locator("tbody tr")).to_have_count(43)  # one pool of two queues
        await expect(page.locator("#chart canvas").first).to_be_visible()
        shown = await page.evaluate(CONTRAST)
        await page.get_by_role("searchbox", name=re.compile("hosts")).fill("nowhere")
        await expect(page.get_by_text("No host has “nowhere” in its name.")).to_be_visible()
        shown += await page.evaluate(CONTRAST)
        assert [each for each in shown if each["ratio"] < 4.5] == []
        for part in ("document.documentElement", "document.querySelector('.box')"):
            assert await page.evaluate(f"{part}.scrollWidth <= {part}.clientWidth")
        assert wrong == []
