// Who is signed in, what that may do, and the way out.

import { el, say } from "../dom.js";
import { duration } from "../format.js";
import { facts, heading, Loading } from "../loading.js";
import { account, signOut } from "../session.js";
import { reasonOf } from "../stream.js";

const MAY = {
  viewer: "Read everything but the audit log and tokens.",
  operator: "Read, and change: scale, pause, restart, profiles, hosts.",
  admin: "Everything: changes, tokens and the audit log.",
  auditor: "Read the audit log.",
};

export const page = {
  render(root, { announce }) {
    const head = heading("Account");
    const place = el("div", {});
    root.append(head);
    const loading = new Loading(root, { read: account, show: (who) => show(who, place, announce) });
    root.append(place);
    return loading;
  },
};

function show(who, place, announce) {
  if (who.way === "open") {
    return place.replaceChildren(el("div", { class: "card facts-text" }, el("p", {}, "This control plane has no token and asks nobody to sign in: it serves only this machine, and everybody on it may do everything.")));
  }
  const entries = [["Name", who.name], ["Role", who.role], ["May", MAY[who.role] ?? "Nothing here."], ["Ends", who.expires_s === null ? "has no date" : `in ${duration(who.expires_s)}`]];
  const out = el("button", { type: "button", class: "give" }, "Sign out");
  const problem = el("p", { class: "problem", role: "alert" });
  out.addEventListener("click", async () => {
    out.disabled = true;
    try {
      await signOut();
      announce("Signed out");
      location.reload();
    } catch (error) {
      say(problem, `Not signed out: ${reasonOf(error)}`);
      out.disabled = false;
    }
  });
  place.replaceChildren(facts(entries), el("div", { class: "actions" }, out, problem));
}
