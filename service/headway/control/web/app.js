// The dashboard: one stream of overviews, shown as they come. Ages tick on by themselves; nothing is shown as newer than it is.

import { Chart } from "./chart.js";
import { DecisionList } from "./decisions.js";
import { $, el, mark, say } from "./dom.js";
import { ago, clock, counted, promise, rate } from "./format.js";
import { HostList, showWanted } from "./hosts.js";
import { QueueTable } from "./queues.js";
import { follow, hasToken, keepToken, read } from "./stream.js";

const HISTORY_MINUTES = 10;
const DECISIONS_SHOWN = 20;
const HISTORY_EVERY_MS = 5_000; // a bucket of the pipeline

const state = {
  overview: null,
  skew_s: 0, // the server's clock less this browser's
  isLive: false,
  selected: null,
  history: null,
  historyAt: 0,
  decisions: null, // of the selected pool
  lately: new Map(), // pool -> what ran, seen by this page: newer than the stored decisions
};
const chart = new Chart($("chart"));
const table = new QueueTable($("queues-section"), { select, changed: showFound });
const decisions = new DecisionList($("decisions"));
const hosts = new HostList($("hosts-section"), { changed: show });

const now_s = () => Date.now() / 1000 + state.skew_s;

function show() {
  const { overview } = state;
  if (!overview) return;
  // Without a connection nothing ages on as if it were known to: the moment shown is that of the last overview.
  const moment_s = state.isLive ? now_s() : overview.at_s;
  showSummary(overview, moment_s);
  table.show(overview, { selected: state.selected, now_s: moment_s });
  showDecisions(overview, moment_s);
  hosts.show(overview, moment_s);
  showWanted($("hosts-wanted"), overview, moment_s);
  showEmpty(overview);
}

/** Those of the pool whose chart is shown; of all where none is selected. */
function showDecisions(overview, moment_s) {
  const pool = overview.pools.find((each) => each.pool === state.selected);
  const ofPool = (each) => !pool || each.decision.pool === pool.pool;
  const newest = overview.decisions.filter(ofPool);
  const known = new Set(newest.map((each) => each.decision_id));
  const older = (state.decisions ?? []).filter((each) => ofPool(each) && !known.has(each.decision_id));
  decisions.show({ decisions: [...newest, ...older].slice(0, DECISIONS_SHOWN) }, moment_s);
  say($("decisions-title"), pool ? `Decisions on ${pool.queues.length === 1 ? pool.queues[0] : pool.pool}` : "Decisions");
}

const BAD = ["breaching", "crash_loop", "failing", "no_host", "stale", "unseen", "unmeasured"];
const OLD_S = 10; // an age under this is the usual one: pipeline, agents and collectors report at least every few seconds

function showSummary(overview, moment_s) {
  const sentence = headline(overview);
  say($("headline"), state.isLive ? sentence : `Last known, ${clock(overview.at_s - state.skew_s)}: ${sentence}`);
  const running = overview.pools.reduce((sum, pool) => sum + pool.running_workers, 0);
  const known = overview.queues.map((queue) => queue.metrics.arrival_rate_per_s).filter((each) => each !== null);
  const isPart = overview.queues.some((queue) => queue.metrics.has_unknown_rates && queue.metrics.arrival_rate_per_s === null);
  const total = `jobs arrive at ${rate(known.reduce((one, other) => one + other, 0))}${isPart ? " or more" : ""}`;
  const arriving = known.length ? total : "arrivals unknown";
  const decided = overview.decisions[0];
  say(
    $("subline"),
    [
      doing(overview.pools),
      `${counted(running, "worker")} running on ${counted(overview.hosts.filter((host) => host.is_known).length, "host")}`,
      arriving,
      decided ? `last decision ${ago(moment_s - decided.decided_at_s)}` : "nothing decided yet",
    ]
      .filter(Boolean)
      .join(" · "),
  );
  const reasons = $("reasons");
  reasons.hidden = overview.health.status === "ok";
  const text = overview.health.reasons.join("\n");
  if (reasons.dataset.text !== text) {
    reasons.dataset.text = text;
    reasons.replaceChildren(...overview.health.reasons.map((reason) => el("li", {}, ...withCode(capital(reason)))));
  }
  document.title = overview.pools.some((pool) => BAD.slice(0, 4).includes(pool.state)) ? "● Headway" : "Headway";
}

/** What is under way at this moment; nothing where every pool has what it wants. */
function doing(pools) {
  const all = (name) => pools.reduce((sum, pool) => sum + pool[name], 0);
  const changes = [
    [all("starting_workers"), "starting"],
    [all("draining_workers"), "finishing a last job"],
    [all("failing_workers"), "failing to start"],
  ];
  return changes
    .filter(([number]) => number > 0)
    .map(([number, what]) => `${counted(number, "worker")} ${what}`)
    .join(", ");
}

/** How old what a headline rests on is, where that is out of the ordinary. */
function restsOn(pools) {
  const ages = pools.flatMap((pool) => [pool.sample_age_s, pool.measured_age_s]).filter((age_s) => age_s !== null);
  const oldest = Math.max(...ages);
  return ages.length && oldest > OLD_S ? `, as of ${ago(oldest)}` : "";
}

function headline({ pools, queues, health }) {
  if (!pools.length) return queues.length ? "Queues are seen, and none is managed yet" : "Nothing to manage yet";
  const names = (which) => pools.filter((pool) => which.includes(pool.state)).map((pool) => (pool.queues.length === 1 ? pool.queues[0] : pool.pool));
  const late = names(["breaching"]);
  if (late.length) return `${list(late)} ${late.length === 1 ? "is" : "are"} late${restsOn(pools.filter((pool) => pool.state === "breaching"))}`;
  for (const [state, what] of [["crash_loop", "workers crash"], ["failing", "too many jobs fail"], ["no_host", "no reachable host can run workers"]]) {
    const some = names([state]);
    if (some.length) return `${list(some)}: ${what}`;
  }
  const dark = names(["stale", "unseen"]);
  if (dark.length) return `${list(dark)}: no fresh data, so nothing is scaled down`;
  const unknown = names(["unmeasured"]);
  if (unknown.length) return `${list(unknown)}: whether the objective is met is unknown`;
  const near = names(["at_risk"]);
  if (near.length) return `${list(near)} ${near.length === 1 ? "is" : "are"} close to being late`;
  const after = names(["recovering"]);
  if (after.length) return `${list(after)} ${after.length === 1 ? "has" : "have"} been late, and nobody waits too long now`;
  if (pools.every((pool) => pool.state === "idle")) return `Nothing waits${restsOn(pools)}`;
  // What is wrong with the installation stands below; until it is well, nobody knows that all is.
  if (health.status !== "ok") return `Nobody is known to be late${restsOn(pools)}`;
  return `${pools.length === 1 ? "The objective is met" : `All ${pools.length} objectives are met`}${restsOn(pools)}`;
}

function list(names) {
  if (names.length > 3) return `${names.length} pools`;
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** Text whose parts in backquotes are commands to type. */
const withCode = (text) => text.split("`").map((each, index) => (index % 2 ? el("code", {}, each) : each));

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function showEmpty({ queues, pools, hosts, decisions }) {
  empty("queues-empty", !queues.length && !pools.length, "No queue has been seen.", [
    "Tell the collectors where your broker is: ",
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
    pools.length ? ["The next tick is at most five seconds away; if nothing comes, the reasons are above."] : ["Decisions begin with the first profile."],
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

// --- the chart --------------------------------------------------------------------------------------------------------

function select(pool) {
  if (state.selected === pool) return;
  state.selected = pool;
  state.history = state.decisions = null;
  state.historyAt = 0;
  show();
  refreshHistory();
}

/** How far a pool is behind its objective: its longest wait in objectives. */
const behind = ({ metrics, objective }) => Math.max(metrics.oldest_age_s ?? 0, metrics.pickup_objective_s ?? 0) / objective.target_s;

/** The filter has changed: the chart is of a pool that it leaves. */
function showFound() {
  if (!state.overview) return;
  selectFirst(state.overview);
  show();
  refreshHistory();
}

/** Show the pool that needs attention, until somebody chooses or searches others. */
function selectFirst(overview) {
  const found = table.pools(overview);
  const pools = found.length ? found : overview.pools;
  if (pools.some((pool) => pool.pool === state.selected)) return;
  const bad = BAD.map((which) => pools.filter((pool) => pool.state === which)).find((some) => some.length) ?? pools.slice(0, 1);
  const worst = bad.reduce((one, other) => (one && behind(one) >= behind(other) ? one : other), null);
  state.selected = worst?.pool ?? null;
  state.history = state.decisions = null;
  state.historyAt = 0;
}

async function refreshHistory() {
  const pool = state.selected;
  $("chart-section").hidden = pool === null;
  if (pool === null || document.hidden || Date.now() - state.historyAt < HISTORY_EVERY_MS) return drawChart();
  state.historyAt = Date.now();
  try {
    const name = encodeURIComponent(pool);
    const [history, decided] = await Promise.all([
      read(`v1/pools/${name}/history?minutes=${HISTORY_MINUTES}`),
      read(`v1/decisions?pool=${name}&limit=${DECISIONS_SHOWN}`),
    ]);
    if (pool === state.selected) Object.assign(state, { history, decisions: decided.decisions });
  } catch {
    return; // the stream shows what is wrong with the connection
  }
  drawChart();
}

function drawChart() {
  const { history, overview } = state;
  const pool = overview?.pools.find((each) => each.pool === state.selected);
  if (!history || !pool) return;
  say($("chart-title"), `${pool.queues.length === 1 ? pool.queues[0] : pool.pool}, last ${HISTORY_MINUTES} minutes`);
  const until_s = overview.at_s;
  const seen = state.lately.get(pool.pool) ?? [];
  const before = history.targets.filter((point) => !seen.length || point.at_s < seen[0].at_s);
  chart.draw({
    from_s: until_s - HISTORY_MINUTES * 60,
    until_s,
    target_s: history.objective.target_s,
    objective: promise(history.objective).split(" within")[0],
    waits: [...history.buckets, ...newest(history, pool)],
    workers: [...before, ...seen],
  });
}

/** What the table shows of this moment, after the pipeline's last bucket. */
function newest(history, { metrics }) {
  const last_s = history.buckets.at(-1)?.at_s ?? 0;
  if (metrics.sampled_at_s === null || metrics.sampled_at_s < last_s + history.bucket_s) return [];
  const { sampled_at_s: at_s, waiting_jobs, oldest_age_s, pickup_p50_s, pickup_objective_s } = metrics;
  return [{ at_s, waiting_jobs, oldest_age_s, pickup_p50_s, pickup_objective_s, started_jobs: null }];
}

function remember({ at_s, pools }) {
  for (const pool of pools) {
    const seen = state.lately.get(pool.pool) ?? [];
    const last = seen.at(-1);
    if (!last || last.target_workers !== pool.target_workers || last.running_workers !== pool.running_workers) {
      seen.push({ at_s, target_workers: pool.target_workers, running_workers: pool.running_workers });
    }
    // The first point is kept while it still holds at the chart's left edge.
    while (seen.length > 1 && seen[1].at_s < at_s - HISTORY_MINUTES * 60) seen.shift();
    state.lately.set(pool.pool, seen);
  }
}

// --- the connection ---------------------------------------------------------------------------------------------------

function link(kind, text) {
  mark($("link"), "data-state", kind);
  say($("link-text"), text);
}

function askForToken() {
  const dialog = $("ask");
  if (hasToken()) say($("ask-why"), "The token was not accepted: it is mistyped, over its time or revoked. `headway token create --role viewer --name NAME` makes another.");
  link("lost", "Token needed");
  dialog.showModal();
  return new Promise((done) => {
    $("ask-form").addEventListener(
      "submit",
      () => {
        $("give").hidden = true;
        keepToken($("token").value.trim());
        $("token").value = "";
        done();
      },
      { once: true },
    );
  });
}

follow("v1/events", {
  open: () => link("connecting", "Connected"),
  event(name, data) {
    if (name === "problem") {
      state.isLive = false;
      link("lost", capital(data));
      return show();
    }
    state.overview = data;
    state.skew_s = data.at_s - Date.now() / 1000;
    state.isLive = true;
    link("live", "Live");
    mark($("main"), "aria-busy", "false");
    mark(document.body, "data-stale", null);
    remember(data);
    selectFirst(data);
    show();
    refreshHistory();
  },
  quiet() {
    if (!state.isLive) return;
    state.isLive = false;
    link("lost", `The control plane has gone quiet: shown is what was known at ${clock(state.overview.at_s - state.skew_s)}`);
    mark(document.body, "data-stale", "true");
    show();
  },
  lost(why, retryMs) {
    state.isLive = false;
    const asOf = state.overview ? ` Shown is what was known at ${clock(state.overview.at_s - state.skew_s)}.` : "";
    link("lost", `Connection lost, retrying: ${why}.${asOf}`);
    mark(document.body, "data-stale", state.overview ? "true" : null);
    mark($("link"), "data-retry-ms", Math.round(retryMs));
    show();
  },
  token: askForToken,
});

// Escape closes what is open; a page without a token keeps a button to give one.
$("ask").addEventListener("cancel", () => ($("give").hidden = false));
$("give").addEventListener("click", () => {
  $("give").hidden = true;
  $("ask").showModal();
});
document.addEventListener("keydown", (event) => {
  const isTyped = !event.ctrlKey && !event.altKey && !event.metaKey;
  if (event.key === "/" && isTyped && !event.target.closest("input, dialog") && table.find()) event.preventDefault();
  const opened = event.key === "Escape" && event.target.closest?.("details[open]");
  if (!opened) return;
  opened.open = false;
  opened.querySelector("summary").focus();
});
setInterval(show, 1000);
document.addEventListener("visibilitychange", () => refreshHistory());
