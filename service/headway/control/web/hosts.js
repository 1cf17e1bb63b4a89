// The hosts: what they have, what their workers take of it, and whether they are heard of.

import { el, keep, mark, part, say } from "./dom.js";
import { ago, bytes, counted, decimal } from "./format.js";

/** Show the hosts. */
export function showHosts(list, overview, now_s) {
  keep(list, overview.hosts, (host) => host.host_id, makeHost, (element, host) => showHost(element, host, now_s));
}

function makeHost() {
  const meter = (name, label) =>
    el("div", { class: "meter" }, el("span", { class: "label" }, label), el("span", { class: "bar", "aria-hidden": "true" }, el("i", { "data-part": `${name}-bar` })), el("span", { class: "figures", "data-part": name }));
  return el(
    "li",
    {},
    el("p", { class: "line" }, el("b", { "data-part": "name" }), el("span", { class: "badge", "data-part": "badge" }), el("span", { class: "when", "data-part": "when" })),
    meter("cpu", "CPU"),
    meter("memory", "Memory"),
    el("p", { class: "sub", "data-part": "workers" }),
  );
}

function showHost(element, host, now_s) {
  say(part(element, "name"), host.name);
  const badge = part(element, "badge");
  say(badge, host.is_known ? "reporting" : "silent");
  mark(badge, "data-state", host.is_known ? "on_time" : "stale");
  mark(badge, "title", host.is_known ? "Its agent reports." : "Its agent has gone silent: what it runs is not known, and may still run.");
  say(part(element, "when"), host.reported_at_s === null ? "never heard of" : `heard ${ago(now_s - host.reported_at_s)}`);
  fill(element, "cpu", host.used.cpu_cores, host.capacity.cpu_cores, (value) => decimal(value), "cores");
  fill(element, "memory", host.used.memory_bytes, host.capacity.memory_bytes, bytes, "");
  say(part(element, "workers"), workers(host));
  mark(element, "data-unknown", !host.is_known);
}

function fill(element, name, used, capacity, unit, noun) {
  const bar = part(element, `${name}-bar`);
  bar.style.width = `${Math.min(100, capacity > 0 ? (100 * used) / capacity : 0)}%`;
  mark(bar, "data-full", capacity > 0 && used / capacity > 0.9);
  say(part(element, name), `${unit(used)} of ${unit(capacity)} ${noun}`.trim());
}

function workers(host) {
  const states = {};
  for (const worker of host.workers) states[worker.state] = (states[worker.state] ?? 0) + 1;
  const told = Object.entries(states).map(([state, number]) => `${number} ${state.replaceAll("_", " ")}`).join(", ");
  if (host.is_known) return host.workers.length ? `${counted(host.workers.length, "worker")}: ${told}` : "no workers";
  return told ? `workers unknown; ${told} when last heard of` : "workers unknown";
}
