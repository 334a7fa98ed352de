// Elements, and how those on the page become like new ones without losing the focus.

const svgTags = new Set(["svg", "path", "line", "rect", "title"]);

// h makes an element. Attributes that are null or false are left out; on* are listeners.
export function h(tag, attributes = {}, ...children) {
  const node = svgTags.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false).map((c) => c instanceof Node ? c : String(c)));
  return node;
}

const keyOf = (node) => node.nodeType === 1 ? node.getAttribute("data-key") : null;
const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

// become makes what is below a node like what is below another.
export function become(at, like) {
  const keyed = new Map([...at.childNodes].filter(keyOf).map((n) => [keyOf(n), n]));
  let here = at.firstChild;
  for (const wanted of [...like.childNodes]) {
    const known = keyOf(wanted) && keyed.get(keyOf(wanted));
    if (known && known !== here && alike(known, wanted)) {
      at.insertBefore(known, here);
      here = known;
    }
    if (here && alike(here, wanted)) {
      same(here, wanted);
      here = here.nextSibling;
    } else {
      at.insertBefore(wanted, here);
    }
  }
  while (here) {
    const next = here.nextSibling;
    here.remove();
    here = next;
  }
}

function same(at, like) {
  if (at.nodeType !== 1) {
    if (at.data !== like.data) at.data = like.data;
    return;
  }
  for (const { name } of [...at.attributes]) if (!like.hasAttribute(name)) at.removeAttribute(name);
  for (const { name, value } of like.attributes) if (at.getAttribute(name) !== value) at.setAttribute(name, value);
  at.onclick = like.onclick;
  at.oninput = like.oninput;
  at.onsubmit = like.onsubmit;
  if (at.nodeName !== "INPUT") become(at, like);
}

// table makes one whose cells carry their column's name, for narrow windows.
export function table(caption, columns, rows, none) {
  if (rows.length === 0) return h("p", { class: "none" }, none);
  return h("table", {}, h("caption", { class: "hidden" }, caption),
    h("thead", {}, h("tr", {}, columns.map((c) => h("th", { scope: "col", class: c.class }, c.name)))),
    h("tbody", {}, rows.map((row) => h("tr", { "data-key": row.key, class: row.class },
      row.cells.map((cell, i) => h(i === 0 ? "th" : "td",
        { "data-label": columns[i].name, class: columns[i].class, scope: i === 0 ? "row" : null }, cell))))));
}

// part is a section of the page with a heading.
export function part(name, title, note, ...children) {
  const id = name + "-title";
  return h("section", { class: "part " + name, "data-key": name, "aria-labelledby": id },
    h("h3", { id }, title, note && h("small", {}, note)), children);
}

// bar shows a part of a whole; mark, if there is one, where it might be.
export function bar(value, whole, label, mark, tone) {
  const share = (v) => whole > 0 ? Math.max(0, Math.min(1, v / whole)) * 100 : 0;
  return h("svg", { class: "bar " + (tone ?? ""), role: "img", "aria-label": label, viewBox: "0 0 100 8", preserveAspectRatio: "none" },
    h("rect", { class: "whole", width: 100, height: 8 }),
    h("rect", { class: "used", width: share(value).toFixed(2), height: 8 }),
    mark !== undefined && h("line", { class: "mark", x1: share(mark).toFixed(2), x2: share(mark).toFixed(2), y1: 0, y2: 8 }));
}
