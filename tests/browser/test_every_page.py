"""Every page: no violation that axe finds, in both colours, and everything on it is reached by keys."""

import time

from playwright.async_api import Browser, Route, expect

from browser.every_page import PAGES, past, show
from browser.pages import IN_A_BROWSER, opened
from browser.scene import play
from support.npm import node_modules
from support.seed import Seed
from support.tree import ROOT

pytestmark = IN_A_BROWSER

AXE = ROOT / "tests/browser/axe"
VIOLATIONS = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations.flatMap(
    ({id, help, nodes}) => nodes.map((node) => `${id}: ${help}: ${node.html.slice(0, 160)}`))"""
# What a key should reach: all that acts, is shown, and is not one of a group of which only one is a stop.
REACHABLE = """() => {
    const acts = document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]");
    const isStop = (each) => each.tabIndex >= 0 && !each.disabled && each.checkVisibility({visibilityProperty: true});
    globalThis.stops = [...acts].filter(isStop);
    globalThis.reached = new Set();
    document.activeElement?.blur();
    addEventListener("focusin", ({target}) => globalThis.reached.add(target));
    return globalThis.stops.length;
}"""
# Which has the focus and does not show it; and what was not reached so far.
UNSEEN_AND_LEFT = """() => {
    const at = document.activeElement;
    const style = at && at !== document.body ? getComputedStyle(at) : null;
    const isSeen = !style || style.boxShadow !== "none"
        || (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0);
    const left = globalThis.stops.filter((each) => each.isConnected && !globalThis.reached.has(each));
    return [isSeen ? null : at.outerHTML.slice(0, 160), left.map((each) => each.outerHTML.slice(0, 160))];
}"""


async def test_axe_finds_nothing_on_any_page_in_either_colours(browser: Browser, serve, seed: Seed) -> None:
    source = (node_modules(AXE) / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    play(seed, now_s=time.time())
    past(seed, now_s=time.time())
    async with serve() as (url, _, _), opened(browser, url, color_scheme="dark") as (page, wrong):
        found = {}
        for name in PAGES:
            await page.emulate_media(color_scheme="dark")
            await show(page, url, name)
            await page.evaluate(source)
            found[name, "dark"] = await page.evaluate(VIOLATIONS)
            await page.emulate_media(color_scheme="light")
            found[name, "light"] = await page.evaluate(VIOLATIONS)
        assert {page: each for page, each in found.items() if each} == {}
        assert wrong == []


async def test_a_chart_says_that_it_has_no_values_until_what_draws_it_has_come(
    browser: Browser, serve, seed: Seed
) -> None:
    play(seed, now_s=time.time())
    past(seed, now_s=time.time())
    async with serve() as (url, _, _), opened(browser, url) as (page, _):
        await page.route("**/uPlot.iife.min.js", lambda route: route.abort())
        await show(page, url, "now")
        chart = page.get_by_role("slider", name="Moment shown")
        await expect(chart).to_have_attribute("aria-valuenow", "0")
        await expect(chart).to_have_attribute("aria-valuetext", "no values yet")


async def test_tab_reaches_everything_on_every_page_and_shows_where_it_is(browser: Browser, serve, seed: Seed) -> None:
    play(seed, now_s=time.time())
    past(seed, now_s=time.time())
    async with serve() as (url, _, _), opened(browser, url) as (page, _):
        for name in PAGES:
            await show(page, url, name)
            stops = await page.evaluate(REACHABLE)
            assert stops > 5, name
            left = [""]
            for _ in range(2 * stops + 20):  # a field of a date has six stops within
                await page.keyboard.press("Tab")
                unseen, left = await page.evaluate(UNSEEN_AND_LEFT)
                assert unseen is None, name
                if not left:
                    break
            assert left == [], name


async def test_what_is_not_known_yet_is_said_on_every_page_and_nothing_empty_is_shown(
    browser: Browser, serve, seed: Seed
) -> None:
    """Nothing answers but with an error: each page says so, and offers no control of what it does not know."""
    why = "Postgres does not answer"
    error = {"status": 503, "json": {"title": "Unavailable", "status": 503, "detail": why}}

    async def fail(route: Route) -> None:
        await route.fulfill(**error)

    async with serve() as (url, _, _), opened(browser, url) as (page, _):
        await page.route("**/v1/**", fail)
        for name, (path, _text) in PAGES.items():
            await page.goto(url + path)
            await expect(page.locator("#main"), name).to_contain_text(why)
            headings = await page.locator("#main h2:visible").all_text_contents()
            assert headings == (["Audit log"] if name == "system" else []), (
                name
            )  # which says itself that it is not known
            for control in ("Scale", "Drain", "Silence…", "Download as CSV"):
                await expect(page.get_by_text(control, exact=True), name).to_be_hidden()


async def test_escape_leaves_a_dialog_and_gives_the_focus_back(browser: Browser, serve, seed: Seed) -> None:
    play(seed, now_s=time.time())
    past(seed, now_s=time.time())
    async with serve() as (url, _, _), opened(browser, url) as (page, _):
        for name, button in [("profile", "Scale"), ("host", "Drain"), ("alerts", "Silence…")]:
            await show(page, url, name)
            opener = page.get_by_role("button", name=button, exact=True).first
            await opener.press("Enter")
            await expect(page.get_by_role("dialog")).to_be_visible()
            await page.keyboard.press("Escape")
            await expect(page.get_by_role("dialog")).to_be_hidden()
            await expect(opener).to_be_focused()
