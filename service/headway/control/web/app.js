// The shell: one stream of overviews and one page at a time. Ages tick on by themselves; nothing is shown as newer than it is.

import { ROOT } from "./address.js";
import { $, mark, say } from "./dom.js";
import { isEnded, showEnded } from "./ended.js";
import { clock } from "./format.js";
import { urgent } from "./headline.js";
import { Router } from "./router.js";
import { askForToken } from "./signin.js";
import { Store } from "./store.js";
import { follow, read } from "./stream.js";

const store = new Store();
const router = new Router($("main"), { store, read, announce, go: (href) => router.go(href) });

for (const anchor of document.querySelectorAll("a[data-page]")) anchor.href = ROOT.pathname;
// A browser resolves a relative icon anew at each page's address.
const icon = document.querySelector("link[rel=icon]");
icon.setAttribute("href", icon.href);

/** Say something once to who cannot see it. */
function announce(text) {
  say($("announcer"), text);
}

function link(kind, text) {
  mark($("link"), "data-state", kind);
  say($("link-text"), text);
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

store.subscribe(({ overview }) => {
  router.show();
  const name = router.name ? `${router.name} · Headway` : "Headway";
  document.title = overview && urgent(overview.pools).length ? `● ${name}` : name;
});

/** What ended for good has ended with a report: nothing was lost. */
function hasEnded(report) {
  link("ended", "The demo has ended");
  mark(document.body, "data-stale", store.overview ? "true" : null);
  mark($("main"), "aria-busy", "false");
  const isNews = showEnded(report);
  store.isStaleNow();
  if (isNews) announce(`The demo has ended. ${report.headline}`);
}

follow("v1/events?changes=true", {
  open: () => isEnded() || link("connecting", "Connected"),
  event(name, data, number) {
    if (name === "ended") return hasEnded(data);
    if (name === "problem") {
      link("lost", capital(data));
      return store.isStaleNow(data);
    }
    link("live", "Live");
    showEnded(null);
    mark($("main"), "aria-busy", "false");
    mark(document.body, "data-stale", null);
    store.take(name, data, number);
  },
  quiet() {
    if (!store.isLive) return;
    link("lost", `The control plane has gone quiet: shown is what was known at ${clock(store.asOf_s)}`);
    mark(document.body, "data-stale", "true");
    store.isStaleNow();
  },
  lost(why, retryMs) {
    if (isEnded()) return; // nothing is lost: nobody serves it any more, until it is started again
    const asOf = store.overview ? ` Shown is what was known at ${clock(store.asOf_s)}.` : "";
    link("lost", `Connection lost, retrying: ${why}.${asOf}`);
    mark(document.body, "data-stale", store.overview ? "true" : null);
    mark($("link"), "data-retry-ms", Math.round(retryMs));
    store.isStaleNow(why);
  },
  token() {
    link("lost", "Token needed");
    return askForToken();
  },
});
router.open();

document.addEventListener("keydown", (event) => {
  const isTyped = !event.ctrlKey && !event.altKey && !event.metaKey;
  if (event.key === "/" && isTyped && !event.target.closest("input, textarea, select, dialog") && router.find()) event.preventDefault();
  const opened = event.key === "Escape" && event.target.closest?.("details[open]");
  if (!opened) return;
  opened.open = false;
  opened.querySelector("summary").focus();
});
setInterval(() => router.tick(), 1000);
document.addEventListener("visibilitychange", () => router.show());
