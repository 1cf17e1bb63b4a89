// The installation's own parts: who leads, how far each stage is behind, collectors, agents, and the audit log.

import { link } from "../address.js";
import { el, say } from "../dom.js";
import { ago, clock, duration } from "../format.js";
import { card, heading, Loading, nothing, number } from "../loading.js";
import { account, mayAudit } from "../session.js";

const STAGES = { brokers: "Brokers read", event_log: "Telemetry waiting for the pipeline", pipeline: "Pipeline", minutes: "Minutes and hours", scheduler: "Scheduler", agents: "Agents' reports" };
const badge = (isGood, good, bad) => el("span", { class: "badge", "data-state": isGood ? "on_time" : "at_risk" }, isGood ? good : bad);
const aged = (age_s) => (age_s === null ? "not known" : ago(age_s));

export const page = {
  render(root, { read }) {
    const head = heading("System");
    const place = el("div", {});
    root.append(head);
    const parts = new Loading(root, { read: () => read("v1/system"), every_ms: 5_000, show: (system) => show(system, head, place) });
    root.append(place);
    const audit = el("section", {}, el("h2", {}, "Audit log"));
    root.append(audit);
    const acts = new Loading(audit, { read: () => readAudit(read), show: (found) => audit.append(...auditOf(found)) });
    return {
      close() {
        parts.close();
        acts.close();
      },
    };
  },
};

async function readAudit(read) {
  const who = await account();
  return mayAudit(who) ? read("v1/audit?limit=50") : { role: who.role };
}

function show(system, head, place) {
  const { leader } = system;
  say(head.lastChild, leader.age_s === null ? "No control plane has led yet." : `${leader.name} leads, term ${leader.epoch}, last seen ${ago(leader.age_s)} · version ${system.version}`);
  place.replaceChildren(
    system.reasons.length ? el("ul", { class: "reasons" }, ...system.reasons.map((reason) => el("li", {}, reason))) : el("p", { class: "sub" }, "Nothing is wrong with the installation."),
    el("h2", {}, "From broker to worker"),
    card("Stages", ["Stage", "State", number("Behind"), number("In order up to")], system.stages.map((each) => [
      STAGES[each.stage] ?? each.stage,
      each.lag_s === null ? el("span", { class: "badge" }, "not known") : badge(!each.is_late, "in order", "late"),
      each.lag_s === null ? "not known" : duration(each.lag_s),
      duration(each.lag_max_s),
    ])),
    el("h2", {}, "Pipelines"),
    system.pipelines.length ? card("Pipelines", ["Pipeline", "State", number("Behind"), number("Batch takes"), number("Last wrote")], system.pipelines.map((each) => [each.pipeline, badge(each.is_ready, "ready", each.stage.replaceAll("_", " ")), duration(each.lag_s), duration(each.batch_s), aged(each.written_age_s)])) : nothing("No pipeline has run.", "headway pipeline starts one."),
    el("h2", {}, "Collectors"),
    system.collectors.length ? card("Collectors", ["Broker", "Collector", "State", number("Last seen")], system.collectors.map((each) => [each.connection, each.producer, badge(!each.is_silent, "reading", "not reporting"), aged(each.seen_age_s)])) : nothing("No collector has read a broker within a day.", "headway collect starts one."),
    el("h2", {}, "Agents"),
    system.agents.length ? card("Agents", ["Host", "State", "Version", number("Last report")], system.agents.map((each) => [el("a", { href: link("/hosts", each.host) }, each.host), badge(each.is_known && !each.problems.length, each.state, each.is_known ? each.problems[0] : "unreachable"), each.version, aged(each.report_age_s)])) : nothing("No host has enrolled.", "headway agent enrols one."),
  );
}

function auditOf({ role, acts }) {
  if (!acts) return [el("p", { class: "sub" }, `Your role is ${role}: the audit log takes the role auditor or admin.`)];
  if (!acts.length) return [nothing("Nothing has been done yet.", "Each change, refused call and failed sign-in is a line here.")];
  const when = (act) => el("time", { datetime: new Date(act.at_s * 1000).toISOString() }, `${new Date(act.at_s * 1000).toLocaleDateString("en-GB")} ${clock(act.at_s)}`);
  return [card("Audit log", ["When", "Who", "What", "Of", "From"], acts.map((act) => [when(act), act.actor, act.action, act.subject, act.address ?? ""]))];
}
