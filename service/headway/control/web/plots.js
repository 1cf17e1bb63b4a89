// Panels drawn by uPlot over one time axis, with one cursor, and marks where something was decided.

import { el, mark } from "./dom.js";
import { clock, known } from "./format.js";

const AXIS_PX = 58;
const MARK_PX = 12; // closer marks would lie on each other
const DAY_S = 86400;

export class Plots {
  #uPlot;
  #place;
  #on;
  #plots = [];
  #series = null;
  #panels = [];
  #decisions = [];
  #observer;
  #scheme = matchMedia("(prefers-color-scheme: dark)");
  #repaint = () => this.draw(this.#series, this.#panels, this.#decisions);

  /** `on` has read(index, entries), and where a stretch can be chosen zoomed(from_s, until_s), reset() and opened(decision). */
  constructor(uPlot, place, on) {
    this.#uPlot = uPlot;
    this.#place = place;
    this.#on = on;
    this.#observer = new ResizeObserver(() => {
      for (const { plot, drawing } of this.#plots) drawing.clientWidth && plot.setSize({ width: drawing.clientWidth, height: plot.height });
      this.#mark();
    });
    this.#observer.observe(place);
    this.#scheme.addEventListener("change", this.#repaint);
  }

  /** Show `panels` of a series, and the decisions in it, newest first. */
  draw(series, panels, decisions = []) {
    if (!series) return;
    const shape = JSON.stringify([this.#scheme.matches, ...panels.map(({ name, title, lines }) => [name, title, ...lines.map(({ label }) => label)])]);
    const isSame = this.#shape === shape;
    this.#shape = shape;
    [this.#series, this.#panels, this.#decisions] = [series, panels, decisions];
    if (isSame) {
      panels.forEach((panel, index) => {
        this.#plots[index].panel = panel;
        this.#plots[index].plot.setData(dataOf(panel, series));
      });
    } else {
      this.#clear();
      this.#plots = panels.map((panel, index) => this.#made(panel, index === panels.length - 1));
    }
    this.#read(this.#plots[0]?.plot.cursor.idx ?? null);
    this.#mark();
  }

  /** Show the values of a moment on the axis; null: the newest known. */
  point(at_s) {
    for (const { plot } of this.#plots) plot.setCursor({ left: at_s === null ? -10 : plot.valToPos(at_s, "x"), top: at_s === null ? -10 : 0 }, true, false);
  }

  close() {
    this.#observer.disconnect();
    this.#scheme.removeEventListener("change", this.#repaint);
    this.#clear();
  }

  #shape = null;

  #clear() {
    for (const { plot } of this.#plots) plot.destroy();
    this.#plots = [];
    this.#place.replaceChildren();
  }

  #made(panel, isLast) {
    const legend = el("p", { class: "legend" });
    const drawing = el("div", { class: "drawing", "aria-hidden": "true" });
    this.#place.append(el("section", { class: "plot-panel", "data-panel": panel.name }, panel.title && el("h2", {}, panel.title), legend, drawing));
    const style = getComputedStyle(document.body);
    const colour = (name) => style.getPropertyValue(name).trim();
    const paths = panel.isStep ? this.#uPlot.paths.stepped({ align: 1 }) : undefined;
    const axis = { stroke: colour("--soft"), font: "11px system-ui, sans-serif", grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    const options = {
      width: Math.max(200, drawing.clientWidth),
      height: panel.height + (isLast ? 26 : 0),
      legend: { show: false },
      cursor: { sync: { key: "headway" }, drag: { x: Boolean(this.#on.zoomed), y: false, setScale: false }, y: false, points: { size: 6 } },
      scales: { x: { time: true }, y: { range: (_, __, most) => [0, Math.max(panel.least ?? 0, most) * 1.08 || 1] } },
      axes: [
        { ...axis, show: isLast, grid: { show: false }, size: 26, space: 90, values: (_, ticks) => ticks.map((tick, at) => tickOf(tick, ticks[at + 1] - tick || tick - ticks[at - 1])) },
        { ...axis, size: AXIS_PX, incrs: panel.steps, values: (_, ticks) => ticks.map((tick) => (panel.ticks ?? panel.unit)(tick)), space: 32 },
      ],
      padding: [6, 8, isLast ? 0 : 4, 0],
      series: [
        {},
        ...panel.lines.map((line) => ({
          label: line.label,
          stroke: colour(line.colour),
          width: line.width ?? 1.5,
          dash: line.dash,
          fill: line.isFilled ? colour("--accent-soft") : undefined,
          points: { show: false, filter: alone, size: 5, width: 1, stroke: colour(line.colour), fill: colour(line.colour) },
          spanGaps: false,
          paths,
        })),
      ],
      bands: panel.lines.flatMap(({ above }, at) => {
        const below = panel.lines.findIndex(({ label }) => label === above);
        return below < 0 ? [] : [{ series: [at + 1, below + 1], fill: colour("--accent-soft") }];
      }),
      hooks: {
        drawClear: [(plot) => shadeOver(plot, panel, colour("--bad"))],
        setCursor: [(plot) => this.#read(plot.cursor.idx ?? null)],
        setSelect: [
          (plot) => {
            if (plot.select.width < 8) return;
            const [from_s, until_s] = [plot.select.left, plot.select.left + plot.select.width].map((left) => plot.posToVal(left, "x"));
            plot.setSelect({ width: 0, height: 0 }, false);
            this.#on.zoomed(from_s, until_s);
          },
        ],
      },
    };
    const made = { panel, legend, drawing, plot: new this.#uPlot(options, dataOf(panel, this.#series), drawing) };
    if (this.#on.reset) made.plot.over.addEventListener("dblclick", () => this.#on.reset());
    made.swatches = panel.lines.map((line) => {
      const swatch = el("i", { class: "swatch", "aria-hidden": "true" });
      swatch.style.background = patternOf(line);
      return swatch;
    });
    return made;
  }

  /** The values at a point of the axis; null: the newest known. */
  #read(place) {
    const { columns, until_s, fresh_s = Infinity } = this.#series;
    const index = columns.at_s[place] === undefined ? null : place;
    const read = [];
    for (const { panel, legend, swatches } of this.#plots) {
      const entries = panel.lines.map((line, at) => {
        const values = (line.known ?? line.values)(this.#series);
        const newest = values.findLastIndex((each, cell) => known(each) && until_s - columns.at_s[cell] <= fresh_s);
        return [swatches[at], line.label, line.words ?? panel.unit(line.values(this.#series)[index ?? newest])];
      });
      read.push(...entries.map(([, label, value]) => [label, value]));
      legend.replaceChildren(...entries.map(([swatch, label, value]) => el("span", { class: "entry" }, swatch, label, el("b", {}, value))));
    }
    this.#on.read(index, read);
  }

  /** Marks over the workers: for a pointer; the list below has the same for keys. */
  #mark() {
    const workers = this.#plots.find(({ panel }) => panel.name === "workers") ?? this.#plots.at(-1);
    if (!workers) return;
    const { plot } = workers;
    for (const old of plot.over.querySelectorAll(".decided")) old.remove();
    let last = Infinity;
    for (const each of this.#decisions) {
      const left = plot.valToPos(each.decided_at_s, "x");
      if (!(left >= 0 && left <= plot.over.clientWidth) || last - left < MARK_PX) continue;
      last = left;
      const words = `${each.previous_workers ?? "undecided"} → ${each.decision.target_workers} at ${clock(each.decided_at_s)}`;
      const button = el("button", { type: "button", class: "decided", tabindex: "-1", title: `${words}: why?` });
      mark(button, "data-direction", each.decision.target_workers >= (each.previous_workers ?? 0) ? "up" : "down");
      button.style.left = `${left}px`;
      button.addEventListener("mousedown", (event) => event.stopPropagation());
      button.addEventListener("click", () => this.#on.opened(each));
      plot.over.append(button);
    }
  }
}

const dataOf = (panel, series) => [series.columns.at_s, ...panel.lines.map((line) => line.values(series))];

/** The points of a line that is drawn through no other: a value between two unknown ones. */
function alone(plot, number) {
  const values = plot.data[number];
  const beside = (at, step) => {
    do at += step;
    while (values[at] === undefined && at in values);
    return values[at];
  };
  return values.flatMap((value, at) => (known(value) && !known(beside(at, -1)) && !known(beside(at, 1)) ? at : []));
}

/** Tint what is above the panel's limit. */
function shadeOver({ ctx, bbox, data, valToPos }, { lines }, colour) {
  const at = lines.findIndex(({ isLimit }) => isLimit);
  if (at < 0) return;
  ctx.save();
  ctx.globalAlpha = 0.05;
  ctx.fillStyle = colour;
  ctx.fillRect(bbox.left, bbox.top, bbox.width, Math.max(0, valToPos(data[at + 1][0], "y", true) - bbox.top));
  ctx.restore();
}

/** A line's colour and dashes, as a background. */
function patternOf({ colour, dash }) {
  if (!dash) return `var(${colour})`;
  const [drawn, left] = dash;
  return `repeating-linear-gradient(90deg, var(${colour}) 0 ${drawn}px, transparent ${drawn}px ${drawn + left}px)`;
}

/** A moment under the axis, where the next is `step_s` later. */
function tickOf(at_s, step_s) {
  if (step_s < DAY_S / 4) return clock(at_s, step_s < 60);
  const day = new Date(at_s * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  return step_s < DAY_S ? `${day} ${clock(at_s, false)}` : day;
}

/** A moment, with its day where the axis is longer than one. */
export function moment(at_s, length_s) {
  const day = new Date(at_s * 1000).toLocaleDateString("en-GB", { weekday: "short", day: "numeric", month: "short" });
  return length_s > DAY_S / 2 ? `${day} ${clock(at_s, false)}` : clock(at_s);
}
