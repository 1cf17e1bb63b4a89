// Which page is shown: the one whose path the address has. Links change the page without loading the shell again.

import { link, pathOf } from "./address.js";
import { $, el, mark, say } from "./dom.js";
import { PAGES } from "./pages/registry.js";

/** A page's path as a pattern: `{name}` takes a segment, `{name:path}` all that follow. */
function patternOf(path) {
  return new RegExp(`^${path.replace(/\{(\w+)(:path)?\}/g, (_, name, isPath) => `(?<${name}>${isPath ? ".+" : "[^/]+"})`)}$`);
}

const ROUTES = PAGES.map((page) => ({ page, pattern: patternOf(page.path) }));

/** The page at `path` and the names in it; null where there is none. */
export function found(path) {
  for (const { page, pattern } of ROUTES) {
    const groups = pattern.exec(path)?.groups;
    if (groups || pattern.test(path)) {
      return { page, parameters: Object.fromEntries(Object.entries(groups ?? {}).map(([name, text]) => [name, decoded(text)])) };
    }
  }
  return null;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a stray % is a part of the name
  }
}

/** Shows pages in `main`; `context` is handed to each, with `parameters` of its path. */
export class Router {
  #main;
  #context;
  #shown = null; // what render() returned
  #path = null;
  #turn = 0; // a page that loads while another was chosen is not shown

  constructor(main, context) {
    this.#main = main;
    this.#context = context;
    $("pages").replaceChildren(
      el("ul", {}, ...PAGES.filter((page) => page.label).map((page) => el("li", {}, el("a", { href: link(page.path), "data-path": page.path }, page.label)))),
    );
    document.addEventListener("click", (event) => this.#click(event));
    addEventListener("popstate", () => {
      const isMoved = pathOf(location) !== this.#path;
      if (isMoved || !location.hash) this.open({ isMoved }); // a link inside the page changes the address, too
    });
  }

  /** Show another page. */
  go(href) {
    history.pushState(null, "", href);
    scrollTo(0, 0);
    return this.open({ isMoved: true });
  }

  /** Show the page of the address. With `isMoved`, its heading gets the focus. */
  async open({ isMoved = false } = {}) {
    const turn = ++this.#turn;
    const path = pathOf(location);
    const { page, parameters } = found(path) ?? { page: null, parameters: {} };
    if (!page) return location.reload(); // the server says that there is none
    let module;
    try {
      module = await page.load();
    } catch {
      if (turn === this.#turn) this.#failed();
      return;
    }
    if (turn !== this.#turn) return;
    this.#close();
    this.#path = path;
    const section = page.section ?? page.path;
    for (const anchor of $("pages").querySelectorAll("a")) {
      const isHere = anchor.dataset.path === section;
      mark(anchor, "aria-current", isHere && (page.path === section ? "page" : "true"));
      if (isHere) anchor.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    this.name = page.title(parameters);
    document.title = this.name ? `${this.name} · Headway` : "Headway";
    this.#main.replaceChildren();
    this.#shown = module.page.render(this.#main, { ...this.#context, parameters, path }) ?? {};
    this.show();
    if (isMoved) this.#focus();
  }

  /** Show what is known now on the page that is open. */
  show() {
    this.#shown?.show?.(this.#context.store);
  }

  /** Each second: what ages. */
  tick() {
    if (this.#shown?.tick) this.#shown.tick(this.#context.store);
    else this.show();
  }

  /** The filter of the open page gets the focus; false where it has none. */
  find() {
    return this.#shown?.find?.() ?? false;
  }

  #close() {
    this.#shown?.close?.();
    this.#shown = null;
  }

  #click(event) {
    if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const anchor = event.target.closest?.("a[href]");
    if (!anchor || anchor.target || anchor.hasAttribute("download") || anchor.getAttribute("href").startsWith("#")) return;
    const path = pathOf(new URL(anchor.href));
    if (path === null || !found(path)) return;
    event.preventDefault();
    if (anchor.href !== location.href) this.go(anchor.href);
  }

  /** The heading says where one is, to who cannot see it. */
  #focus() {
    const heading = this.#main.querySelector("h1") ?? this.#main;
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }

  #failed() {
    this.#close();
    this.#path = null;
    const again = el("button", { type: "button", class: "give" }, "Try again");
    again.addEventListener("click", () => this.open());
    this.#main.replaceChildren(el("h1", {}, "This page could not be loaded"), el("p", { class: "sub" }, "The control plane did not answer. "), again);
    mark(this.#main, "aria-busy", "false");
    say($("announcer"), "This page could not be loaded");
  }
}
