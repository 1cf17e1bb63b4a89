// The address: which page, and what of it. Range, filter, sort and selection are in it, so that a link shows the same.

/** Where the dashboard is: below a proxy's path, too. */
export const ROOT = new URL("../", import.meta.url);

/** The link of a page: `link("/queues", "redis/mail")`. A name's slashes stay, but where a browser would fold them. */
export function link(path, name = null, parameters = {}) {
  const segments = name === null ? [] : name.split("/");
  const isPlain = segments.every((segment) => !["", ".", ".."].includes(segment));
  const tail = name === null ? "" : `/${isPlain ? segments.map(encodeURIComponent).join("/") : encodeURIComponent(name)}`;
  const url = new URL(ROOT.pathname.replace(/\/$/, "") + path + tail, ROOT);
  for (const [key, value] of Object.entries(parameters)) url.searchParams.set(key, value);
  return url.pathname + url.search;
}

/** The path of `url` as the pages know it; null where it is not one of here. */
export function pathOf(url) {
  if (url.origin !== ROOT.origin || !url.pathname.startsWith(ROOT.pathname)) return null;
  return `/${url.pathname.slice(ROOT.pathname.length)}`;
}

/** A parameter of the present address; null where it has none. */
export const parameter = (name) => new URLSearchParams(location.search).get(name);

/**
 * Change parameters of the present address; null takes one away. With `isStep`, going back undoes it, and `state` is kept
 * with the step, as `history.state`.
 */
export function setParameters(values, { isStep = false, state = null } = {}) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === "") url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  if (url.href === location.href) return;
  if (isStep) history.pushState(state, "", url);
  else history.replaceState(history.state, "", url);
}
