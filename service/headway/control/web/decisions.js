// What was decided and why, newest first. Each unfolds to every demand and every limit that moved the count.

import { el, keep, part, say } from "./dom.js";
import { ago, clock, decimal, duration } from "./format.js";

/** The decisions inside `list`. One that somebody has unfolded stays until it is folded, however many come after it. */
export class DecisionList {
  #list;
  #shown = [];
  #isDated;

  /** With `isDated`, each says its date, too: those of other days are among them. */
  constructor(list, { isDated = false } = {}) {
    this.#list = list;
    this.#isDated = isDated;
  }

  /** Show the overview's decisions. */
  show({ decisions }, now_s) {
    const newest = new Set(decisions.map((each) => each.decision_id));
    const open = new Set([...this.#list.querySelectorAll("details[open]")].map((each) => each.parentElement.dataset.key));
    const kept = this.#shown.filter(({ decision_id }) => !newest.has(decision_id) && open.has(String(decision_id)));
    this.#shown = [...decisions, ...kept];
    keep(this.#list, this.#shown, (each) => each.decision_id, makeDecision, (element, each) => {
      const date = this.#isDated ? `${new Date(each.decided_at_s * 1000).toLocaleDateString("en-GB", { weekday: "short", day: "numeric", month: "short" })} ${clock(each.decided_at_s)} · ` : "";
      say(part(element, "when"), date + ago(now_s - each.decided_at_s));
    });
  }
}

function makeDecision(stored) {
  const { decision, previous_workers: previous, explanation } = stored;
  const direction = previous === null || previous === decision.target_workers ? "same" : previous < decision.target_workers ? "up" : "down";
  return el(
    "li",
    {},
    el(
      "details",
      {},
      el(
        "summary",
        {},
        el("span", { class: "line" },
          el("b", {}, decision.pool),
          el("span", { class: "change", "data-direction": direction }, explanation.change),
          el("time", { class: "when", "data-part": "when", title: clock(stored.decided_at_s), datetime: new Date(stored.decided_at_s * 1000).toISOString() }),
        ),
        el("span", { class: "why" }, explanation.why),
      ),
      unfolded(stored),
    ),
  );
}

function unfolded({ decision, explanation, epoch }) {
  const { demands, steps } = explanation;
  const greatest = Math.max(...demands.map((demand) => demand.slots), 0.001);
  return el(
    "div",
    { class: "more" },
    el("h3", {}, "Reasons to have workers, in slots (jobs at a time); the greatest counts"),
    el("dl", { class: "demands" }, ...demands.flatMap((demand) => [el("dt", { title: `demand ${demand.name}: ${demand.sentence}` }, demand.label), bar(demand.slots, greatest)])),
    el("h3", {}, "What then changed the number of workers, in this order"),
    el("p", { class: "steps" }, steps.filter((step, index) => index === 0 || step.moved).map((step) => `${step.label} ${step.workers}`).join(" → ") || "none"),
    el("p", { class: "sub" }, facts(decision, explanation, epoch)),
  );
}

function bar(value, greatest) {
  const fill = el("i", { "aria-hidden": "true" });
  fill.style.width = `${(100 * value) / greatest}%`;
  return el("dd", {}, el("span", { class: "bar" }, fill), el("span", {}, decimal(value)));
}

function facts(decision, explanation, epoch) {
  return [
    `decided by: ${explanation.binding_label} (${decision.binding})`,
    `then ${decision.running_workers} running, ${decision.starting_workers} starting, ${decision.unknown_workers} on unreachable hosts`,
    decision.predicted_pickup_s === null ? "no predicted wait" : `predicted wait ${duration(decision.predicted_pickup_s)}`,
    decision.is_fresh ? "readings were fresh" : "readings were old",
    `leader’s term ${epoch}`,
  ].join(" · ");
}
