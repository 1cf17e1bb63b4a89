// A pool's last minutes: waits against the objective, jobs waiting, workers. Pointer or keys read the values of a moment.

import { el, mark, say } from "./dom.js";
import { clock, count, duration, short } from "./format.js";
import { CLOCK, column, WHOLE } from "./panels.js";
import { Plots } from "./plots.js";
import { loadPlots } from "./uplot.js";

const STEP_S = 5;
const JOINED = 3; // cells: a longer stretch without a value breaks the line
const FRESH_S = 32; // an older value is not the newest one
const KEYS = { ArrowLeft: -1, ArrowRight: 1, PageUp: -12, PageDown: 12 };

/** A chart inside `figure`. `draw(data)` shows data. */
export class Chart {
  #figure;
  #reading = el("p", { class: "reading" });
  #place = el("div");
  #plots = null;
  #data = null;
  #series = null;
  #at_s = null; // the moment that keys chose; null is the newest

  constructor(figure) {
    this.#figure = figure;
    figure.append(this.#reading, this.#place, el("figcaption", { class: "hint" }, "Point at the chart, or focus it and use the arrow keys, to read values."));
    mark(figure, "tabindex", "0");
    mark(figure, "role", "slider");
    mark(figure, "aria-label", "Moment shown");
    mark(figure, "aria-valuenow", 0); // a slider has a value also before there is something to draw
    mark(figure, "aria-valuetext", "no values yet");
    figure.addEventListener("keydown", (event) => this.#key(event));
    figure.addEventListener("blur", () => this.#point(null));
    figure.addEventListener("pointermove", () => (this.#at_s = null));
  }

  /**
   * Show `data`: from_s, until_s, points of each series, and how waits are judged: by which `target`, in which `unit`, under which
   * `names` the points have them, and at which `percentile` (null: at that of each queue).
   */
  async draw(data) {
    this.#data = data;
    const uPlot = await loadPlots().catch(() => null); // the next data asks for it again
    if (!uPlot || this.#data !== data) return;
    this.#plots ??= new Plots(uPlot, this.#place, { read: (index, entries) => this.#read(index, entries) });
    this.#series = seriesOf(data);
    this.#plots.draw(this.#series, panelsOf(data));
    queueMicrotask(() => this.#at_s !== null && this.#point(this.#at_s)); // uPlot knows its axis when it has drawn
  }

  close() {
    this.#data = null;
    this.#plots?.close();
  }

  #key(event) {
    if (!this.#series) return;
    const { at_s } = this.#series.columns;
    if (event.key === "Home") this.#point(at_s[0]);
    else if (event.key === "End" || event.key === "Escape") this.#point(null);
    else if (KEYS[event.key]) this.#point((this.#at_s ?? at_s.at(-1)) + KEYS[event.key] * STEP_S);
    else return;
    event.preventDefault();
  }

  #point(moment_s) {
    const at_s = this.#series?.columns.at_s;
    if (!at_s) return;
    this.#at_s = moment_s && Math.min(at_s.at(-1), Math.max(at_s[0], moment_s));
    this.#plots.point(this.#at_s);
  }

  #read(index, entries) {
    const { from_s, until_s, columns } = this.#series;
    const at_s = index === null ? until_s : columns.at_s[index];
    say(this.#reading, index === null ? `Newest values, ${clock(until_s)}` : `At ${clock(at_s)}`);
    mark(this.#figure, "aria-valuemin", Math.round(from_s - until_s));
    mark(this.#figure, "aria-valuemax", 0);
    mark(this.#figure, "aria-valuenow", Math.round(at_s - until_s));
    const spoken = entries.map(([label, value]) => `${label} ${value}`).join(", ");
    mark(this.#figure, "aria-valuetext", `${index === null ? "now" : `at ${clock(at_s)}`}: ${spoken}`);
  }
}

/** The points in cells of `STEP_S`: a wait in its own, a number of workers in all until the next. */
function seriesOf({ from_s, until_s, waits, workers, names }) {
  const at_s = [];
  for (let cell_s = Math.ceil(from_s / STEP_S) * STEP_S; cell_s <= until_s; cell_s += STEP_S) at_s.push(cell_s);
  const points = new Map(waits.map((point) => [Math.floor((point.at_s - at_s[0]) / STEP_S), point]));
  const held = at_s.map((cell_s) => workers.findLast((point) => point.at_s < cell_s + STEP_S));
  const ofWaits = (name) => joined(at_s.map((_, at) => points.get(at)?.[name] ?? null));
  const ofWorkers = (name) => held.map((point) => point?.[name] ?? null);
  return {
    from_s,
    until_s,
    fresh_s: FRESH_S,
    columns: {
      at_s,
      ...Object.fromEntries(Object.entries(names).map(([column, name]) => [column, ofWaits(name)])),
      waiting_jobs: ofWaits("waiting_jobs"),
      running_workers: ofWorkers("running_workers"),
      target_workers: ofWorkers("target_workers"),
    },
  };
}

/** `values` with the unknown ones between close neighbours left open (undefined): a line is drawn through them. */
function joined(values) {
  let last = -Infinity;
  values.forEach((value, at) => {
    if (value === null) return;
    if (at - last <= JOINED) values.fill(undefined, last + 1, at);
    last = at;
  });
  return values;
}

function panelsOf({ target, unit, percentile }) {
  const started = percentile === null ? "started within" : `${percentile} started within`;
  const objective = percentile === null ? `${unit(target)} of each queue's own` : `${percentile} within ${unit(target)}`;
  const counts = { unit: count, ticks: short, steps: WHOLE, least: 4, height: 88 };
  return [
    {
      name: "pickup",
      unit,
      steps: unit === duration ? CLOCK : undefined,
      least: target * 1.3,
      height: 140,
      lines: [
        { label: started, colour: "--accent", width: 2, values: column("pickup") },
        percentile && { label: "half within", colour: "--accent", dash: [2, 4], values: column("median") },
        { label: "longest wait", colour: "--soft", values: column("oldest"), known: column("waiting_jobs") },
        { label: "objective", colour: "--bad", dash: [5, 4], isLimit: true, words: objective, values: ({ columns }) => columns.at_s.map(() => target) },
      ].filter(Boolean),
    },
    { ...counts, name: "waiting", lines: [{ label: "Jobs waiting", colour: "--accent", width: 2, isFilled: true, values: column("waiting_jobs") }] },
    {
      ...counts,
      name: "workers",
      isStep: true,
      lines: [
        { label: "Workers running", colour: "--accent", width: 2, isFilled: true, values: column("running_workers") },
        { label: "desired", colour: "--ink", values: column("target_workers") },
      ],
    },
  ];
}
