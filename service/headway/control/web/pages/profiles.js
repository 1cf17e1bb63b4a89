// The profiles: what people want of pools, and what somebody has set beside them for a while.

import { link } from "../address.js";
import { el } from "../dom.js";
import { slo } from "../format.js";
import { card, heading, Loading, nothing, number } from "../loading.js";

const COLUMNS = ["Pool", "Objective", number("Workers"), "Mode", "Set for a while", number("Version")];

export const page = {
  render(root, { read }) {
    const place = el("div", {});
    root.append(heading("Profiles", "Choose a pool to scale, pause or restart it, or to change its profile."));
    const loading = new Loading(root, { read: () => read("v1/profiles"), every_ms: 10_000, show: ({ profiles }) => show(profiles, place) });
    root.append(place);
    return loading;
  },
};

function show(profiles, place) {
  if (place.contains(document.activeElement)) return; // the next time: the focus stays where it is
  const rows = profiles.map((each) => [el("a", { href: link("/profiles", each.pool) }, each.pool), slo(each.profile.objective), `${each.profile.workers_min} to ${each.profile.workers_max}`, each.profile.mode, setFor(each) || "nothing", String(each.version)]);
  place.replaceChildren(rows.length ? card("Profiles", COLUMNS, rows) : nothing("No queue has a profile.", "Write objectives into profiles.yaml and run headway apply profiles.yaml."));
}

/** What holds beside the profile, in words; empty for nothing. */
export function setFor({ override, pause }) {
  return [override && `${override.workers} workers`, pause && pause.replaceAll("_", " ")].filter(Boolean).join(", ");
}
