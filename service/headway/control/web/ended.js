// A demo that has ended: its report stands above every page, and below it what was known last.

import { $, el } from "./dom.js";
import { card, facts } from "./loading.js";

export const isEnded = () => !$("ended").hidden;

/** Show the report that the control plane sent last; null takes it away. Whether it was not shown before. */
export function showEnded(report) {
  const place = $("ended");
  const isNews = report !== null && !isEnded();
  place.hidden = report === null;
  if (isNews) place.replaceChildren(...drawn(report));
  return isNews;
}

function drawn({ title, headline, facts: entries, heads, lines, again, page }) {
  const columns = heads.map((head, index) => ({ label: head.replace("-\n", "-").replace("\n", " ") || "Way", isNumber: index > 0 }));
  return [
    el("h2", { id: "ended-title" }, "This demo has ended"),
    el("p", { class: "sub" }, title),
    el("p", { class: "ended-headline" }, headline),
    lines.length > 1 ? card("What it took, beside other ways to size the pools", columns, lines) : null,
    facts(entries),
    el("p", {}, "Start it again: ", el("code", {}, again), ". At the same address, this page follows it by itself."),
    page ? el("p", {}, "How the figures were made, and workers and waits over time: ", el("code", {}, page)) : null,
    el("p", { class: "sub" }, "Below is what was known last."),
  ].filter(Boolean);
}
