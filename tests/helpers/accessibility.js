// What a program can check of WCAG 2.2 AA; gives a line for everything that is wrong on the page.
() => {
  const wrong = [];
  const visible = (element) => element.checkVisibility();
  const all = (selector) => [...document.querySelectorAll(selector)];
  const shown = (element) => element.outerHTML.slice(0, 120);
  const text = (value) => (value ?? "").trim();

  // Names of whatever can be used or looked at
  const nameOf = (element) =>
    text(element.getAttribute("aria-label")) ||
    text(element.labels?.[0]?.textContent) ||
    text(element.textContent) ||
    text(element.getAttribute("title"));
  for (const element of all("button, a, input, select, canvas, progress, [tabindex]")) {
    if (visible(element) && element.tabIndex >= 0 && !nameOf(element)) wrong.push(`no name: ${shown(element)}`);
  }
  for (const element of all("img:not([alt])")) wrong.push(`no alt: ${shown(element)}`);
  for (const element of all("svg:not([aria-label])")) {
    const isDecoration = element.closest("[aria-hidden=true]") !== null;
    if (visible(element) && !isDecoration) wrong.push(`a drawing without words: ${shown(element)}`);
  }

  // References
  const ids = all("[id]").map((element) => element.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push(`twice: ${id}`);
  for (const attribute of ["aria-labelledby", "aria-describedby", "for"]) {
    for (const element of all(`[${attribute}]`)) {
      const id = element.getAttribute(attribute);
      if (document.getElementById(id) === null) wrong.push(`${attribute} of nothing: ${id}`);
    }
  }

  // Headings, landmarks, lists
  let last = 0;
  for (const heading of all("h1, h2, h3, h4").filter(visible)) {
    const level = Number(heading.tagName[1]);
    if (level > last + 1) wrong.push(`h${level} after h${last}: ${heading.textContent}`);
    last = level;
  }
  for (const tag of ["h1", "main", "header", "footer"]) {
    const count = all(tag).filter(visible).length;
    if (count !== 1) wrong.push(`${count} of ${tag}`);
  }
  if (!document.documentElement.lang) wrong.push("no language");
  for (const list of all("ul")) {
    if ([...list.children].some((child) => child.tagName !== "LI")) wrong.push(`in a list: ${shown(list)}`);
  }

  // Contrast of every piece of text with the nearest background that is not see-through
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const numbers = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour; // whatever way it is written
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const [r, g, b, alpha] = numbers(getComputedStyle(each).backgroundColor);
      if (alpha > 250) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) =>
    0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const words = text(walker.currentNode.textContent);
    const element = walker.currentNode.parentElement;
    if (!words || !element.checkVisibility({ opacityProperty: true })) continue;
    if (element.closest(":disabled, noscript, title, option, .hidden")) continue;
    const style = getComputedStyle(element);
    const front = luminance(numbers(element.namespaceURI.endsWith("svg") ? style.fill : style.color));
    const back = luminance(behind(element));
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) wrong.push(`contrast ${ratio.toFixed(2)}: ${words.slice(0, 40)}`);
  }

  // Size of what is pressed
  for (const element of all("button, select, input:not([type=checkbox])").filter(visible)) {
    const { width, height } = element.getBoundingClientRect();
    if (Math.min(width, height) < 24) wrong.push(`${width} × ${height}: ${shown(element)}`);
  }
  return wrong;
}
