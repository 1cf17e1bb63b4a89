// The hosts: all of them, what they have and run, and the way to each.

import { link } from "../address.js";
import { el, say } from "../dom.js";
import { ago, bytes, counted, decimal } from "../format.js";
import { condition } from "../hosts.js";
import { heading, nothing, number, table } from "../loading.js";

const COLUMNS = ["Host", "State", number("Workers"), number("CPU"), number("Memory"), "Agent", number("Last report")];

export const page = {
  render(root, { store }) {
    const place = el("div", { class: "card" });
    const head = heading("Hosts", store.awaited);
    root.append(head, place);
    let shown = null;
    return {
      show({ overview, moment_s, isLive, awaited }) {
        if (!overview) return say(head.lastChild, awaited);
        say(head.lastChild, `${counted(overview.hosts.length, "host")}${isLive ? "" : ", as last known"}`);
        const rows = overview.hosts.map((host) => row(host, moment_s));
        const key = JSON.stringify(rows.map((cells) => cells.map((cell) => cell.textContent ?? cell)));
        if (key === shown) return; // the focus stays where it is
        shown = key;
        const at = document.activeElement?.closest("tr")?.rowIndex;
        place.replaceChildren(rows.length ? table("Hosts", COLUMNS, rows) : nothing("No host has enrolled.", "Where workers should run, describe how to start one in host.toml and run headway agent."));
        if (at) place.querySelector("table")?.rows[at]?.querySelector("a")?.focus({ preventScroll: true });
      },
    };
  },
};

function row(host, moment_s) {
  const [word, colour, title] = condition(host);
  return [
    el("a", { href: link("/hosts", host.name) }, host.name),
    el("span", { class: "badge", "data-state": colour, title }, word),
    host.is_known ? String(host.workers.length) : "unknown",
    `${decimal(host.used.cpu_cores)} of ${decimal(host.capacity.cpu_cores)}`,
    `${bytes(host.used.memory_bytes)} of ${bytes(host.capacity.memory_bytes)}`,
    host.agent_version,
    host.reported_at_s === null ? "never" : ago(Math.floor((moment_s - host.reported_at_s) / 5) * 5),
  ];
}
