// One host: its condition, capacity and pressure, its workers, and what people may do with it.

import { actionBar, reasonField, spanField } from "../actions.js";
import { link } from "../address.js";
import { el, say } from "../dom.js";
import { ago, bytes, decimal, duration } from "../format.js";
import { condition, cordon } from "../hosts.js";
import { card, facts, heading, nothing, number } from "../loading.js";
import { send } from "../session.js";

const COLUMNS = ["Worker", "Pool", "Template", "State", "At a job", "Evidence", number("Process"), number("Memory"), number("Runs for")];

export const page = {
  render(root, context) {
    const { name } = context.parameters;
    const head = heading(name, context.store.awaited);
    const place = el("div", {});
    const controls = actionBar(actions(name), { announce: context.announce, done: () => {} });
    root.append(head, controls, place);
    let shown = null;
    return {
      show({ overview, moment_s, isLive, awaited }) {
        if (!overview) {
          controls.hidden = true;
          return say(head.lastChild, awaited);
        }
        const host = overview.hosts.find((each) => each.name === name);
        controls.hidden = !host;
        if (!host) {
          say(head.lastChild, "");
          shown = null;
          return place.replaceChildren(nothing("No host has this name.", "It was forgotten, took another name, or has not enrolled."));
        }
        const [word, , sentence] = condition(host);
        say(head.lastChild, `${isLive ? "" : "Last known: "}${word}, ${host.reported_at_s === null ? "never reported" : `reported ${ago(moment_s - host.reported_at_s)}`}. ${sentence}`);
        const key = JSON.stringify(host) + Math.floor(moment_s / 10);
        if (key === shown) return;
        shown = key;
        place.replaceChildren(factsOf(host), el("h2", {}, host.is_known ? "Workers" : "Workers at the last report; now unknown"), workers(host, moment_s));
      },
    };
  },
};

function actions(name) {
  const path = `v1/hosts/${encodeURIComponent(name)}`;
  const post = (what) => ({ reason, for_s }) => send("POST", `${path}/${what}`, { reason, ...(for_s ? { for_s: Number(for_s) } : {}) });
  const fields = [spanField({ canStay: true }), reasonField];
  return [
    { label: "Cordon", title: `Cordon ${name}`, text: "It keeps what runs and gets nothing new until this ends, or somebody lets it serve again.", fields, act: post("cordon") },
    { label: "Drain", title: `Drain ${name}`, text: "Its workers leave as what replaces them runs elsewhere. It gets nothing new until this ends, or somebody lets it serve again.", fields, act: post("drain") },
    { label: "Let it serve", title: `Let ${name} serve again`, text: "Ends a cordon or a drain.", confirm: "Let it serve", act: () => send("POST", `${path}/uncordon`) },
    { label: "Forget", title: `Forget ${name}`, text: "Only for a host that is gone for good: what it may still run counts no longer, and is replaced elsewhere. Refused while it reports.", fields: [reasonField], act: post("forget") },
  ];
}

function factsOf(host) {
  const { capacity, used } = host;
  const share = (value) => (value === null ? "not measured" : `${Math.round(100 * value)} % of the time`);
  const entries = [
    ["CPU", `${decimal(used.cpu_cores)} of ${decimal(capacity.cpu_cores)} cores placed`],
    ["Memory", `${bytes(used.memory_bytes)} of ${bytes(capacity.memory_bytes)} placed`],
    capacity.gpus && ["GPUs", `${used.gpus} of ${capacity.gpus}`],
    ["CPU pressure", share(capacity.cpu_pressure)],
    ["Memory pressure", share(capacity.memory_pressure)],
    ["Agent", host.agent_version],
    ["Templates", host.templates.map((each) => each.name).join(", ") || "none"],
    ["Labels", Object.entries(host.labels).map(([key, value]) => `${key}=${value}`).join(", ") || "none"],
    host.certificate_left_s !== null && ["Certificate", host.certificate_left_s > 0 ? `ends in ${duration(host.certificate_left_s)}` : "has ended"],
    host.cordon_reason && ["Why", cordon(host)],
    ...host.problems.map((problem) => ["Problem", problem]),
  ].filter(Boolean);
  return facts(entries);
}

// Who says whether a worker is busy, and how long ago that was so.
function evidence(worker, moment_s) {
  if (worker.is_busy === null || worker.activity_source === null) return "none";
  if (worker.activity_known_at_s === null) return worker.activity_source;
  return `${worker.activity_source}, ${duration(Math.max(0, moment_s - worker.activity_known_at_s))} ago`;
}

// The state, with what it is that a worker has left, and that one takes no jobs.
function stateOf(worker) {
  const said = [worker.state.replaceAll("_", " ")];
  if (worker.is_left_behind) said.push(worker.goes_to_background ? "left behind, in the background" : "left behind");
  if (worker.inability) said.push(`takes no jobs (${worker.inability.replaceAll("_", " ")})`);
  return said.join("; ");
}

function workers(host, moment_s) {
  if (!host.workers.length) return nothing("No worker runs here.", host.is_known ? "None is placed here, or each has ended." : "None was reported before the agent became unreachable.");
  return card(`Workers of ${host.name}`, COLUMNS, host.workers.map((worker) => [
    worker.worker_id,
    el("a", { href: link("/profiles", worker.pool) }, worker.pool),
    worker.template,
    stateOf(worker),
    worker.is_busy === null ? "unknown" : !worker.is_busy ? "no" : worker.busy_since_s === null ? "yes" : `for ${duration(Math.max(0, moment_s - worker.busy_since_s))}`,
    evidence(worker, moment_s),
    String(worker.pid),
    worker.memory_bytes === null ? "not measured" : bytes(worker.memory_bytes),
    duration(Math.max(0, moment_s - worker.started_at_s)),
  ]));
}
