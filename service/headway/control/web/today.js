// Today's attainment and error budget: what the SLO report says of this day of UTC, of all pools together and of the worst.

import { link } from "./address.js";
import { el } from "./dom.js";
import { clock, count, decimal } from "./format.js";

const DAY_S = 86_400;
const EVERY_MS = 60_000; // as often as jobs are counted

/** A share as people read it: 99.996 % is not 100 %. */
export const share = (value) => `${(Math.floor(value * 10_000) / 100).toFixed(2).replace(/\.?0+$/, "")} %`;

/** What is left of an error budget. */
export const budget = (left) => (left < 0 ? `spent ${decimal(1 - left)} times` : `${Math.floor(left * 100)} %`);

/** The colour of what is left of an error budget. */
export function budgetState(left, attainment) {
  if (attainment === null || left === null) return null;
  if (left < 0) return "breaching";
  return left < 0.25 ? "at_risk" : "on_time";
}

/** The figures of today inside `place`. */
export class Today {
  #place;
  #read;
  #readAt = -Infinity;

  constructor(place, read) {
    this.#place = place;
    this.#read = read;
  }

  /** Ask anew where what is shown is old. */
  show(now_s, { isLive }) {
    if (!isLive || document.hidden || performance.now() - this.#readAt < EVERY_MS) return;
    this.#readAt = performance.now();
    const from_s = Math.floor(now_s / DAY_S) * DAY_S;
    this.#read(`v1/slo?${new URLSearchParams({ from_s, until_s: Math.max(from_s + 1, Math.floor(now_s)), step: "day" })}`).then(
      (report) => this.#draw(report),
      () => {}, // the headline says that the control plane does not answer
    );
  }

  #draw({ pools, counted_until_s }) {
    const measured = pools.filter((each) => each.attainment !== null);
    const jobs = sum(measured, "jobs");
    const late = sum(measured, "late_jobs");
    const worst = measured.filter((each) => each.budget_left !== null).sort((one, other) => one.budget_left - other.budget_left)[0];
    const figures = jobs
      ? [
          figure("Attainment today", share(1 - late / jobs), null, `${count(late)} of ${count(jobs)} jobs started later than their objective allows, since 00:00 UTC`),
          worst && figure("Least error budget left", budget(worst.budget_left), budgetState(worst.budget_left, worst.attainment), "Of the late jobs that the objective allows today", worst.pool),
        ]
      : [figure("Attainment today", "no jobs measured", null, "No job has started since 00:00 UTC, as far as measured")];
    this.#place.replaceChildren(
      ...figures.filter(Boolean),
      el("div", { title: "Jobs that started later are counted in a minute or two" }, el("dt", {}, "Counted until"), el("dd", {}, counted_until_s ? clock(counted_until_s, false) : "not yet", " ", el("a", { href: link("/slo") }, "SLO report"))),
    );
  }
}

const sum = (rows, name) => rows.reduce((total, each) => total + (each[name] ?? 0), 0);

function figure(label, text, state, title, pool = null) {
  const value = el("b", { class: state ? "badge" : null, "data-state": state }, text);
  return el("div", { title }, el("dt", {}, label), el("dd", {}, value, pool ? " " : null, pool ? el("a", { href: link("/pools", pool) }, pool) : null));
}
