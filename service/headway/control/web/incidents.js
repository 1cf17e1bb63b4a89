// Alerts in lists: what each is called, where it leads, and the few that go on where somebody looks first.

import { link } from "./address.js";
import { el, say } from "./dom.js";
import { ago, count } from "./format.js";

const SHOWN = 5;
const EVERY_MS = 10_000; // they begin and end by evaluations, which come every few seconds

/** What people call an alert. */
export const nameOf = ({ rule, kind }) => (kind ? `${rule.replaceAll("_", " ")}: ${kind.replaceAll("_", " ")}` : rule.replaceAll("_", " "));

/** Its name, coloured by what it asks for. */
export const badge = (alert) => el("span", { class: "badge", "data-state": alert.until_s !== null ? "idle" : alert.severity === "page" ? "breaching" : "at_risk" }, nameOf(alert));

/** The page of what it is about. */
export function subject({ pool, host }) {
  if (pool) return el("a", { href: link("/pools", pool) }, pool);
  if (host) return el("a", { href: link("/hosts", host) }, host);
  return el("a", { href: link("/system") }, "installation");
}

/** The alerts that go on, first those to be paged for; `place` is hidden where there is none, or nobody knows. */
export class IncidentList {
  #place;
  #list = el("ul", { class: "incidents" });
  #more = el("a", { href: link("/alerts") });
  #read;
  #answer = null;
  #readAt = -Infinity;

  constructor(place, read) {
    this.#place = place;
    this.#read = read;
    place.append(this.#list, el("p", { class: "sub" }, this.#more));
  }

  /** Show what is known, and ask anew where that is old. */
  show(now_s, { isLive }) {
    this.#draw(now_s);
    if (!isLive || document.hidden || performance.now() - this.#readAt < EVERY_MS) return;
    this.#readAt = performance.now();
    this.#read("v1/alerts?limit=50").then(
      (answer) => {
        this.#answer = answer;
        this.#draw(now_s);
      },
      () => {}, // the headline says that the control plane does not answer, and asks for a token
    );
  }

  #draw(now_s) {
    const alerts = (this.#answer?.alerts ?? []).filter((each) => each.silenced_until_s === null);
    this.#place.hidden = alerts.length === 0;
    const first = [...alerts].sort((one, other) => (one.severity === "page" ? 0 : 1) - (other.severity === "page" ? 0 : 1)).slice(0, SHOWN);
    const key = JSON.stringify([first, Math.floor(now_s / 10)]);
    if (this.#list.dataset.key === key) return;
    this.#list.dataset.key = key;
    const focused = this.#list.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    this.#list.replaceChildren(
      ...first.map((alert) => el("li", {}, badge(alert), subject(alert), el("span", {}, alert.summary), el("span", { class: "sub" }, `for ${ago(Math.max(0, now_s - alert.since_s)).replace(" ago", "")}`))),
    );
    if (focused) this.#list.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    say(this.#more, alerts.length > SHOWN ? `All ${count(alerts.length)}${this.#answer.next ? " and more" : ""} alerts` : "Alerts, with those that have ended and silences");
  }
}
