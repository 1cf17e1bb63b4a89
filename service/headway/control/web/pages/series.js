// A pool or a queue over time: waits against the objective, backlog, arrivals, failures, workers, and what was decided.

import { link } from "../address.js";
import { DecisionList } from "../decisions.js";
import { el, keep, mark, say } from "../dom.js";
import { ago, count, counted, decimal, duration, rate, slo } from "../format.js";
import { groupUses } from "../headline.js";
import { Loading, number, table } from "../loading.js";
import { isEmpty, shownOf } from "../panels.js";
import { moment, Plots } from "../plots.js";
import { chooseDay, chooseRange, chooseSpan, dayOf, RANGES, rangeOf, undoSpans } from "../ranges.js";
import { askForToken } from "../signin.js";
import { reasonOf, TokenNeeded } from "../stream.js";
import { share } from "../today.js";
import { loadPlots } from "../uplot.js";
import { meaningOf, wordOf } from "../states.js";

const POINTS = 300;
const DECISIONS_SHOWN = 200;
const REFRESH_MS = { raw: 5_000, minutes: 60_000, hours: 600_000 };
const CLASSES_EVERY_MS = 60_000;
const CLASSES = ["Job class", ...["Arrive", "Run for", "95 % run for", "Half start within", "95 % start within", "Failed"].map(number)];
const SOURCES = { raw: "readings of 5 s", minutes: "readings of a minute", hours: "readings of an hour" };

const classRow = ({ job_class, window }) => [
  job_class,
  rate(window.arrival_rate_per_s),
  ...[window.service_time_s, window.service_p95_s, window.pickup_p50_s, window.pickup_p95_s].map(duration),
  window.failure_share === null ? "unknown" : share(window.failure_share),
];

export const page = {
  render(root, context) {
    return new SeriesPage(root, context);
  },
};

class SeriesPage {
  #context;
  #kind;
  #name;
  #parts = {};
  #plots = null;
  #classes;
  #series = null;
  #decided = [];
  #list;
  #turn = 0;
  #nextAt = 0;
  #isClosed = false;

  constructor(root, context) {
    this.#context = context;
    this.#kind = context.parameters.pool ? "pool" : "queue";
    this.#name = context.parameters.pool ?? context.parameters.queue;
    this.#build(root);
    this.#refresh();
    const { section, classes } = this.#parts;
    this.#classes = new Loading(section, { read: () => context.read(`v1/${this.#kind}s/${encodeURIComponent(this.#name)}/metrics`), every_ms: CLASSES_EVERY_MS, show: ({ job_classes }) => {
      section.hidden = !job_classes.length;
      classes.replaceChildren(table("Job classes in the last hour", CLASSES, job_classes.map(classRow)));
    } });
  }

  show(store) {
    this.#showState(store);
    if (store.isLive && !document.hidden && Date.now() >= this.#nextAt && rangeOf(0).name) this.#refresh();
  }

  close() {
    this.#isClosed = true;
    this.#plots?.close();
    this.#classes.close();
  }

  #build(root) {
    const part = (name, tag, attributes = {}, ...children) => (this.#parts[name] = el(tag, attributes, ...children));
    const ranges = [...RANGES].map(([name, [words]]) => this.#button(words, () => this.#chose(() => chooseRange(name)), { "data-range": name }));
    const span = (change) => () => this.#chose(() => chooseSpan(...change(this.#range()), this.#context.store.moment_s));
    part("day", "input", { type: "date", id: "day" });
    this.#parts.day.addEventListener("change", () => this.#parts.day.value && this.#chose(() => chooseDay(this.#parts.day.value, this.#context.store.moment_s)));
    const half = ({ from_s, until_s }) => (until_s - from_s) / 2;
    root.append(
      el("section", { class: "summary" },
        el("p", { class: "sub" }, this.#kind === "pool" ? "Pool" : "Queue"),
        el("h1", {}, this.#name),
        el("p", { id: "subline" }, part("badge", "span", { class: "badge", hidden: true }), " ", part("facts", "span")),
        part("causes", "ul", { class: "reasons", hidden: true }),
        el("p", { class: "sub" }, part("controls", "a", { hidden: true }, "Scale, pause or change this pool")),
      ),
      el("div", { class: "title" },
        el("div", { class: "ranges", role: "group", "aria-label": "Range of time" }, ...ranges),
        el("div", { class: "ranges", role: "group", "aria-label": "Move and zoom" },
          el("label", { for: "day" }, "Day "), this.#parts.day,
          this.#button("Earlier", span((range) => [range.from_s - half(range), range.until_s - half(range)])),
          this.#button("Later", span((range) => [range.from_s + half(range), range.until_s + half(range)])),
          this.#button("Zoom in", span((range) => [range.from_s + half(range) / 2, range.until_s - half(range) / 2])),
          this.#button("Zoom out", span((range) => [range.from_s - half(range), range.until_s + half(range)])),
        ),
      ),
      el("section", { class: "chart", "aria-label": "Charts" },
        el("p", { class: "reading" }, part("span", "span"), " ", part("moment", "b", { "data-part": "reading" })),
        part("plots", "div"),
        part("none", "div", { class: "empty", hidden: true }),
      ),
      part("data", "details", { class: "data", hidden: true }, el("summary", {}, "The data as a table"), part("table", "div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The data as a table" })),
      part("section", "section", { hidden: true }, el("h2", {}, "Job classes in the last hour"), part("classes", "div", { class: "card" })),
      part("decided", "section", { hidden: true }, part("decided-title", "h2", {}, "Decisions in this range"), part("decisions", "ol", { class: "decisions" }), part("undecided", "p", { class: "empty", hidden: true })),
    );
    this.#list = new DecisionList(this.#parts.decisions);
    this.#parts.data.addEventListener("toggle", () => this.#showTable());
    this.#none("Reading what is stored…", []);
  }

  #read(index) {
    const { columns, from_s, until_s } = this.#series;
    say(this.#parts.moment, index === null ? "" : moment(columns.at_s[index], until_s - from_s));
  }

  #button(words, act, attributes = {}) {
    const button = el("button", { type: "button", ...attributes }, words);
    button.addEventListener("click", act);
    return button;
  }

  #range() {
    return rangeOf(this.#context.store.moment_s);
  }

  #chose(change) {
    change();
    this.#refresh();
  }

  #showState({ overview, moment_s }) {
    if (!overview) return;
    const queue = overview.queues.find((each) => this.#kind === "queue" && each.queue === this.#name);
    const pool = overview.pools.find((each) => each.pool === (this.#kind === "pool" ? this.#name : queue?.pool));
    const { badge, facts, causes, controls } = this.#parts;
    badge.hidden = !pool;
    causes.hidden = !pool?.causes.length;
    controls.hidden = !pool;
    if (!pool) {
      say(facts, queue ? "No profile names this queue: it is watched and has no workers of Headway." : `No ${this.#kind} of this name is known now.`);
      return;
    }
    mark(controls, "href", link("/profiles", pool.pool));
    say(badge, wordOf(pool.state));
    mark(badge, "data-state", pool.state);
    mark(badge, "title", meaningOf(pool.state));
    const desired = pool.target_workers === null ? "" : ` of ${count(pool.target_workers)} desired`;
    const others = this.#kind === "queue" ? `pool ${pool.pool}` : counted(pool.queues.length, "queue");
    const read = pool.metrics.sampled_at_s === null ? "never read" : `read ${ago(moment_s - pool.metrics.sampled_at_s)}`;
    say(facts, `${slo(queue?.objective ?? pool.objective)} · ${pool.running_workers}${desired} running, at most ${[pool.workers_max, ...groupUses(pool)].join(", ")} · ${others} · ${read}`);
    keep(causes, pool.causes.map((cause, index) => [index, cause]), ([index]) => index, () => el("li"), (item, [, cause]) => say(item, cause));
  }

  async #refresh() {
    const turn = ++this.#turn;
    const range = this.#range();
    this.#nextAt = Infinity; // while this one is under way
    this.#markRange(range);
    const name = encodeURIComponent(this.#name);
    const words = `from_s=${range.from_s}&until_s=${range.until_s}&points=${POINTS}`;
    try {
      const [uPlot, series] = await Promise.all([loadPlots(), this.#context.read(`v1/${this.#kind}s/${name}/series?${words}`)]);
      const pool = this.#kind === "pool" ? this.#name : series.pool;
      const decided = pool ? await this.#readChanges(pool, range) : { decisions: [], isCut: false };
      if (turn !== this.#turn || this.#isClosed) return;
      this.#plots ??= new Plots(uPlot, this.#parts.plots, {
        read: (index) => this.#read(index),
        zoomed: (from_s, until_s) => this.#chose(() => chooseSpan(from_s, until_s, this.#context.store.moment_s)),
        reset: () => this.#chose(undoSpans),
        opened: (decision) => this.#open(decision),
      });
      this.#nextAt = Date.now() + REFRESH_MS[series.source];
      this.#took(series, decided);
    } catch (error) {
      if (turn !== this.#turn || this.#isClosed) return;
      this.#nextAt = Date.now() + REFRESH_MS.raw;
      this.#failed(error);
    }
  }

  /** What changed the number of workers, newest first. */
  async #readChanges(pool, { name, from_s, until_s }) {
    const query = { pool, from_s, limit: DECISIONS_SHOWN, ...(name ? {} : { until_s }) }; // up to now: also what is decided meanwhile
    const found = await Promise.all(["up", "down"].map((direction) => this.#context.read(`v1/decisions?${new URLSearchParams({ ...query, direction })}`)));
    const decisions = found.flatMap((each) => each.decisions).sort((one, other) => other.decided_at_s - one.decided_at_s);
    return { decisions, isCut: found.some((each) => each.next !== null) };
  }

  #took(series, { decisions, isCut }) {
    this.#series = series;
    this.#decided = decisions;
    this.#parts.decided.hidden = false;
    const length_s = series.until_s - series.from_s;
    say(this.#parts.span, `${moment(series.from_s, length_s)} to ${moment(series.until_s, length_s)}, ${SOURCES[series.source]}; each point is ${duration(series.step_s)}`);
    const isNone = isEmpty(series);
    this.#parts.none.hidden = !isNone;
    this.#parts.plots.hidden = isNone;
    this.#parts.data.hidden = isNone;
    if (isNone) this.#none("Nothing is known of this range.", ["Readings of 5 s are kept for 2 hours, of a minute for 14 days, of an hour for 400 days."]);
    else this.#plots.draw(series, shownOf(series), this.#decided);
    this.#list.show({ decisions: this.#decided }, this.#context.store.moment_s);
    this.#parts.undecided.hidden = this.#decided.length > 0 && !isCut;
    say(this.#parts.undecided, isCut ? `Only the newest ${DECISIONS_SHOWN} that went up, and as many that went down, are shown.` : "No change of the number of workers was decided in this range.");
    this.#showTable();
  }

  #failed(error) {
    if (error instanceof TokenNeeded) return askForToken().then(() => this.#refresh());
    const why = reasonOf(error);
    if (this.#series) return say(this.#parts.span, `Not read again: ${why}. Shown is what was read before.`);
    this.#none("This cannot be shown.", [`${why}. `, el("a", { href: link("/") }, "All queues")]);
  }

  #none(title, children) {
    this.#parts.none.hidden = false;
    this.#parts.none.replaceChildren(el("b", {}, title), el("p", {}, ...children));
  }

  #markRange(range) {
    for (const button of document.querySelectorAll("[data-range]")) mark(button, "aria-pressed", String(button.dataset.range === range.name));
    if (document.activeElement !== this.#parts.day) this.#parts.day.value = dayOf(range);
  }

  #open({ decision_id }) {
    const details = this.#parts.decisions.querySelector(`[data-key="${CSS.escape(String(decision_id))}"] details`);
    if (!details) return;
    details.open = true;
    details.scrollIntoView({ block: "center" });
    details.querySelector("summary").focus({ preventScroll: true });
  }

  #showTable() {
    if (!this.#parts.data.open || !this.#series) return;
    const { columns, from_s, until_s } = this.#series;
    const names = Object.keys(columns).filter((name) => name === "at_s" || columns[name].some((value) => value !== null));
    const words = (name) => (name === "at_s" ? "from" : name.replace(/_per_s$/, " per s").replace(/_s$/, " in s").replaceAll("_", " "));
    const value = (name, index) => (name === "at_s" ? moment(columns.at_s[index], until_s - from_s) : decimal(columns[name][index]));
    const rows = columns.at_s.map((_, index) => el("tr", {}, ...names.map((name, at) => el(at ? "td" : "th", at ? {} : { scope: "row" }, value(name, index)))));
    this.#parts.table.replaceChildren(
      el("table", {}, el("thead", {}, el("tr", {}, ...names.map((name) => el("th", { scope: "col" }, words(name))))), el("tbody", {}, ...rows.reverse())),
    );
  }
}
