// The pages, in the order of the navigation. A new one: its module here, its path in control/http/dashboard.py.
//
// path     of the address; {name} takes a segment, {name:path} all that follow
// label    in the navigation; without one, the page is not in it
// section  the path of the entry that is marked in the navigation instead of a page's own
// title    of the browser's tab, by the names in the path
// load     the module; its `page.render(root, context)` fills `root` and may return {show(store), tick(store), close(), find()}

export const PAGES = [
  { path: "/", label: "Now", title: () => "", load: () => import("./now.js") },
  { path: "/queues/{queue:path}", section: "/", title: ({ queue }) => queue, load: () => import("./series.js") },
  { path: "/pools/{pool}", section: "/", title: ({ pool }) => pool, load: () => import("./series.js") },
  { path: "/profiles", label: "Profiles", title: () => "Profiles", load: () => import("./profiles.js") },
  { path: "/profiles/{name:path}", section: "/profiles", title: ({ name }) => name, load: () => import("./profile.js") },
  { path: "/decisions", label: "Decisions", title: () => "Decisions", load: () => import("./decisions.js") },
  { path: "/alerts", label: "Alerts", title: () => "Alerts", load: () => import("./alerts.js") },
  { path: "/slo", label: "SLO", title: () => "SLO report", load: () => import("./slo.js") },
  { path: "/hosts", label: "Hosts", title: () => "Hosts", load: () => import("./hosts.js") },
  { path: "/hosts/{name:path}", section: "/hosts", title: ({ name }) => name, load: () => import("./host.js") },
  { path: "/system", label: "System", title: () => "System", load: () => import("./system.js") },
  { path: "/account", label: "Account", title: () => "Account", load: () => import("./account.js") },
];
