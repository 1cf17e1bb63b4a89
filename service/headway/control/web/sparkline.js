// Lines as small as a word: how long a pool's jobs waited in the last minutes, since the dashboard was opened. Waits are
// drawn in objectives of their own queue, for a pool is judged by the queue that has used up most of its objective.

import { mark, svg } from "./dom.js";
import { usedOf } from "./entries.js";

const KEPT_S = 600;
const STEP_S = 5;
const WIDTH = 72;
const HEIGHT = 20;
const ROOM = 2; // above and below the line

// Pool -> its waits, oldest first. Of the module, so that they outlive a visit to another page.
const waits = new Map();

/** Keep what an overview says of each pool. */
export function remember({ at_s, pools }) {
  for (const { pool, oldest_wait, pickup_wait } of pools) {
    const known = waits.get(pool) ?? [];
    if (known.length && at_s - known.at(-1).at_s < STEP_S) continue;
    known.push({ at_s, used: oldest_wait || pickup_wait ? Math.max(usedOf(oldest_wait), usedOf(pickup_wait)) : null });
    while (known[0].at_s < at_s - KEPT_S) known.shift();
    waits.set(pool, known);
  }
}

/** An empty line. */
export const sparkline = () =>
  svg("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, "aria-hidden": "true" }, svg("path", { class: "objective" }), svg("path", { class: "wait" }));

/** Draw a pool's waits against its objectives, ending now. */
export function draw(line, { pool }) {
  const known = waits.get(pool) ?? [];
  const until_s = known.at(-1)?.at_s ?? 0;
  const key = String(until_s);
  if (line.dataset.key === key) return;
  line.dataset.key = key;
  const top = Math.max(1.2, ...known.map((each) => each.used ?? 0));
  const y = (used) => (HEIGHT - ROOM - ((HEIGHT - 2 * ROOM) * used) / top).toFixed(1);
  const x = (at_s) => (WIDTH * (1 - (until_s - at_s) / KEPT_S)).toFixed(1);
  const [limit, wait] = line.children;
  mark(limit, "d", `M0 ${y(1)}H${WIDTH}`);
  let isOpen = false;
  const parts = known.map((each) => {
    const command = isOpen ? "L" : "M";
    isOpen = each.used !== null;
    return isOpen ? `${command}${x(each.at_s)} ${y(each.used)}` : "";
  });
  mark(wait, "d", parts.join(""));
  mark(line, "data-over", known.at(-1)?.used > 1);
}
