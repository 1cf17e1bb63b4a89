() => {
  const parsed = (css) => {
    const [r, g, b, a = 1] = css.match(/[\d.]+/g).map(Number);
    return { r, g, b, a };
  };
  const over = (top, under) => ({
    r: top.r * top.a + under.r * (1 - top.a),
    g: top.g * top.a + under.g * (1 - top.a),
    b: top.b * top.a + under.b * (1 - top.a),
    a: 1,
  });
  const linear = (part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ({ r, g, b }) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ground = (element) => {
    const layers = [];
    for (let each = element; each; each = each.parentElement) layers.push(parsed(getComputedStyle(each).backgroundColor));
    return layers.reverse().reduce((under, top) => over(top, under), { r: 255, g: 255, b: 255, a: 1 });
  };
  const opacity = (element) => {
    let product = 1;
    for (let each = element; each; each = each.parentElement) product *= Number(getComputedStyle(each).opacity);
    return product;
  };
  const told = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || !element.checkVisibility() || ["SCRIPT", "NOSCRIPT"].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    const behind = ground(element);
    const colour = parsed(element.namespaceURI.endsWith("svg") ? style.fill : style.color);
    const shown = over({ ...colour, a: colour.a * opacity(element) }, behind);
    const [light, dark] = [luminance(shown), luminance(behind)].sort((one, other) => other - one);
    told.push({ text: text.slice(0, 40), ratio: (light + 0.05) / (dark + 0.05), colour: style.color, behind: `${behind.r} ${behind.g} ${behind.b}` });
  }
  return told;
}
