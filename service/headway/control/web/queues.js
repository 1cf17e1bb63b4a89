// The table of queues: a row for each pool, under it its queues where it has several, and queues that nobody manages.

import { el, keep, mark, part, say } from "./dom.js";
import { compared, entriesOf, namesOf, oldestOf, tally, usedOf } from "./entries.js";
import { Finder } from "./find.js";
import { groupUses } from "./headline.js";
import { draw, sparkline } from "./sparkline.js";
import { meaningOf, wordOf } from "./states.js";
import { ago, count, counted, duration, inFlight, longestWait, percentile, slo, rate, waiting } from "./format.js";

const ROWS_SHOWN = 250; // of a thousand, drawing all would hold the page up at each update; what needs attention is first

/** The table inside `section`; `select(pool)` shows another pool's chart, `changed()` shows the table anew. */
export class QueueTable {
  #body;
  #box;
  #none;
  #heads;
  #finder;
  #select;
  #column = "state";
  #more = el("button", { type: "button", class: "give more-rows", hidden: true });
  #isWhole = false;

  constructor(section, { select, changed }) {
    this.#body = section.querySelector("tbody");
    this.#box = section.querySelector(".box");
    this.#none = part(section, "none");
    this.#heads = [...section.querySelectorAll("thead button")];
    this.#select = select;
    const toTop = () => {
      this.#box.scrollTop = 0;
      changed();
    };
    this.#finder = new Finder({ place: part(section, "find"), rows: this.#body, parameter: "queues", changed: toTop });
    for (const head of this.#heads) {
      head.addEventListener("click", () => {
        this.#column = head.dataset.column;
        this.#finder.release();
        toTop();
      });
    }
    this.#body.addEventListener("keydown", (event) => this.#key(event));
    this.#box.after(this.#more);
    this.#more.addEventListener("click", () => {
      this.#isWhole = true;
      changed();
    });
  }

  /** Go to the filter, if it is offered. */
  find() {
    return this.#finder.focus();
  }

  /** The pools that the filter leaves. */
  pools(overview) {
    return this.#found(entriesOf(overview)).flatMap((entry) => entry.pool ?? []);
  }

  /** Show the overview; `selected` is the pool whose chart is shown. */
  show(overview, { selected, now_s }) {
    const all = entriesOf(overview);
    this.#finder.offer(all.length, tally(all));
    const found = this.#found(all);
    const ordered = this.#finder.ordered(found, (entry) => entry.key, compared(this.#column, now_s));
    const entries = this.#isWhole ? ordered : ordered.slice(0, ROWS_SHOWN);
    this.#more.hidden = entries.length === ordered.length;
    say(this.#more, `Show ${count(ordered.length - entries.length)} more`);
    const killed = killedOf(overview.hosts);
    keep(this.#body, entries.flatMap(rowsOf), (row) => row.key, (row) => makeRow(row, this.#select), (element, row) => {
      showRow(element, row, selected, now_s);
      if (row.kind === "pool") showKilled(part(element, "killed"), killed.get(row.pool.pool) ?? 0);
    });
    for (const head of this.#heads) {
      const order = head.dataset.column === "name" ? "ascending" : "descending";
      mark(head.parentElement, "aria-sort", head.dataset.column === this.#column && order);
    }
    this.#showNone(all.length > 0 && !found.length);
    this.#leaveOneStop();
  }

  #found(entries) {
    return this.#finder.found(entries, namesOf);
  }

  #showNone(isNone) {
    this.#none.hidden = !isNone;
    if (isNone) say(this.#none, `No queue or pool has “${this.#finder.wanted}” in its name.`);
  }

  #picks() {
    return [...this.#body.querySelectorAll(".pick")];
  }

  /** Tab stops once in the rows, at the one that was left or is shown; from there the arrow keys lead on. */
  #leaveOneStop() {
    const picks = this.#picks();
    const stop = picks.find((pick) => pick === document.activeElement) ?? picks.find((pick) => pick.ariaPressed === "true") ?? picks[0];
    for (const pick of picks) mark(pick, "tabindex", pick === stop ? 0 : -1);
  }

  #key(event) {
    const picks = this.#picks();
    const at = picks.indexOf(event.target);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: picks.length - 1 }[event.key];
    if (at < 0 || !picks[next]) return;
    event.preventDefault();
    picks[next].focus();
    this.#leaveOneStop();
  }
}

/** The rows of an entry: its own, and below it those of its queues. */
function rowsOf(entry) {
  const { key, name, pool, metrics, isWaitKnown } = entry;
  const head = { key, kind: pool ? "pool" : "unmanaged", pool, name, single: pool?.queues.length === 1, metrics, isWaitKnown };
  return [head, ...entry.members.map((queue) => ({ key: `queue ${queue.queue}`, kind: "member", pool, name: queue.queue, metrics: queue.metrics, isWaitKnown: queue.is_wait_known, objective: queue.objective, pattern: queue.pattern }))];
}

/** Pool -> its workers that were ended by force, on all hosts. */
function killedOf(hosts) {
  const sums = new Map();
  for (const host of hosts) {
    for (const [pool, workers] of Object.entries(host.forced_workers)) sums.set(pool, (sums.get(pool) ?? 0) + workers);
  }
  return sums;
}

function showKilled(place, workers) {
  place.hidden = workers === 0;
  say(place, workers ? `${counted(workers, "worker")} killed while busy` : "");
  mark(place, "title", "Killed while busy: the job had not ended within the drain timeout of the host's file (drain_timeout_s). Counted since each host enrolled; the hosts below show where.");
}

function makeRow(row, select) {
  const cell = (name, label, kind = "number") => el("td", { role: "cell", class: kind, "data-part": name, "data-label": label });
  const title = row.kind === "pool" ? el("button", { type: "button", class: "pick", "data-part": "name" }) : el("span", { "data-part": "name" });
  const element = el(
    "tr",
    { role: "row", class: row.kind },
    el("th", { role: "rowheader", scope: "row" }, title, el("span", { class: "tag", "data-part": "mode" }), el("span", { class: "sub", "data-part": "sub" })),
    el("td", { role: "cell", class: "state", "data-label": "State" }, el("span", { class: "badge", "data-part": "badge" })),
    cell("waiting", "Waiting"),
    cell("oldest", "Longest wait"),
    cell("flight", "In flight"),
    cell("pickup", "Started within"),
    el("td", { role: "cell", class: "waits", "data-label": "Waits" }, row.kind === "pool" ? sparkline() : null),
    el(
      "td",
      { role: "cell", class: "workers", "data-label": "Running / desired / max" },
      el("span", { class: "figures", "data-part": "figures" }),
      el("span", { class: "track", "data-part": "track", "aria-hidden": "true" }, el("i", { class: "running" }), el("i", { class: "starting" }), el("i", { class: "mark" })),
    ),
    el(
      "td",
      { role: "cell", class: "reason", "data-label": "Reason" },
      row.kind === "pool" ? el("span", { class: "killed", "data-part": "killed", hidden: true }) : null,
      el("span", { class: "moving", "data-part": "moving" }),
    ),
  );
  if (row.kind === "pool") {
    // The button is for keys and screen readers; for a pointer the whole row is one.
    element.addEventListener("click", () => select(row.pool.pool));
  }
  return element;
}

function showRow(element, row, selected, now_s) {
  const { metrics, pool } = row;
  say(part(element, "name"), row.name);
  say(part(element, "sub"), subtitle(row));
  mark(element.firstElementChild, "title", `${row.name} · ${subtitle(row)}`);
  showState(element, row);
  measured(part(element, "waiting"), waiting(row), metrics, now_s);
  const { oldest, started } = judged(row, now_s);
  measured(part(element, "oldest"), longestWait(oldest ? oldest.wait_s : null, row.isWaitKnown), metrics, now_s);
  measured(part(element, "flight"), inFlight(metrics), metrics, now_s);
  measured(part(element, "pickup"), pickup(row, started), metrics, now_s);
  mark(part(element, "pickup"), "title", pickupTitle(row));
  if (pool) {
    mark(part(element, "oldest"), "data-over", usedOf(oldest) > 1);
    mark(part(element, "pickup"), "data-over", usedOf(started) > 1);
  }
  mark(element, "data-old", pool?.state === "stale");
  showWorkers(element, row);
  if (row.kind === "pool") {
    mark(part(element, "name"), "aria-pressed", String(pool.pool === selected));
    mark(element, "data-selected", pool.pool === selected);
    draw(element.querySelector(".spark"), pool);
  }
}

/**
 * The waits of a row, each with the objective of its own queue. A pool is judged by its worst queue, whose oldest job
 * has grown older since it was read, as the oldest of the pool has.
 */
function judged(row, now_s) {
  const { kind, pool, metrics, objective } = row;
  const oldest_s = oldestOf(row, now_s);
  if (kind !== "pool") return { oldest: { wait_s: oldest_s, objective }, started: { wait_s: metrics.pickup_objective_s, objective } };
  const { oldest_wait: oldest, pickup_wait: started } = pool;
  return { oldest: oldest && { ...oldest, wait_s: oldest.wait_s + oldest_s - metrics.oldest_age_s }, started };
}

function subtitle({ kind, pool, single, name, metrics, objective: own, pattern }) {
  if (kind !== "pool") {
    const judgedBy = pool && name in pool.member_objectives ? [slo(own)] : [];
    const matchedBy = pattern ? [`matched by ${pattern}`] : [];
    return [...judgedBy, ...matchedBy, ...(metrics.arrival_rate_per_s === null ? [] : [`jobs arrive at ${rate(metrics.arrival_rate_per_s)}`])].join(" · ");
  }
  const objective = slo(single ? pool.member_objectives[name] ?? pool.objective : pool.objective);
  if (!single) return `${objective} · ${pool.queues.length} queues${othersOf(pool)}`;
  return name.endsWith(`/${pool.pool}`) ? objective : `${objective} · pool ${pool.pool}`;
}

function showState(element, { kind, pool }) {
  const state = kind === "unmanaged" ? "unmanaged" : pool.state;
  const badge = part(element, "badge");
  badge.hidden = kind === "member";
  say(badge, wordOf(state));
  mark(badge, "data-state", state);
  mark(badge, "title", [meaningOf(state), ...(pool?.causes ?? []).map((cause) => `${cause}.`)].filter(Boolean).join(" "));
  const mode = part(element, "mode");
  const words = kind === "pool" ? pool.mode_words : "";
  mode.hidden = !words;
  say(mode, words);
}

function measured(cell, text, metrics, now_s) {
  say(cell, text);
  mark(cell, "data-unknown", text === "unknown");
  mark(cell, "title", metrics.sampled_at_s === null ? "never seen" : `read ${ago(now_s - metrics.sampled_at_s)}`);
}

function othersOf({ member_objectives }) {
  const number = Object.keys(member_objectives).length;
  return number ? `, ${number} with ${number === 1 ? "its own objective" : "their own objectives"}` : "";
}

/** No start in the window leaves nothing to measure. Where starts are not reported, or not since when jobs waited, it is unknown. */
function pickup({ metrics, pool }, started) {
  if (!started || started.wait_s === null) return metrics.start_rate_per_s === 0 ? "no starts" : duration(null);
  return pool ? `p${percentile(started.objective)} ${duration(started.wait_s)}` : duration(started.wait_s);
}

/** The median, over which minutes, and how old that is. */
function pickupTitle(row) {
  const { metrics, pool } = row;
  if (!pool) return "";
  const measured = pool.measured_age_s === null ? "never measured" : `measured ${ago(pool.measured_age_s)}`;
  return `Half of them within ${duration(metrics.pickup_p50_s)}; over ${duration(objectiveOf(row).window_s)}; ${measured}`;
}

/** The objective that a row's figures are about. */
const objectiveOf = ({ kind, pool, objective }) => (kind === "member" ? objective : pool.pickup_wait?.objective) ?? pool.objective;

function showWorkers(element, { kind, pool }) {
  const track = part(element, "track");
  track.hidden = kind !== "pool";
  if (kind !== "pool") {
    say(part(element, "figures"), "");
    say(part(element, "moving"), "");
    return;
  }
  const { running_workers: running, starting_workers: starting, target_workers: target } = pool;
  const there = running === null ? "unknown" : count(running);
  say(part(element, "figures"), `${there} / ${target === null ? "–" : count(target)} / ${count(pool.workers_max)}`);
  const moving = [
    [starting, "starting"],
    [pool.draining_workers, "finishing"],
    [pool.failing_workers, "failing to start"],
    [pool.unknown_workers, "on unreachable hosts"],
  ].filter(([number]) => number > 0);
  // Why there are none, or jobs that fail, is read where the eye is, and not in a list elsewhere.
  const causes = pool.causes.filter((_, index) => pool.kinds[index] !== "breaching"); // the column of the longest wait says that
  const decided = target !== null && pool.binding ? [`${count(target)} by ${pool.binding_label}`] : [];
  const capped = groupUses(pool, { isBinding: true });
  const text = [...causes, ...moving.map(([number, what]) => `${number} ${what}`), ...decided, ...capped].join(", ");
  say(part(element, "moving"), text);
  mark(element.querySelector(".reason"), "title", text);
  mark(part(element, "moving"), "data-bad", causes.length > 0 || pool.failing_workers > 0 || pool.unknown_workers > 0);
  const wanted = target === null ? "nothing decided yet" : `${count(target)} ${pool.mode === "recommend" ? "advised" : "desired"}`;
  const reported = pool.reported_age_s === null ? "no reachable host reports" : `reported ${ago(pool.reported_age_s)}`;
  mark(part(element, "figures"), "title", `${there} running, ${wanted}, at most ${[count(pool.workers_max), ...groupUses(pool)].join(", ")}; ${reported}`);
  const scale = Math.max(pool.workers_max, running + starting, target ?? 0, 1);
  const [filled, coming, tick] = track.children;
  filled.style.width = `${(100 * running) / scale}%`;
  coming.style.width = `${(100 * starting) / scale}%`;
  tick.style.left = `${(100 * (target ?? 0)) / scale}%`;
  tick.hidden = target === null;
}
