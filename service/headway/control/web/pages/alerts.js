// What the leader has found wrong: what goes on, what has ended, and what is silenced until when and why.

import { ask, reasonField, spanField } from "../actions.js";
import { parameter } from "../address.js";
import { el, say } from "../dom.js";
import { filterForm } from "../filters.js";
import { ago, clock, counted, duration } from "../format.js";
import { badge, nameOf, subject } from "../incidents.js";
import { card, heading, Loading, nothing, number } from "../loading.js";
import { NOBODY_KNOWN, send, whyReadOnly } from "../session.js";

const EVERY_MS = 5_000;
const SHOWN = 50;
const COLUMNS = ["Alert", "Of", "Since", "What is wrong, and what to do", "Silenced"];
const ENDED = ["Alert", "Of", "Since", number("Lasted"), "What was wrong"];
const SILENCES = ["Silence", "Alerts with", "Ends", "Why", "By", "Change"];

export const page = {
  render(root, { read, store, announce }) {
    const head = heading("Alerts", "");
    const firing = el("div", {});
    const ended = el("div", {});
    const silences = el("div", {});
    let why = NOBODY_KNOWN;
    let shown = null;
    const now_s = () => store.moment_s ?? Date.now() / 1000;
    const done = () => loading.again();
    const button = (label, action) => {
      const element = el("button", { type: "button", class: "give", disabled: why !== null, title: why }, label);
      element.addEventListener("click", () => ask(action, { announce, done }));
      return element;
    };
    const show = ([open, past, quiet]) => {
      const key = JSON.stringify([open, past, quiet, why, Math.floor(now_s() / 60)]);
      if (key === shown) return; // the focus stays where it is
      shown = key;
      const pages = open.alerts.filter((each) => each.severity === "page" && each.silenced_until_s === null).length;
      say(head.lastChild, open.alerts.length ? `${counted(open.alerts.length, "alert")} ${open.alerts.length === 1 ? "goes" : "go"} on${open.next ? " or more" : ""}, ${pages} to be paged for` : "No alert goes on, as far as the leader has evaluated.");
      firing.replaceChildren(open.alerts.length ? card("Alerts that go on", COLUMNS, open.alerts.map((each) => goesOn(each, now_s(), button))) : nothing("Nothing is wrong.", "What the leader finds wrong is listed here, from its beginning to its end."));
      const over = past.alerts.filter((each) => each.until_s !== null);
      ended.replaceChildren(over.length ? card("Alerts that have ended", ENDED, over.map((each) => hasEnded(each))) : nothing("No alert has ended yet.", "Ended ones stay here as long as history is kept."));
      const live = quiet.silences.filter((each) => each.until_s > now_s());
      silences.replaceChildren(live.length ? card("Silences", SILENCES, live.map((each) => silence(each, now_s(), button))) : el("p", { class: "sub" }, "Nothing is silenced."));
    };
    const query = (state) => {
      const asked = new URLSearchParams({ state, limit: SHOWN });
      if (parameter("pool")) asked.set("pool", parameter("pool"));
      return read(`v1/alerts?${asked}`);
    };
    root.append(head, filterForm("Filter alerts", [{ name: "pool", label: "Pool", type: "search" }], () => loading.again()));
    const note = el("p", { class: "sub action-note" });
    const shownOnce = el("div", {}, firing, el("h2", {}, "Silences"), silences, el("h2", {}, "Ended"), ended);
    const loading = new Loading(root, { read: () => Promise.all([query("firing"), query("all"), read("v1/silences")]), show, every_ms: EVERY_MS, hides: [shownOnce] });
    root.append(note, shownOnce);
    whyReadOnly().then((found) => {
      why = found;
      say(note, why);
      loading.again();
    });
    return { close: () => loading.close() };
  },
};

const moment = (at_s) => el("time", { datetime: new Date(at_s * 1000).toISOString() }, `${new Date(at_s * 1000).toLocaleDateString("en-GB")} ${clock(at_s)}`);

function goesOn(alert, now_s, button) {
  const labels = Object.fromEntries(["rule", "pool", "host", "kind"].filter((name) => alert[name] !== null).map((name) => [name, alert[name]]));
  const silencing = {
    label: "Silence",
    title: `Silence ${nameOf(alert)}${alert.pool ?? alert.host ? ` of ${alert.pool ?? alert.host}` : ""}`,
    text: "Nobody is notified of it until then. It stays listed, opens and ends as before.",
    fields: [reasonField, spanField()],
    confirm: "Silence",
    act: ({ reason, for_s }) => send("PUT", `v1/silences/${encodeURIComponent(Object.values(labels).join("-"))}`, { matchers: labels, reason, for_s: Number(for_s) }),
  };
  return [
    badge(alert),
    subject(alert),
    el("span", { title: new Date(alert.since_s * 1000).toISOString() }, ago(Math.max(0, now_s - alert.since_s))),
    el("span", {}, alert.summary, el("span", { class: "sub" }, ` ${alert.action}`)),
    alert.silenced_until_s === null ? button("Silence…", silencing) : `until ${clock(alert.silenced_until_s, false)}`,
  ];
}

function hasEnded(alert) {
  return [badge(alert), subject(alert), moment(alert.since_s), duration(alert.until_s - alert.since_s), alert.summary];
}

function silence(each, now_s, button) {
  const ending = { label: "End", title: `End the silence ${each.name}`, text: "Alerts with these labels notify again.", confirm: "End it", act: () => send("DELETE", `v1/silences/${encodeURIComponent(each.name)}`) };
  const labels = Object.entries(each.matchers).map(([name, value]) => `${name}=${value}`).join(", ");
  return [each.name, labels, `in ${duration(each.until_s - now_s)}`, each.reason, each.created_by, button("End…", ending)];
}
