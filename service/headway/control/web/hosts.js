// The hosts: what they have, what their workers take of it, whether they report and what people said of them.

import { el, keep, mark, part, say } from "./dom.js";
import { byName, FEW, Finder } from "./find.js";
import { ago, bytes, clock, counted, decimal, duration } from "./format.js";

const STATES = { draining: "finishing", backing_off: "failing to start" };

/** The hosts inside `section`; `changed()` shows them anew. */
export class HostList {
  #list;
  #none;
  #finder;

  constructor(section, { changed }) {
    this.#list = part(section, "hosts");
    this.#none = part(section, "none");
    const toTop = () => {
      this.#list.scrollTop = 0;
      changed();
    };
    this.#finder = new Finder({ place: part(section, "find"), rows: this.#list, parameter: "hosts", changed: toTop });
  }

  /** Show the overview's hosts. */
  show({ hosts }, now_s) {
    this.#finder.offer(hosts.length, tally(hosts));
    const found = this.#finder.found(hosts, (host) => [host.name]);
    const ordered = this.#finder.ordered(found, (host) => host.host_id, compared);
    keep(this.#list, ordered, (host) => host.host_id, makeHost, (element, host) => showHost(element, host, now_s));
    this.#none.hidden = !hosts.length || found.length > 0;
    if (!this.#none.hidden) say(this.#none, `No host has “${this.#finder.wanted}” in its name.`);
    mark(this.#list, "tabindex", ordered.length > FEW && "0"); // what scrolls has to be reached by keys
  }
}

const isFailing = (host) => host.failing_templates.length > 0;
const rank = (host) => (host.is_known ? Number(isFailing(host)) : 2);
const compared = (one, other) => rank(other) - rank(one) || byName(one.name, other.name);

function tally(hosts) {
  const failing = hosts.filter((host) => rank(host) === 1).length;
  return [`${hosts.filter((host) => !host.is_known).length} of ${hosts.length} unreachable`, failing && `${failing} failing`].filter(Boolean).join(" · ");
}

/** Show which hosts are missing. */
export function showWanted(list, overview, now_s) {
  keep(list, overview.hosts_wanted, (wanted) => wanted.templates.join(" "), () => el("li", {}, el("b", { "data-part": "what" }), el("span", { "data-part": "why" })), (element, wanted) => {
    say(part(element, "what"), wanted.hosts === null ? "Hosts are missing" : `${counted(wanted.hosts, "host")} missing`);
    say(part(element, "why"), `for ${duration(Math.max(0, now_s - wanted.since_s))}: ${wanted.why}`);
  });
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
    el("p", { class: "sub killed", "data-part": "killed" }),
    el("p", { class: "sub", "data-part": "templates" }),
    el("p", { class: "sub", "data-part": "more" }),
  );
}

function showHost(element, host, now_s) {
  say(part(element, "name"), host.name);
  const badge = part(element, "badge");
  const [word, colour, title] = condition(host);
  say(badge, word);
  mark(badge, "data-state", colour);
  mark(badge, "title", title);
  say(part(element, "when"), host.reported_at_s === null ? "never reported" : `reported ${ago(now_s - host.reported_at_s)}`);
  fill(element, "cpu", host.used.cpu_cores, host.capacity.cpu_cores, (value) => decimal(value), "cores");
  fill(element, "memory", host.used.memory_bytes, host.capacity.memory_bytes, bytes, "");
  say(part(element, "workers"), workers(host));
  say(part(element, "killed"), killed(host));
  say(part(element, "templates"), templates(host));
  say(part(element, "more"), more(host));
  mark(element, "data-unknown", !host.is_known);
}

const COLOURS = { unreachable: "stale", connection_lost: "stale", draining: "scaling", drained: "scaling", reporting: "on_time" };

/** A word, a colour and a sentence for the worst that is true of a host. */
export const condition = ({ status }) => [status.word, COLOURS[status.name] ?? "at_risk", status.meaning];

/** Why a host gets nothing new, by whose word and until when. */
export function cordon(host) {
  const until = host.cordoned_until_s === null ? "" : ` until ${clock(host.cordoned_until_s, false)}`;
  return `${host.state} by ${host.cordoned_by}${until}: ${host.cordon_reason}`;
}

/** The busy workers that the agent has killed, by pool. */
function killed(host) {
  const killed = Object.entries(host.forced_workers).sort().map(([pool, workers]) => `${workers} of ${pool}`).join(", ");
  return killed && `Killed while busy, since it enrolled: ${killed}`;
}

/** Workers by template. */
function templates(host) {
  const counts = {};
  for (const worker of host.workers) counts[worker.template] = (counts[worker.template] ?? 0) + 1;
  return Object.entries(counts).sort().map(([name, number]) => `${number} × ${name}`).join(", ");
}

/** Its zone, pressure and GPUs, and why it gets nothing new. */
function more(host) {
  const { cpu_pressure, memory_pressure, gpus } = host.capacity;
  const parts = [
    host.labels.zone && `zone ${host.labels.zone}`,
    gpus && `${host.used.gpus} of ${counted(gpus, "GPU")}`,
    cpu_pressure !== null && `CPU pressure ${Math.round(100 * cpu_pressure)} %`,
    memory_pressure !== null && `memory pressure ${Math.round(100 * memory_pressure)} %`,
    ...host.problems,
    host.cordon_reason && cordon(host),
  ];
  return parts.filter(Boolean).join(" · ");
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
  const counts = Object.entries(states).map(([state, number]) => `${number} ${STATES[state] ?? state.replaceAll("_", " ")}`).join(", ");
  if (host.is_known) return host.workers.length ? `${counted(host.workers.length, "worker")}: ${counts}` : "no workers";
  return counts ? `workers unknown; ${counts} at the last report` : "workers unknown";
}
