// Which stretch of time is shown: the last of a length, or one between two moments; the address has it.

import { parameter, setParameters } from "./address.js";

const MINUTE_S = 60;
const HOUR_S = 3600;
const DAY_S = 86400;

/** Name in the address -> [words, seconds]. */
export const RANGES = new Map([
  ["15m", ["15 min", 15 * MINUTE_S]],
  ["1h", ["1 hour", HOUR_S]],
  ["6h", ["6 hours", 6 * HOUR_S]],
  ["1d", ["1 day", DAY_S]],
  ["7d", ["7 days", 7 * DAY_S]],
  ["30d", ["30 days", 30 * DAY_S]],
  ["400d", ["400 days", 400 * DAY_S]],
]);
const DEFAULT = "1h";
const PARAMETERS = ["range", "from", "until"];
const SHORTEST_S = MINUTE_S;
const LONGEST_S = 400 * DAY_S;

/** The range that the address asks for: `name` where it is one that goes on with the clock, else null. */
export function rangeOf(now_s) {
  const from_s = Number(parameter("from"));
  const until_s = Number(parameter("until"));
  if (from_s > 0 && until_s - from_s >= SHORTEST_S && until_s - from_s <= LONGEST_S + DAY_S) return { name: null, from_s, until_s };
  const name = RANGES.has(parameter("range")) ? parameter("range") : DEFAULT;
  return { name, from_s: now_s - RANGES.get(name)[1], until_s: now_s };
}

/** Show the last of a length. */
export function chooseRange(name) {
  setParameters({ range: name === DEFAULT ? null : name, from: null, until: null }, { isStep: true });
}

/** Show what is between two moments, in whole seconds, and not what is still to come. */
export function chooseSpan(from_s, until_s, now_s) {
  const length_s = Math.min(LONGEST_S, Math.max(SHORTEST_S, until_s - from_s));
  const end_s = Math.min(now_s, (from_s + until_s) / 2 + length_s / 2);
  const before = history.state?.before ?? Object.fromEntries(PARAMETERS.map((each) => [each, parameter(each)]));
  setParameters({ range: null, from: Math.floor(end_s - length_s), until: Math.floor(end_s) }, { isStep: true, state: { before } });
}

/** Show a day of this browser's clock, `YYYY-MM-DD`, as far as it is over. */
export function chooseDay(text, now_s) {
  const [year, month, day] = text.split("-").map(Number);
  const [from_s, until_s] = [day, day + 1].map((each) => new Date(year, month - 1, each).getTime() / 1000);
  if (from_s < now_s) chooseSpan(from_s, Math.min(until_s, now_s), now_s);
}

/** The day whose beginning a range has, where it is no longer than one; else empty. */
export function dayOf({ name, from_s, until_s }) {
  const from = new Date(from_s * 1000);
  if (name !== null || from.getHours() || from.getMinutes() || until_s - from_s > 25 * HOUR_S) return "";
  return [from.getFullYear(), from.getMonth() + 1, from.getDate()].map((each) => String(each).padStart(2, "0")).join("-");
}

/** Show the range that was shown before somebody zoomed or moved; the default where nobody did. */
export function undoSpans() {
  setParameters(history.state?.before ?? { range: null, from: null, until: null }, { isStep: true });
}
