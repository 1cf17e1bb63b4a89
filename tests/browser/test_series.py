"""A pool's page: its charts over one axis, what was decided, the range in the address, and what cannot be shown."""

import json
import re
import time
from itertools import pairwise
from typing import Any

from playwright.async_api import Browser, Page, Route, expect

from browser.pages import CONTRAST, IN_A_BROWSER, opened
from browser.scene import play
from support.seed import Seed
from support.waiting import eventually_of

pytestmark = IN_A_BROWSER


def series(*, now_s: float, points: int = 120, is_known: bool = True) -> dict[str, Any]:
    """Ten minutes of a pool, as the API gives them."""
    waits = ["p50_s", "p95_s", "pickup_s", "oldest_age_s"]
    jobs = ["backlog_jobs", "enqueued", "started", "finished", "failed"]
    workers = [f"{state}_workers" for state in ("running", "starting", "draining", "target", "ceiling")]
    rising = [5.0 + 40.0 * point / points if is_known and point > 10 else None for point in range(points)]
    columns = dict.fromkeys([*waits, *jobs, *workers], rising)
    return {
        "pool": "reports",
        "queue": None,
        "from_s": now_s - points * 5,
        "until_s": now_s,
        "step_s": 5.0,
        "source": "raw",
        "objective": {"target_s": 30.0, "percentile": 99.0, "window_s": 120.0},
        "columns": {"at_s": [now_s - (points - point) * 5 for point in range(points)], **columns},
    }


async def given(page: Page, answer: dict[str, Any], *, status: int = 200) -> list[str]:
    """Answer for the series; which were asked for."""
    asked: list[str] = []

    async def fulfil(route: Route) -> None:
        asked.append(route.request.url)
        await route.fulfill(status=status, json=answer)

    await page.route("**/series?*", fulfil)
    return asked


async def test_a_pools_page_has_charts_decisions_a_table_and_its_range_in_the_address(
    browser: Browser, serve, seed: Seed
) -> None:
    play(seed, now_s=time.time())
    async with serve() as (url, _, _), opened(browser, url) as (page, wrong):
        asked = await given(page, series(now_s=time.time()))
        await page.get_by_role("link", name="Longer, with decisions").click()
        await expect(page).to_have_url(f"{url}pools/reports")
        await expect(page.get_by_role("heading", level=1)).to_be_focused()
        await expect(page).to_have_title(re.compile("reports · Headway$"))
        await expect(page.locator("nav [aria-current]")).to_have_text("Now")
        await expect(page.locator(".plot-panel canvas")).to_have_count(5)
        await expect(page.locator("[data-panel=wait] .legend")).to_contain_text("99 % started within45 s")
        await expect(page.locator("[data-panel=wait] .legend")).to_contain_text("objective30 s")
        await expect(page.locator("[data-panel=workers] .legend")).to_contain_text("ceiling")

        controls = page.get_by_role("link", name="Scale, pause or change this pool")
        await expect(controls).to_have_attribute("href", re.compile(r"profiles/reports$"))

        await page.locator(".decided").first.click()
        await expect(page.locator("#main details[open]")).to_contain_text("Reasons to have workers")
        await page.get_by_text("The data as a table").click()
        await expect(page.get_by_role("region", name="The data as a table").get_by_role("row")).to_have_count(121)
        await expect(page.get_by_role("region", name="The data as a table")).to_contain_text("unknown")

        await page.get_by_role("button", name="7 days").click()
        await expect(page).to_have_url(f"{url}pools/reports?range=7d")
        await expect(page.get_by_role("button", name="7 days")).to_have_attribute("aria-pressed", "true")
        await page.get_by_role("button", name="Zoom in").press("Enter")
        await expect(page).to_have_url(re.compile(r"\?from=\d+&until=\d+$"))
        spans = [re.search(r"from_s=([\d.]+)&until_s=([\d.]+)", each) for each in asked]
        assert [round(float(each[2]) - float(each[1])) for each in spans[-2:] if each] == [7 * 86_400, 3.5 * 86_400]
        await page.go_back()
        await expect(page).to_have_url(f"{url}pools/reports?range=7d")
        await expect(page.get_by_role("button", name="7 days")).to_have_attribute("aria-pressed", "true")
        await page.go_back()
        await expect(page).to_have_url(f"{url}pools/reports")
        await expect(page.get_by_role("button", name="1 hour")).to_have_attribute("aria-pressed", "true")
        assert await page.evaluate(f"({CONTRAST})().filter((each) => each.ratio < 4.5)") == []
        assert wrong == []


BAND = """() => {
    const canvas = document.querySelector("[data-panel=flow] canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let drawn = 0;
    for (let at = 3; at < data.length; at += 4) if (Math.abs(data[at] - 0x22) <= 2) drawn += 1;
    return drawn;
}"""


async def test_a_queues_page_has_its_job_classes_and_a_band_up_to_what_the_forecast_does_not_exceed(
    browser: Browser, serve, seed: Seed
) -> None:
    play(seed, now_s=time.time())
    answer = series(now_s=time.time())
    points = len(answer["columns"]["at_s"])
    answer["columns"].update(forecast_jobs_per_s=[2.0] * points, forecast_high_jobs_per_s=[6.0] * points)
    window = {
        "arrival_rate_per_s": 0.25,
        "service_time_s": 30.0,
        "service_p95_s": 90.0,
        "pickup_p50_s": 2.0,
        "pickup_p95_s": None,
        "failure_share": 0.125,
    }
    async with serve() as (url, _, _), opened(browser, url) as (page, wrong):
        await given(page, answer)
        classes = {"job_classes": [{"job_class": "resize", "window": window}]}
        await page.route("**/queues/*/metrics", lambda route: route.fulfill(json=classes))
        await page.goto(f"{url}queues/redis/reports")
        await expect(page.locator("[data-panel=flow] .legend")).to_contain_text("forecast2/sforecast, 95 % below6/s")
        assert await page.evaluate(BAND) > 1000
        row = page.get_by_role("row", name="resize")
        await expect(row).to_have_text("resize15/min30 s90 s2 sunknown12.5 %")
        assert wrong == []


DRAWN = """(panel) => {
    const canvas = document.querySelector(`[data-panel=${panel}] canvas`);
    const { width, height } = canvas;
    const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    const [red, green, blue] = [0xb3, 0x37, 0x2f];
    let drawn = 0;
    for (let at = 0; at < data.length; at += 4) {
        if (data[at] === red && data[at + 1] === green && data[at + 2] === blue && data[at + 3] === 255) drawn += 1;
    }
    return drawn;
}"""
NUMBERS = """() => {
    const written = [];
    const { fillText } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillText = function (words, ...rest) {
        written.push(words);
        return fillText.call(this, words, ...rest);
    };
    globalThis.written = written;
}"""


async def test_a_value_between_unknown_ones_is_drawn_and_counts_have_whole_steps(
    browser: Browser, serve, seed: Seed
) -> None:
    play(seed, now_s=time.time())
    answer = series(now_s=time.time())
    points = len(answer["columns"]["at_s"])
    answer["columns"].update(failed=[1.0 if at == 60 else None for at in range(points)])
    async with serve() as (url, _, _), opened(browser, url, color_scheme="light") as (page, wrong):
        await given(page, answer)
        await page.evaluate(f"({NUMBERS})()")
        await page.get_by_role("link", name="Longer, with decisions").click()
        await expect(page.locator("[data-panel=failures] .legend")).to_contain_text("failed1")
        await eventually_of(lambda: page.evaluate(DRAWN, "failures"), within_s=15.0)
        assert ("1", "1") not in set(pairwise(await page.evaluate("written")))  # it stood there three times
        swatches = page.locator("[data-panel=wait] .swatch")
        style = "(each) => getComputedStyle(each).backgroundImage"
        dashed = [await each.evaluate(style) != "none" for each in await swatches.all()]
        assert dashed == [False, True, False, True]  # 99 %, 50 %, 95 %, objective
        assert wrong == []


async def test_a_double_click_goes_back_to_the_range_from_before_zooming(browser: Browser, serve, seed: Seed) -> None:
    play(seed, now_s=time.time())
    async with serve() as (url, _, _), opened(browser, url) as (page, _):
        await given(page, series(now_s=time.time()))
        await page.goto(f"{url}pools/reports?range=7d")
        # What is late stands above the charts, and pushes them down when it comes.
        await expect(page.locator("#main .reasons")).to_be_visible()
        over = page.locator("[data-panel=wait] .u-over")
        for right in (600, 400):
            await expect(page.locator("[data-panel=wait] .legend")).to_contain_text("objective30 s")
            box = await over.bounding_box()
            assert box is not None
            before = page.url
            await page.mouse.move(box["x"] + 200, box["y"] + 40)
            await page.mouse.down()
            await page.mouse.move(box["x"] + right, box["y"] + 40, steps=3)
            await page.mouse.up()
            await expect(page).not_to_have_url(before)
        assert re.search(r"\?from=\d+&until=\d+$", page.url)
        await over.dblclick(position={"x": 300, "y": 40})
        await expect(page).to_have_url(f"{url}pools/reports?range=7d")
        await expect(page.get_by_role("button", name="7 days")).to_have_attribute("aria-pressed", "true")


async def test_a_link_to_a_queue_opens_it_and_what_is_not_known_is_named(browser: Browser, serve, seed: Seed) -> None:
    play(seed, now_s=time.time())
    async with serve() as (url, _, _), opened(browser, url) as (page, _):
        await given(page, series(now_s=time.time(), is_known=False))
        await page.goto(f"{url}queues/redis/legacy-imports")
        await expect(page.get_by_role("heading", level=1)).to_have_text("redis/legacy-imports")
        await expect(page.get_by_text("No profile names this queue")).to_be_visible()
        await expect(page.get_by_text("Nothing is known of this range.")).to_be_visible()
        await page.unroute("**/series?*")
        problem = {"type": "about:blank", "title": "Not Found", "status": 404, "detail": "queue 'x': not seen"}
        await given(page, json.loads(json.dumps(problem)), status=404)
        await page.goto(f"{url}queues/x")
        await expect(page.get_by_text("This cannot be shown.")).to_be_visible()
        await expect(page.locator("#main .empty").first).to_contain_text("queue 'x': not seen")
        await page.get_by_role("link", name="All queues").click()
        await expect(page.locator("#headline")).to_contain_text("redis/reports is late")
