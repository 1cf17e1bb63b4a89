// Three small charts over one time: waits against the objective, jobs waiting, workers. Drawn as SVG, styled by CSS.

import { el, mark, say, svg } from "./dom.js";
import { clock, count, duration, short } from "./format.js";

const LEFT = 52;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 6;
const TIMES = 16; // under the last panel
const HEADROOM = 1.06;
const GAP_S = 16; // longer without a value than three buckets: the line is broken, not drawn through
const PANELS = [
  { name: "pickup", height: 140 },
  { name: "waiting", height: 88 },
  { name: "workers", height: 88 + TIMES, hasTimes: true },
];

/** A chart inside `figure`. `draw(data)` shows data; pointer and arrow keys read values off it. */
export class Chart {
  constructor(figure) {
    this.data = null;
    this.at = null; // the moment pointed at; null is the newest
    this.panels = PANELS.map((panel) => this.#panel(panel));
    this.reading = el("p", { class: "reading" });
    figure.append(this.reading, ...this.panels.map((panel) => panel.box));
    figure.append(el("figcaption", { class: "hint" }, "Point at the chart, or focus it and use the arrow keys, to read values."));
    this.figure = figure;
    mark(figure, "tabindex", "0");
    mark(figure, "role", "slider");
    mark(figure, "aria-label", "Moment shown");
    figure.addEventListener("keydown", (event) => this.#key(event));
    figure.addEventListener("blur", () => this.#point(null));
    new ResizeObserver(() => figure.isConnected && this.#redraw()).observe(figure); // also when its page is left
  }

  /**
   * Show `data`: from_s, until_s, points of each series, and how waits are judged: by which `target`, in which `unit`, under which
   * `names` the points have them, and at which `percentile` (null: at that of each queue).
   */
  draw(data) {
    this.data = data;
    this.#redraw();
  }

  #panel({ name, height, hasTimes = false }) {
    const legend = el("p", { class: "legend" });
    const drawing = svg("svg", { class: `plot ${name}`, height, "aria-hidden": "true" });
    const box = el("div", { class: "panel" }, legend, drawing);
    drawing.addEventListener("pointermove", (event) => this.#point(this.#moment(drawing, event)));
    drawing.addEventListener("pointerleave", () => this.#point(null));
    return { name, height, hasTimes, legend, drawing, box };
  }

  #moment(drawing, event) {
    if (!this.data) return null;
    const box = drawing.getBoundingClientRect();
    const fraction = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
    return this.data.from_s + Math.min(1, Math.max(0, fraction)) * (this.data.until_s - this.data.from_s);
  }

  #key(event) {
    if (!this.data) return;
    const { from_s, until_s } = this.data;
    const step_s = { ArrowLeft: -5, ArrowRight: 5, PageUp: -60, PageDown: 60 }[event.key];
    if (event.key === "Home") this.#point(from_s);
    else if (event.key === "End" || event.key === "Escape") this.#point(null);
    else if (step_s) this.#point(Math.min(until_s, Math.max(from_s, (this.at ?? until_s) + step_s)));
    else return;
    event.preventDefault();
  }

  #point(at_s) {
    this.at = at_s;
    if (this.data) this.#read();
  }

  #redraw() {
    if (!this.data) return;
    const width = this.figure.clientWidth - horizontalPadding(this.figure);
    if (width <= 0) return;
    this.width = width;
    const scales = { pickup: this.#waits(), waiting: this.#waiting(), workers: this.#workers() };
    for (const panel of this.panels) this.#drawPanel(panel, scales[panel.name]);
    this.#read();
  }

  #waits() {
    const { waits, target, unit, names } = this.data;
    const top = Math.max(target * 1.3, ...waits.flatMap((point) => [point[names.pickup] ?? 0, point[names.oldest] ?? 0]));
    return {
      top,
      isTime: unit === duration,
      unit,
      shapes: (x, y) => [
        svg("rect", { class: "over", x: LEFT, y: TOP, width: this.width - LEFT - RIGHT, height: Math.max(0, y(target) - TOP) }),
        svg("line", { class: "objective", x1: LEFT, x2: this.width - RIGHT, y1: y(target), y2: y(target) }),
        svg("path", { class: "oldest", d: line(waits, names.oldest, x, y) }),
        svg("path", { class: "median", d: line(waits, names.median, x, y) }),
        svg("path", { class: "pickup-line", d: line(waits, names.pickup, x, y) }),
        ...dots(waits, names.pickup, x, y),
      ],
    };
  }

  #waiting() {
    const { waits } = this.data;
    const top = Math.max(4, ...waits.map((point) => point.waiting_jobs ?? 0));
    return {
      top,
      isWhole: true,
      unit: short,
      shapes: (x, y) => [
        svg("path", { class: "area", d: area(waits, "waiting_jobs", x, y) }),
        svg("path", { class: "edge", d: line(waits, "waiting_jobs", x, y) }),
      ],
    };
  }

  #workers() {
    const { workers, until_s } = this.data;
    const top = Math.max(4, ...workers.map((point) => Math.max(point.target_workers ?? 0, point.running_workers ?? 0)));
    return {
      top,
      isWhole: true,
      unit: short,
      shapes: (x, y) => [
        svg("path", { class: "area", d: steps(workers, "running_workers", x, y, until_s, true) }),
        svg("path", { class: "edge", d: steps(workers, "running_workers", x, y, until_s) }),
        svg("path", { class: "target", d: steps(workers, "target_workers", x, y, until_s) }),
      ],
    };
  }

  #drawPanel(panel, scale) {
    const { from_s, until_s } = this.data;
    const ticks = niceTicks(scale.top, panel.height > 120 ? 4 : 2, scale);
    const top = Math.max(scale.top * HEADROOM, ticks.at(-1));
    const floor = panel.height - BOTTOM - (panel.hasTimes ? TIMES : 0);
    const x = (at_s) => LEFT + (Math.min(until_s, Math.max(from_s, at_s)) - from_s) / (until_s - from_s) * (this.width - LEFT - RIGHT);
    const y = (value) => floor - (value / top) * (floor - TOP);
    panel.x = x;
    panel.cursor = svg("line", { class: "cursor", y1: TOP, y2: floor, visibility: "hidden" });
    mark(panel.drawing, "width", this.width);
    mark(panel.drawing, "viewBox", `0 0 ${this.width} ${panel.height}`);
    panel.drawing.replaceChildren(
      ...ticks.flatMap((value) => [
        svg("line", { class: value ? "grid" : "base", x1: LEFT, x2: this.width - RIGHT, y1: y(value), y2: y(value) }),
        svg("text", { class: "tick", x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, scale.unit(value)),
      ]),
      ...(panel.hasTimes ? minutes(from_s, until_s, this.width) : []).map((at_s) =>
        svg("text", { class: "tick", x: x(at_s), y: panel.height - 4, "text-anchor": "middle" }, clock(at_s, false)),
      ),
      ...scale.shapes(x, y),
      panel.cursor,
    );
  }

  #read() {
    const { waits, workers, until_s } = this.data;
    const at_s = this.at ?? until_s;
    const wait = this.at === null ? latest(waits, until_s, this.data.names) : nearest(waits, at_s);
    const worker = workers.findLast((point) => point.at_s <= at_s) ?? null;
    const moment = this.at === null ? "now" : `at ${clock(at_s)}`;
    const texts = {
      pickup: this.#waitTexts(wait),
      waiting: [["edge", "Jobs waiting", count(wait?.waiting_jobs)]],
      workers: [
        ["edge", "Workers running", count(worker?.running_workers)],
        ["target", "desired", count(worker?.target_workers)],
      ],
    };
    say(this.reading, this.at === null ? `Newest values, ${clock(until_s)}` : `At ${clock(at_s)}`);
    const spoken = [];
    for (const panel of this.panels) {
      legend(panel.legend, texts[panel.name]);
      spoken.push(...texts[panel.name].map(([, label, value]) => `${label} ${value}`));
      mark(panel.cursor, "visibility", this.at === null ? "hidden" : "visible");
      mark(panel.cursor, "x1", panel.x(at_s));
      mark(panel.cursor, "x2", panel.x(at_s));
    }
    mark(this.figure, "aria-valuemin", Math.round(this.data.from_s - until_s));
    mark(this.figure, "aria-valuemax", 0);
    mark(this.figure, "aria-valuenow", Math.round(at_s - until_s));
    mark(this.figure, "aria-valuetext", `${moment}: ${spoken.join(", ")}`);
  }

  #waitTexts(wait) {
    const { percentile, target, unit, names } = this.data;
    const values = { pickup: unit(wait?.[names.pickup]), oldest: unit(wait?.[names.oldest]) };
    if (percentile === null) {
      return [
        ["pickup-line", "started within", values.pickup],
        ["oldest", "longest wait", values.oldest],
        ["objective", "objective", `${unit(target)} of each queue's own`],
      ];
    }
    return [
      ["pickup-line", `${percentile} started within`, values.pickup],
      ["median", "half within", unit(wait?.[names.median])],
      ["oldest", "longest wait", values.oldest],
      ["objective", "objective", `${percentile} within ${unit(target)}`],
    ];
  }
}

function legend(parent, entries) {
  if (parent.childElementCount !== entries.length) {
    parent.replaceChildren(
      ...entries.map(([kind]) => el("span", { class: "entry" }, el("i", { class: `swatch ${kind}`, "aria-hidden": "true" }), el("span"), el("b"))),
    );
  }
  entries.forEach(([, label, value], index) => {
    const [, name, number] = parent.children[index].children;
    say(name, label);
    say(number, value);
  });
}

/** The newest of each value. Depths may be newer than the waits, which the pipeline measures bucket by bucket. */
function latest(points, until_s, { pickup, median }) {
  const newest = (has) => points.findLast((point) => has(point) && until_s - point.at_s <= 2 * GAP_S);
  const depth = newest((point) => point.waiting_jobs !== null);
  const wait = newest((point) => point[pickup] !== null);
  return { ...depth, [pickup]: wait?.[pickup], [median]: wait?.[median] };
}

function nearest(points, at_s) {
  let best = null;
  for (const point of points) {
    if (Math.abs(point.at_s - at_s) <= 5 && (!best || Math.abs(point.at_s - at_s) < Math.abs(best.at_s - at_s))) best = point;
  }
  return best;
}

/** Runs of points that have a value and no gap between them. */
function runs(points, name) {
  const found = [];
  let last_s = null;
  for (const point of points) {
    if (point[name] === null || point[name] === undefined) continue;
    if (last_s === null || point.at_s - last_s > GAP_S) found.push([]);
    found.at(-1).push(point);
    last_s = point.at_s;
  }
  return found;
}

const to = (x, y) => `${x.toFixed(1)} ${y.toFixed(1)}`;

function line(points, name, x, y) {
  return runs(points, name)
    .map((run) => `M${run.map((point) => to(x(point.at_s), y(point[name]))).join("L")}`)
    .join("");
}

function area(points, name, x, y) {
  return runs(points, name)
    .map((run) => `M${to(x(run[0].at_s), y(0))}L${run.map((point) => to(x(point.at_s), y(point[name]))).join("L")}L${to(x(run.at(-1).at_s), y(0))}Z`)
    .join("");
}

/** Points that stand alone, where a line would show nothing. */
function dots(points, name, x, y) {
  return runs(points, name)
    .filter((run) => run.length === 1)
    .map(([point]) => svg("circle", { class: "alone", cx: x(point.at_s), cy: y(point[name]), r: 2 }));
}

/** A value that holds until the next one. */
function steps(points, name, x, y, until_s, isClosed = false) {
  const held = points.filter((point) => point[name] !== null && point[name] !== undefined);
  if (!held.length) return "";
  let path = isClosed ? `M${to(x(held[0].at_s), y(0))}L` : "M";
  path += to(x(held[0].at_s), y(held[0][name]));
  held.forEach((point, index) => {
    const next_s = held[index + 1]?.at_s ?? until_s;
    path += `V${y(point[name]).toFixed(1)}H${x(next_s).toFixed(1)}`;
  });
  return isClosed ? `${path}V${y(0).toFixed(1)}Z` : path;
}

/** Steps of a clock: of seconds and minutes 1, 2, 5, 10, 15, 30, then hours. */
const CLOCK_S = [1, 2, 5, 10, 15, 30].flatMap((step) => [step, step * 60]).concat([3600, 7200, 18_000, 36_000, 86_400]).sort((one, other) => one - other);

/** Zero and a few round values up to about `top`. */
function niceTicks(top, wanted, { isWhole, isTime }) {
  const rough = top / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough);
  if (isTime && rough > 0.5) step = CLOCK_S.find((each) => each >= rough) ?? step;
  if (isWhole) step = Math.max(1, Math.round(step));
  const ticks = [];
  for (let value = 0; value <= top + step * 0.001; value += step) ticks.push(value);
  return ticks;
}

function minutes(from_s, until_s, width) {
  const step_s = width < 420 ? 300 : 120;
  const ticks = [];
  for (let at_s = Math.ceil(from_s / step_s) * step_s; at_s <= until_s; at_s += step_s) {
    if (at_s - from_s > 15 && until_s - at_s > 15) ticks.push(at_s);
  }
  return ticks;
}

function horizontalPadding(element) {
  const style = getComputedStyle(element);
  return parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
}
