// Decisions of any time: filters are in the address, and a page ends where the next begins.

import { parameter } from "../address.js";
import { DecisionList } from "../decisions.js";
import { el, say } from "../dom.js";
import { filterForm } from "../filters.js";
import { heading, Loading } from "../loading.js";
import { reasonOf } from "../stream.js";

const SHOWN = 50;
const DIRECTIONS = [["", "any direction"], ["up", "up"], ["down", "down"], ["same", "kept"]];

export const page = {
  render(root, { read, store }) {
    const list = el("ol", { class: "decisions" });
    const more = el("button", { type: "button", class: "give", hidden: true }, "Older decisions");
    const tally = el("p", { class: "sub", role: "status" });
    const decisions = new DecisionList(list, { isDated: true });
    let [found, next] = [[], null];
    const query = (before) => {
      const asked = new URLSearchParams({ limit: SHOWN });
      for (const name of ["pool", "direction", "reason"]) if (parameter(name)) asked.set(name, parameter(name));
      for (const name of ["from", "until"]) if (seconds(parameter(name)) !== null) asked.set(`${name}_s`, seconds(parameter(name)));
      if (before) asked.set("before", before);
      return read(`v1/decisions?${asked}`);
    };
    const show = (answer) => {
      [found, next] = [[...found, ...answer.decisions], answer.next];
      decisions.show({ decisions: found }, store.moment_s);
      more.hidden = next === null;
      say(tally, found.length ? `${found.length} decisions${next === null ? ", all there are" : ", newest first"}` : "No decision is like this: widen the time, or take a filter away.");
    };
    root.append(heading("Decisions", "What was decided and why. Each unfolds to every demand and every limit."));
    const again = () => {
      found = [];
      list.replaceChildren();
      loading.again();
    };
    root.append(filterForm("Filter decisions", FILTERS, again));
    const loading = new Loading(root, { read: () => query(null), show });
    root.append(tally, list, more);
    more.addEventListener("click", async () => {
      more.disabled = true;
      await query(next).then(show, (error) => say(tally, `Older ones are not known: ${reasonOf(error)}`));
      more.disabled = false;
    });
    return { tick: () => decisions.show({ decisions: found }, store.moment_s), close: () => loading.close() };
  },
};

const FILTERS = [
  { name: "pool", label: "Pool", type: "search" },
  { name: "direction", label: "Direction", options: DIRECTIONS },
  { name: "reason", label: "Decided by", type: "search", placeholder: "backlog_drain" },
  { name: "from", label: "From", type: "datetime-local" },
  { name: "until", label: "Until", type: "datetime-local" },
];

/** Unix seconds of a local date and time; null of none. */
function seconds(text) {
  const at = Date.parse(text ?? "");
  return Number.isNaN(at) ? null : at / 1000;
}
