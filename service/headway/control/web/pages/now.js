// Now: are objectives met, which queue is in trouble, why, and what is being done about it.

import { link, parameter, setParameters } from "../address.js";
import { Chart } from "../chart.js";
import { DecisionList } from "../decisions.js";
import { $, el, mark, say } from "../dom.js";
import { usedOf } from "../entries.js";
import { ago, clock, counted, decimal, duration, hasOwn, rate, ratio } from "../format.js";
import { doing, headline, nameOf, running } from "../headline.js";
import { HostList, showWanted } from "../hosts.js";
import { IncidentList } from "../incidents.js";
import { QueueTable } from "../queues.js";
import { remember as rememberWaits } from "../sparkline.js";
import { statesOf } from "../states.js";
import { Today } from "../today.js";

const HISTORY_MINUTES = 10;
const DECISIONS_SHOWN = 20;
const HISTORY_EVERY_MS = 5_000; // a bucket of the pipeline

// Pool -> what ran, seen since the dashboard was opened: newer than the stored decisions.
const lately = new Map();

export const page = {
  render(root, context) {
    root.append($("page-now").content.cloneNode(true));
    return new Now(context);
  },
};

class Now {
  #context;
  #overview = null; // the one that is shown
  #selected = parameter("pool");
  #history = null;
  #historyAt = 0;
  #isChartUnknown = false; // its first reading has failed
  #decided = null; // decisions on the selected pool
  #said = null;
  #isClosed = false;
  #incidents;
  #today;
  #chart = new Chart($("chart"));
  #decisions = new DecisionList($("decisions"));
  #table = new QueueTable($("queues-section"), { select: (pool) => this.#select(pool), changed: () => this.#showFound() });
  #hosts = new HostList($("hosts-section"), { changed: () => this.tick(this.#context.store) });

  constructor(context) {
    this.#context = context;
    this.#incidents = new IncidentList($("incidents-section"), context.read);
    this.#today = new Today($("today"), context.read);
  }

  show(store) {
    const { overview } = store;
    if (!overview) {
      if (store.hasFailed) say($("headline"), "Nothing is known yet");
      return say($("subline"), store.awaited);
    }
    if (store.isLive && overview !== this.#overview) {
      this.#overview = overview;
      remember(overview);
      rememberWaits(overview);
      this.#selectFirst(overview);
    }
    this.tick(store);
    if (store.isLive) this.#refreshHistory();
  }

  tick(store) {
    const { overview, moment_s } = store;
    if (!overview) return;
    this.#showSummary(store);
    this.#today.show(moment_s, store);
    this.#incidents.show(moment_s, store);
    this.#table.show(overview, { selected: this.#selected, now_s: moment_s });
    this.#showDecisions(overview, moment_s);
    this.#hosts.show(overview, moment_s);
    showWanted($("hosts-wanted"), overview, moment_s);
    showEmpty(overview);
  }

  find() {
    return this.#table.find();
  }

  close() {
    this.#isClosed = true;
    this.#chart.close();
  }

  #showSummary({ overview, moment_s, isLive, asOf_s }) {
    const asOf = isLive ? "" : `Last known, ${clock(asOf_s)}: `;
    say($("headline"), asOf + headline(overview));
    const news = asOf + headline(overview, { withAge: false });
    if (news !== this.#said) this.#context.announce((this.#said = news));
    say($("subline"), subline(overview, moment_s));
    const reasons = $("reasons");
    reasons.hidden = overview.health.status === "ok";
    const text = overview.health.reasons.join("\n");
    if (reasons.dataset.text !== text) {
      reasons.dataset.text = text;
      reasons.replaceChildren(...overview.health.reasons.map((reason) => el("li", {}, ...withCode(capital(reason)))));
    }
  }

  /** Those of the pool whose chart is shown; of all where none is selected. */
  #showDecisions(overview, moment_s) {
    const pool = this.#pool();
    const ofPool = (each) => !pool || each.decision.pool === pool.pool;
    const newest = overview.decisions.filter(ofPool);
    const known = new Set(newest.map((each) => each.decision_id));
    const older = (this.#decided ?? []).filter((each) => ofPool(each) && !known.has(each.decision_id));
    this.#decisions.show({ decisions: [...newest, ...older].slice(0, DECISIONS_SHOWN) }, moment_s);
    say($("decisions-title"), pool ? `Decisions on ${nameOf(pool)}` : "Decisions");
  }

  #pool() {
    return this.#context.store.pool(this.#selected);
  }

  #select(pool) {
    if (this.#selected === pool) return;
    setParameters({ pool });
    this.#choose(pool);
    this.tick(this.#context.store);
    this.#refreshHistory();
  }

  #choose(pool) {
    this.#selected = pool;
    this.#history = this.#decided = null;
    this.#historyAt = 0;
  }

  /** The filter has changed: the chart is of a pool that it leaves. */
  #showFound() {
    const { overview } = this.#context.store;
    if (!overview) return;
    this.#selectFirst(overview);
    this.tick(this.#context.store);
    this.#refreshHistory();
  }

  /** Show the pool that needs attention, until somebody chooses or searches others. */
  #selectFirst(overview) {
    const found = this.#table.pools(overview);
    const pools = found.length ? found : overview.pools;
    if (pools.some((pool) => pool.pool === this.#selected)) return;
    const bad = statesOf("page", "ticket", "note").map((which) => pools.filter((pool) => pool.state === which)).find((some) => some.length) ?? pools.slice(0, 1);
    const worst = bad.reduce((one, other) => (one && behind(one) >= behind(other) ? one : other), null);
    this.#choose(worst?.pool ?? null);
  }

  async #refreshHistory() {
    const pool = this.#selected;
    $("chart-section").hidden = pool === null || this.#isChartUnknown;
    if (pool === null || document.hidden || Date.now() - this.#historyAt < HISTORY_EVERY_MS) return this.#drawChart();
    this.#historyAt = Date.now();
    try {
      const name = encodeURIComponent(pool);
      const [history, decided] = await Promise.all([
        this.#context.read(`v1/pools/${name}/history?minutes=${HISTORY_MINUTES}`),
        this.#context.read(`v1/decisions?pool=${name}&limit=${DECISIONS_SHOWN}`),
      ]);
      if (this.#isClosed) return;
      if (pool === this.#selected) [this.#history, this.#decided] = [history, decided.decisions];
    } catch {
      if (this.#isClosed) return;
      this.#isChartUnknown = this.#history === null;
      $("chart-section").hidden ||= this.#isChartUnknown;
      return; // the stream shows what is wrong with the connection
    }
    this.#isChartUnknown = false;
    $("chart-section").hidden = false;
    this.#drawChart();
  }

  #drawChart() {
    const pool = this.#pool();
    const history = this.#history;
    if (!history || !pool) return;
    say($("chart-title"), `${nameOf(pool)}, last ${HISTORY_MINUTES} minutes`);
    mark($("chart-open"), "href", link("/pools", pool.pool));
    const until_s = this.#context.store.overview.at_s;
    const seen = lately.get(pool.pool) ?? [];
    const before = history.targets.filter((point) => !seen.length || point.at_s < seen[0].at_s);
    this.#chart.draw({
      from_s: until_s - HISTORY_MINUTES * 60,
      until_s,
      ...judged(pool, history.objective),
      waits: [...history.buckets, ...newest(history, pool)],
      workers: [...before, ...seen],
    });
  }
}

/** How the chart judges waits: by the one objective in seconds, or each queue by its own. */
function judged({ member_objectives }, objective) {
  if (hasOwn(member_objectives)) return { target: 1, unit: ratio, names: { pickup: "pickup_ratio", median: null, oldest: "oldest_wait_ratio" }, percentile: null };
  const names = { pickup: "pickup_objective_s", median: "pickup_p50_s", oldest: "oldest_age_s" };
  return { target: objective.target_s, unit: duration, names, percentile: `${decimal(objective.percentile)} %` };
}

/** How far a pool is behind its objectives: the longest wait in objectives of its own queue. */
const behind = ({ oldest_wait, pickup_wait }) => Math.max(usedOf(oldest_wait), usedOf(pickup_wait));

function subline(overview, moment_s) {
  const known = overview.queues.map((queue) => queue.metrics.arrival_rate_per_s).filter((each) => each !== null);
  const isPart = overview.queues.some((queue) => queue.metrics.has_unknown_rates && queue.metrics.arrival_rate_per_s === null);
  const total = `jobs arrive at ${rate(known.reduce((one, other) => one + other, 0))}${isPart ? " or more" : ""}`;
  const decided = overview.decisions[0];
  return [
    doing(overview.pools),
    `${running(overview.pools)} on ${counted(overview.hosts.filter((host) => host.is_known).length, "host")}`,
    known.length ? total : "arrivals unknown",
    decided ? `last decision ${ago(moment_s - decided.decided_at_s)}` : "nothing decided yet",
  ]
    .filter(Boolean)
    .join(" · ");
}

/** Text whose parts in backquotes are commands to type. */
const withCode = (text) => text.split("`").map((each, index) => (index % 2 ? el("code", {}, each) : each));

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function showEmpty({ queues, pools, hosts, decisions }) {
  empty("queues-empty", !queues.length && !pools.length, "No queue has been seen.", [
    "Configure where the collectors find your broker: ",
    el("code", {}, "HEADWAY_BROKERS=redis=redis://127.0.0.1:6379/0 headway collect"),
    ", or send events to ",
    el("code", {}, "POST /v1/telemetry"),
    ".",
  ]);
  $("queues-section").querySelector(".box").hidden = !queues.length && !pools.length;
  if (queues.length && !pools.length) {
    empty("queues-empty", true, "No queue has a profile.", ["Write objectives into ", el("code", {}, "profiles.yaml"), " and run ", el("code", {}, "headway apply profiles.yaml"), "."]);
  }
  empty("hosts-empty", !hosts.length, "No host has enrolled.", ["Where workers should run, describe how to start one in ", el("code", {}, "host.toml"), " and run ", el("code", {}, "headway agent"), "."]);
  empty(
    "decisions-empty",
    !decisions.length,
    "Nothing has been decided.",
    pools.length ? ["The next evaluation is at most five seconds away; if nothing comes, the reasons are above."] : ["Decisions begin with the first profile."],
  );
}

function empty(id, isEmpty, title, children) {
  const place = $(id);
  place.hidden = !isEmpty;
  if (isEmpty && place.dataset.title !== title) {
    place.dataset.title = title;
    place.replaceChildren(el("b", {}, title), el("p", {}, ...children));
  }
}

/** What the table shows of this moment, after the pipeline's last bucket. */
function newest(history, { metrics, oldest_wait, pickup_wait }) {
  const last_s = history.buckets.at(-1)?.at_s ?? 0;
  if (metrics.sampled_at_s === null || metrics.sampled_at_s < last_s + history.bucket_s) return [];
  const { sampled_at_s: at_s, waiting_jobs, oldest_age_s, pickup_p50_s, pickup_objective_s } = metrics;
  const [oldest_wait_ratio, pickup_ratio] = [oldest_wait, pickup_wait].map((wait) => wait && usedOf(wait));
  return [{ at_s, waiting_jobs, oldest_age_s, pickup_p50_s, pickup_objective_s, oldest_wait_ratio, pickup_ratio, started_jobs: null }];
}

function remember({ at_s, pools }) {
  for (const pool of pools) {
    const seen = lately.get(pool.pool) ?? [];
    const last = seen.at(-1);
    if (!last || last.target_workers !== pool.target_workers || last.running_workers !== pool.running_workers) {
      seen.push({ at_s, target_workers: pool.target_workers, running_workers: pool.running_workers });
    }
    // The first point is kept while it still holds at the chart's left edge.
    while (seen.length > 1 && seen[1].at_s < at_s - HISTORY_MINUTES * 60) seen.shift();
    lately.set(pool.pool, seen);
  }
}
