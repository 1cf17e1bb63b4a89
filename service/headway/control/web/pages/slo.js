// How pools kept their objectives, day by day or hour by hour, and what their workers took. What is not known is a dash.

import { link, parameter, ROOT } from "../address.js";
import { el, say } from "../dom.js";
import { filterForm } from "../filters.js";
import { clock, count, counted, decimal, known, slo } from "../format.js";
import { card, heading, Loading, nothing, number } from "../loading.js";
import { budget, budgetState, share } from "../today.js";

const DAY_S = 86_400;
const RANGES = [["7d", "7 days", 7], ["1d", "1 day", 1], ["31d", "31 days", 31], ["90d", "90 days", 90]];
const STEPS = [["day", "by day"], ["hour", "by hour"]];
const HOURS_DAYS_MAX = 7; // 168 bars are as many as one line shows
const FILTERS = [
  { name: "pool", label: "Pool", type: "search" },
  { name: "range", label: "Range", options: RANGES },
  { name: "step", label: `Periods (hours for ${HOURS_DAYS_MAX} days at most)`, options: STEPS },
];
const EVERY_MS = 60_000;
const COLUMNS = ["Pool", "Objective", ...["Attainment", "Error budget left", "Jobs", "Late", "Worker-hours", "Sized for the peak", "Cost"].map(number)];
const DETAILS = ["From", ...["Attainment", "Burn rate", "Jobs", "Late", "Worker-hours", "Cost"].map(number)];

const NOT_KNOWN = "–";
const shown = (value, text) => (known(value) ? text(value) : NOT_KNOWN);

export const page = {
  render(root, { read, store }) {
    const head = heading("SLO report", "");
    const place = el("div", {});
    const csv = el("a", { class: "give", download: "slo.csv", href: "" }, "Download as CSV");
    const asked = () => {
      const now_s = store.moment_s ?? Date.now() / 1000;
      const days = daysOf();
      const query = new URLSearchParams({ from_s: Math.floor(now_s - days * DAY_S), until_s: Math.floor(now_s), step: stepOf(days) });
      if (parameter("pool")) query.set("pool", parameter("pool"));
      return query;
    };
    root.append(head, filterForm("Filter the report", FILTERS, () => loading.again()));
    const loading = new Loading(root, {
      read: () => {
        const query = asked();
        csv.href = `${ROOT.pathname}v1/slo/export?${query}`;
        return read(`v1/slo?${query}`);
      },
      show: (report) => show(report, head, place),
      every_ms: EVERY_MS,
      hides: [csv],
    });
    root.append(place, el("p", {}, csv));
    return { close: () => loading.close() };
  },
};

const daysOf = () => (RANGES.find(([name]) => name === parameter("range")) ?? RANGES[0])[2];
const stepOf = (days) => (parameter("step") === "hour" && days <= HOURS_DAYS_MAX ? "hour" : "day");

function show(report, head, place) {
  const open = new Set([...place.querySelectorAll("details[open]")].map((each) => each.dataset.pool));
  const measured = report.pools.filter((each) => each.attainment !== null);
  const kept = measured.filter((each) => each.budget_left === null ? each.late_jobs === 0 : each.budget_left >= 0);
  say(head.lastChild, report.pools.length ? `${kept.length} of ${counted(measured.length, "pool")} with jobs met the objective, in days of UTC${report.counted_until_s ? `; jobs that started by ${clock(report.counted_until_s, false)} are counted` : ""}` : "");
  if (!report.pools.length) return place.replaceChildren(nothing("No pool has an objective yet.", "Write one into profiles.yaml and run headway apply."));
  place.replaceChildren(
    card("Pools over the whole range", COLUMNS, report.pools.map(row)),
    el("h2", {}, report.step_s === DAY_S ? "Day by day" : "Hour by hour"),
    ...report.pools.map((each) => periodsOf(each, report, open.has(each.pool))),
  );
}

function row(each) {
  return [
    el("a", { href: link("/pools", each.pool) }, each.pool),
    slo(each.objective),
    shown(each.attainment, share),
    el("span", { class: "badge", "data-state": budgetState(each.budget_left, each.attainment) }, shown(each.budget_left, budget)),
    shown(each.jobs, count),
    shown(each.late_jobs, count),
    shown(each.worker_hours, decimal),
    shown(each.static_worker_hours, decimal),
    shown(each.cost, decimal),
  ];
}

/** A bar for each period, as high as its burn rate, and the same as a table. */
function periodsOf(each, report, isOpen) {
  const word = report.step_s === DAY_S ? "day" : "hour";
  const bad = each.periods.filter((period) => period.burn_rate > 1).length;
  const silent = each.periods.filter((period) => period.attainment === null).length;
  const text = `${counted(each.periods.length, word)}: ${bad} over the error budget, ${silent} without measured jobs`;
  const bars = el("span", { class: "bars", role: "img", "aria-label": text }, ...each.periods.map((period) => bar(period, report.step_s)));
  const details = el(
    "details",
    { class: "periods", "data-pool": each.pool, open: isOpen },
    el("summary", {}, el("b", {}, each.pool), bars, el("span", { class: "sub" }, text)),
  );
  const fill = () => {
    if (!details.open || details.querySelector("table")) return;
    details.append(card(`${each.pool} by ${word}`, DETAILS, [...each.periods].reverse().map((period) => cells(period, report.step_s))));
  };
  details.addEventListener("toggle", fill);
  fill();
  return details;
}

function bar(period, step_s) {
  const state = period.attainment === null ? "unknown" : period.burn_rate > 1 || (period.burn_rate === null && period.late_jobs) ? "over" : "within";
  return el("i", { "data-state": state, "data-height": period.burn_rate === null ? 0 : Math.min(4, Math.ceil(period.burn_rate * 2)), title: `${moment(period.from_s, step_s)}: ${period.attainment === null ? "no jobs measured" : `${share(period.attainment)} in time, ${counted(period.late_jobs, "late job")}`}` });
}

function cells(period, step_s) {
  return [
    el("time", { datetime: new Date(period.from_s * 1000).toISOString() }, moment(period.from_s, step_s)),
    shown(period.attainment, share),
    shown(period.burn_rate, (rate) => `${decimal(rate)} ×`),
    shown(period.jobs, count),
    shown(period.late_jobs, count),
    shown(period.worker_hours, decimal),
    shown(period.cost, decimal),
  ];
}

const moment = (at_s, step_s) => new Date(at_s * 1000).toISOString().slice(0, step_s === DAY_S ? 10 : 16).replace("T", " ");
