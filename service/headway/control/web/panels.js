// What the charts of a pool or queue show: panels over one time axis, each with lines of the series' columns.

import { count, duration, hasOwn, percentile, rate, ratio } from "./format.js";

/** Steps of an axis that counts things: there is none between 0 and 1. */
export const WHOLE = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((each) => each * 10 ** power)).flat();

/** Steps of an axis of seconds: those of a clock. */
export const CLOCK = [0.001, 0.01, 0.1, 1, 2, 5, 10, 15, 30, ...[1, 2, 5, 10, 15, 30].map((each) => each * 60), 3600, 7200, 18_000, 36_000, 86_400];

const perSecond = (name) => ({ columns, step_s }) => columns[name].map((jobs) => (jobs === null ? null : jobs / step_s));
export const column = (name) => ({ columns }) => columns[name] ?? columns.at_s.map(() => null);

/** Waits in seconds, beside the objective that is the same of all. */
function waitsOf(objective) {
  const share = objective ? `${percentile(objective)} % started within` : "started within";
  const isMedian = objective?.percentile === 50;
  const is95 = objective?.percentile === 95;
  return {
    title: "Wait before the start",
    unit: duration,
    lines: [
      { label: share, colour: "--accent", width: 2, values: column("pickup_s") },
      isMedian ? null : { label: "50 %", colour: "--accent", dash: [2, 4], values: column("p50_s") },
      is95 ? null : { label: "95 %", colour: "--edge", values: column("p95_s") },
      objective && { label: "objective", colour: "--bad", dash: [6, 4], values: ({ columns }) => columns.at_s.map(() => objective.target_s) },
    ],
  };
}

/** Of queues with objectives of their own: the part of its objective that the wait in the worst of them takes. */
const RATIOS = {
  title: "Wait before the start, as a part of each queue's objective",
  unit: ratio,
  lines: [
    { label: "longest wait", colour: "--accent", width: 2, values: column("pickup_ratio") },
    { label: "objective", colour: "--bad", dash: [6, 4], values: ({ columns }) => columns.at_s.map(() => 1) },
  ],
};

/**
 * name, title, unit, lines and `steps` of the axis; `isStep` where a value holds until the next. A line without any value is left
 * out; one that is `above` another has a band down to it.
 */
export function panelsOf({ objective, member_objectives: own }) {
  return [
    { name: "wait", height: 190, ...(hasOwn(own) ? RATIOS : waitsOf(objective)) },
    {
      name: "backlog",
      title: "Backlog",
      unit: count,
      height: 110,
      lines: [{ label: "jobs waiting", colour: "--accent", width: 2, isFilled: true, values: column("backlog_jobs") }],
    },
    {
      name: "flow",
      title: "Arrivals and starts",
      unit: rate,
      height: 120,
      lines: [
        { label: "arrive", colour: "--ink", values: perSecond("enqueued") },
        { label: "start", colour: "--accent", width: 2, values: perSecond("started") },
        { label: "forecast", colour: "--edge", dash: [4, 4], values: column("forecast_jobs_per_s") },
        { label: "forecast, 95 % below", colour: "--edge", dash: [1, 4], above: "forecast", values: column("forecast_high_jobs_per_s") },
      ],
    },
    {
      name: "failures",
      title: "Failed jobs",
      unit: count,
      height: 90,
      lines: [
        { label: "failed", colour: "--bad", width: 2, isFilled: true, values: column("failed") },
        { label: "retried", colour: "--edge", values: column("retried") },
      ],
    },
    {
      name: "workers",
      title: "Workers",
      unit: count,
      height: 150,
      isStep: true,
      lines: [
        { label: "running", colour: "--accent", width: 2, isFilled: true, values: column("running_workers") },
        { label: "starting", colour: "--good", values: column("starting_workers") },
        { label: "draining", colour: "--warn", values: column("draining_workers") },
        { label: "desired", colour: "--ink", values: column("target_workers") },
        { label: "ceiling", colour: "--bad", dash: [6, 4], values: column("ceiling_workers") },
      ],
    },
  ].map((panel) => ({ ...panel, steps: panel.unit === count ? WHOLE : undefined, lines: panel.lines.filter(Boolean) }));
}

const LIMITS = ["objective", "ceiling", "forecast", "forecast, 95 % below"];

/** The panels of which something is known. */
export function shownOf(series) {
  const isKnown = (line) => line.values(series).some((value) => value !== null);
  return panelsOf(series)
    .map((panel) => ({ ...panel, lines: panel.lines.filter(isKnown) }))
    .filter((panel) => panel.lines.some((line) => !LIMITS.includes(line.label)));
}

/** Whether anything but the axis is known. */
export function isEmpty({ columns }) {
  const shown = Object.entries(columns).filter(([name]) => name !== "at_s" && name !== "ceiling_workers" && !name.startsWith("forecast"));
  return shown.every(([, values]) => values.every((value) => value === null));
}
