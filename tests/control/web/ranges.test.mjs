// Which stretch of time the address asks for, and what choosing one makes of the address.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { link, pathOf, ROOT } from "../../../service/headway/control/web/address.js";
import { chooseDay, chooseRange, chooseSpan, dayOf, rangeOf, undoSpans } from "../../../service/headway/control/web/ranges.js";

const NOW_S = 1_772_409_600;
const DAY_S = 86_400;

/** A browser's address bar and its history, as far as the modules use them. */
function at(search) {
  const go = (url) => (globalThis.location = { href: String(url), search: new URL(url).search });
  const states = [null];
  globalThis.history = {
    get state() {
      return states.at(-1);
    },
    pushState: (state, _, url) => (states.push(state), go(url)),
    replaceState: (state, _, url) => ((states[states.length - 1] = state), go(url)),
  };
  go(`http://127.0.0.1/pools/mail${search}`);
}

beforeEach(() => at(""));

test("without a word in the address the last hour is shown", () => {
  assert.deepEqual(rangeOf(NOW_S), { name: "1h", from_s: NOW_S - 3600, until_s: NOW_S });
});

test("a range that does not exist, a span too short, too long or backwards is the last hour", () => {
  for (const search of ["?range=9y", "?from=1000&until=1030", "?from=1&until=40000000", "?from=2000&until=1000", "?from=x&until=y"]) {
    at(search);
    assert.equal(rangeOf(NOW_S).name, "1h", search);
  }
});

test("a span in the address is shown as it is and does not go on with the clock", () => {
  at("?from=1000&until=1060");
  assert.deepEqual(rangeOf(NOW_S), { name: null, from_s: 1000, until_s: 1060 });
});

test("a chosen range is in the address, the default is not, and either replaces a span", () => {
  at("?from=1000&until=2000&queues=mail");
  chooseRange("7d");
  assert.equal(location.search, "?queues=mail&range=7d");
  assert.equal(rangeOf(NOW_S).from_s, NOW_S - 7 * DAY_S);
  chooseRange("1h");
  assert.equal(location.search, "?queues=mail");
});

test("a chosen span is no shorter than a minute, no longer than is kept, and ends now at the latest", () => {
  chooseSpan(NOW_S - 10, NOW_S, NOW_S);
  let { from_s, until_s } = rangeOf(NOW_S);
  assert.equal(until_s - from_s, 60);
  assert.ok(until_s <= NOW_S);
  chooseSpan(NOW_S - 500 * DAY_S, NOW_S, NOW_S);
  ({ from_s, until_s } = rangeOf(NOW_S));
  assert.equal(until_s - from_s, 400 * DAY_S);
});

test("undoing goes back to the range from before the first of several spans", () => {
  chooseRange("7d");
  chooseSpan(NOW_S - 2 * DAY_S, NOW_S - DAY_S, NOW_S);
  chooseSpan(NOW_S - 1.5 * DAY_S, NOW_S - 1.2 * DAY_S, NOW_S);
  undoSpans();
  assert.equal(location.search, "?range=7d");
});

test("a day of the calendar is shown from midnight to midnight, and names itself", () => {
  chooseDay("2026-02-24", NOW_S);
  const range = rangeOf(NOW_S);
  assert.equal(range.until_s - range.from_s, DAY_S);
  assert.equal(dayOf(range), "2026-02-24");
});

test("a day that is still to come is not chosen, and of today only what is over", () => {
  chooseDay("2027-01-01", NOW_S);
  assert.equal(location.search, "");
  const noon_s = new Date(2026, 2, 3, 12).getTime() / 1000;
  chooseDay("2026-03-03", noon_s);
  assert.equal(rangeOf(noon_s).until_s, noon_s);
});

test("what is longer than a day or begins within one is no day", () => {
  const midnight_s = new Date(2026, 1, 24).getTime() / 1000;
  assert.equal(dayOf({ name: null, from_s: midnight_s, until_s: midnight_s + 2 * DAY_S }), "");
  assert.equal(dayOf({ name: null, from_s: midnight_s + 3600, until_s: midnight_s + 7200 }), "");
  assert.equal(dayOf({ name: "1d", from_s: midnight_s, until_s: midnight_s + DAY_S }), "");
});

const below = (path) => ROOT.pathname + path;

test("the slashes of a name stay in its link, but where a browser would fold them", () => {
  assert.equal(link("/queues", "redis/mail"), below("queues/redis/mail"));
  assert.equal(link("/queues", "redis/../mail"), below("queues/redis%2F..%2Fmail"));
  assert.equal(link("/queues", "a//b"), below("queues/a%2F%2Fb"));
  assert.equal(link("/pools", "m?#&", { range: "7d" }), below("pools/m%3F%23%26?range=7d"));
});

test("the path of a link is known again, and that of another place is not", () => {
  assert.equal(pathOf(new URL(link("/slo"), ROOT)), "/slo");
  assert.equal(pathOf(new URL("https://example.org/slo")), null);
});
