"""At the width of a small laptop's screen, tables show each cell whole, and break no word."""

import json
import time

import pytest
from playwright.async_api import Browser

from browser.every_page import PAGES, past, show
from browser.pages import IN_A_BROWSER, opened
from browser.scene import play
from support.seed import Seed

pytestmark = IN_A_BROWSER

# Cells of which a part is not shown, and words of cells that stand in two lines.
CUT_AND_BROKEN = r"""() => {
    const cells = [...document.querySelectorAll("#main :is(td, th, dd, dt)")].filter((each) => each.checkVisibility());
    const hides = (part) => getComputedStyle(part).overflowX !== "visible" && part.scrollWidth > part.clientWidth + 1;
    const around = (cell) => [cell, ...cell.querySelectorAll("*"), cell.closest(".card, .box")];
    const cut = cells.filter((cell) => around(cell).some((part) => part && hides(part)));
    const broken = [];
    for (const cell of cells) {
        const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
        for (let text; (text = texts.nextNode());) {
            for (const { index, 0: word } of text.data.matchAll(/[\p{L}\p{N}_]+/gu)) {
                const range = document.createRange();
                range.setStart(text, index);
                range.setEnd(text, index + word.length);
                const lines = new Set([...range.getClientRects()].map((each) => Math.round(each.top)));
                if (lines.size > 1) broken.push(`${word}: ${cell.textContent.slice(0, 80)}`);
            }
        }
    }
    return [cut.map((each) => each.outerHTML.slice(0, 160)), broken];
}"""
INCIDENTS = (
    (
        ("pool_unknown", "webhooks", ""),
        "its queues were last read 2.2 min ago: see whether `headway collect` runs and reaches broker 'redis'",
    ),
    (
        ("error_budget_spent", "emails", "2026-12-01"),
        "132 of 4000 jobs have started late since 00:00 UTC, and its objective allows 40 late jobs a day",
    ),
    (
        ("jobs_perhaps_lost", "thumbnails-and-transcodes", ""),
        "58 waiting jobs left its queues without having been started: the broker was flushed or lost its data",
    ),
)


def long_texts(seed: Seed, *, now_s: float) -> None:
    """Incidents and silences with sentences and labels as long as real ones."""
    for (rule, pool, kind), summary in INCIDENTS:
        for until_s in (None, now_s - 60.0):
            seed.execute_with(
                "insert into alerts (rule, severity, pool, host, kind, since_s, until_s, summary, action) "
                "values (%s, 'page', %s, '', %s, %s, %s, %s, 'See `headway get health`, and the log of the agent.')",
                *(rule, pool, kind, now_s - 400.0, until_s, summary),
            )
        seed.execute_with(
            "insert into silences (name, matchers, until_s, reason, created_by) values (%s, %s, %s, %s, 'operator')",
            *(f"{rule}-{pool}", json.dumps({"rule": rule, "pool": pool}), now_s + 3600.0, f"{pool} moves elsewhere"),
        )


@pytest.mark.parametrize("width_px", [1280, 1440])
async def test_no_cell_is_cut_and_no_word_is_broken(browser: Browser, serve, seed: Seed, width_px: int) -> None:
    play(seed, now_s=time.time())
    past(seed, now_s=time.time())
    long_texts(seed, now_s=time.time())
    found = {}
    size = {"width": width_px, "height": 900}
    async with serve() as (url, _, _), opened(browser, url, viewport=size) as (page, wrong):
        for name in PAGES:
            await show(page, url, name)
            cut, broken = await page.evaluate(CUT_AND_BROKEN)
            found |= {(name, "cut"): cut} if cut else {}
            found |= {(name, "broken"): broken} if broken else {}
    assert found == {}
    assert wrong == []
