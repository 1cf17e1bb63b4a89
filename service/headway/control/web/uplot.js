// uPlot, once a page needs it: lib/uPlot.iife.min.js as published (MIT, lib/uPlot-LICENSE).

let loading = null;

/** The class uPlot. */
export function loadPlots() {
  loading ??= Promise.all([added("link", { rel: "stylesheet", href: file("uPlot.min.css") }), added("script", { src: file("uPlot.iife.min.js") })]).then(
    () => globalThis.uPlot,
    (error) => {
      loading = null; // the next page tries again
      throw error;
    },
  );
  return loading;
}

const file = (name) => new URL(`lib/${name}`, import.meta.url).href;

function added(tag, properties) {
  return new Promise((done, failed) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.onload = done;
    element.onerror = () => failed(new Error("a file of the charts did not load"));
    document.head.append(element);
  });
}
