// Lines as small as a word: how long a pool's jobs waited in the last minutes, since the dashboard was opened.

import { mark, svg } from "./dom.js";

const KEPT_S = 600;
const STEP_S = 5;
const WIDTH = 72;
const HEIGHT = 20;
const ROOM = 2; // above and below the line

// Pool -> its waits, oldest first. Of the module, so that they outlive a visit to another page.
const waits = new Map();

/** Keep what an overview says of each pool. */
export function remember({ at_s, pools }) {
  for (const { pool, metrics } of pools) {
    const known = waits.get(pool) ?? [];
    if (known.length && at_s - known.at(-1).at_s < STEP_S) continue;
    const wait_s = Math.max(metrics.oldest_age_s ?? -1, metrics.pickup_objective_s ?? -1);
    known.push({ at_s, wait_s: wait_s < 0 ? null : wait_s });
    while (known[0].at_s < at_s - KEPT_S) known.shift();
    waits.set(pool, known);
  }
}

/** An empty line. */
export const sparkline = () =>
  svg("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, "aria-hidden": "true" }, svg("path", { class: "objective" }), svg("path", { class: "wait" }));

/** Draw a pool's waits against its objective, ending now. */
export function draw(line, { pool, objective }) {
  const known = waits.get(pool) ?? [];
  const until_s = known.at(-1)?.at_s ?? 0;
  const key = `${until_s} ${objective.target_s}`;
  if (line.dataset.key === key) return;
  line.dataset.key = key;
  const top_s = Math.max(1.2 * objective.target_s, ...known.map((each) => each.wait_s ?? 0));
  const y = (wait_s) => (HEIGHT - ROOM - ((HEIGHT - 2 * ROOM) * wait_s) / top_s).toFixed(1);
  const x = (at_s) => (WIDTH * (1 - (until_s - at_s) / KEPT_S)).toFixed(1);
  const [limit, wait] = line.children;
  mark(limit, "d", `M0 ${y(objective.target_s)}H${WIDTH}`);
  let isOpen = false;
  const parts = known.map((each) => {
    const command = isOpen ? "L" : "M";
    isOpen = each.wait_s !== null;
    return isOpen ? `${command}${x(each.at_s)} ${y(each.wait_s)}` : "";
  });
  mark(wait, "d", parts.join(""));
  mark(line, "data-over", known.at(-1)?.wait_s > objective.target_s);
}
