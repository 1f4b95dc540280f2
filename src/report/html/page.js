// The page's own script: filter, order, and what lies behind a row. It makes
// elements and sets texts; no text is ever read as markup.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const lines = byId("data").textContent.trim().split("\n");
  const [parts, shared] = JSON.parse(lines.at(-1));
  // What was there before stands as its number.
  const part = (value) => (typeof value === "number" ? parts[value] : value);
  const body = byId("rows");
  const rows = Array.from(body.rows, (tr, at) => ({
    tr, at,
    button: tr.querySelector("button"),
    name: tr.querySelector("bdi").textContent,
    mode: tr.cells[2].textContent,
    class: Number(tr.dataset.class),
    value: tr.dataset.value === undefined ? NaN : Number(tr.dataset.value),
    change: tr.dataset.change === undefined ? NaN : Number(tr.dataset.change),
    detail: null,
  }));
  for (const row of rows) row.text = `${row.name} ${row.mode}`.toLowerCase();
  const state = { words: "", mode: "", hidden: new Set(), key: "", down: false, limit: Number(byId("more").dataset.step) };
  const step = state.limit;

  // Elements.
  const SVG = "http://www.w3.org/2000/svg";
  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }
  const make = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const draw = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  // A plot: the drawing area is 320 by 140, 66 from the left, 6 from above.
  const LEFT = 66, TOP = 6, WIDTH = 320, HEIGHT = 140;
  const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  function plot([heading, text, across, down, layers, remark]) {
    const [title, [x, xs], [y, ys], note] = [part(heading), part(across), part(down), part(remark)];
    const svg = draw("svg", { viewBox: "0 0 400 194", role: "img", "aria-label": `${title}. ${text}` });
    svg.append(draw("rect", { x: LEFT, y: TOP, width: WIDTH, height: HEIGHT, class: "frame" }));
    for (const [at, label] of xs) {
      const left = LEFT + at / 10;
      svg.append(draw("path", { d: `M${left} ${TOP}v${HEIGHT}`, class: "grid" }));
      svg.append(draw("text", { x: left, y: TOP + HEIGHT + 13, class: "mid" }, label));
    }
    for (const [at, name] of ys) {
      const top = TOP + at / 10;
      svg.append(draw("path", { d: `M${LEFT} ${top}h${WIDTH}`, class: "grid" }));
      const label = draw("text", { x: LEFT - 4, y: top + 3, class: "end" }, short(name, 12));
      label.append(draw("title", {}, name));
      svg.append(label);
    }
    const area = draw("g", { transform: `translate(${LEFT} ${TOP}) scale(.1)` });
    for (const [kind, d] of layers) area.append(draw("path", { class: kind, d }));
    svg.append(area);
    svg.append(draw("text", { x: LEFT + WIDTH / 2, y: TOP + HEIGHT + 30, class: "mid title" }, x));
    svg.append(draw("text", { x: 0, y: 0, class: "mid title", transform: `translate(10 ${TOP + HEIGHT / 2}) rotate(-90)` }, y));
    const figure = make("figure", {}, make("figcaption", {}, title), svg);
    if (note) figure.append(make("p", { class: "note" }, note));
    return figure;
  }

  function table([name, titles, lines, marks, folded]) {
    const caption = part(name);
    const head = make("tr", {}, ...part(titles).map((text) => make("th", { scope: "col" }, text)));
    const marked = new Set(marks);
    const line = (cells, at) => make("tr", marked.has(at) ? { class: "marked" } : {},
      ...cells.map((text, i) => make(i ? "td" : "th", i ? { dir: "auto" } : { scope: "row", dir: "auto" }, text)));
    const inside = make("table", part(titles).length > 4 ? { class: "many" } : {}, make("thead", {}, head), make("tbody", {}, ...lines.map(part).map(line)));
    const scroll = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, inside);
    if (folded) return make("details", {}, make("summary", {}, caption), scroll);
    return make("section", {}, make("h3", {}, caption), scroll);
  }

  function detail(row) {
    const [notes, plots, tables, identity] = JSON.parse(lines[row.at]);
    // Words that are left out are those of the plot before.
    plots.forEach((data, i) => { if (!data[1] && i) data[1] = plots[i - 1][1]; });
    const inside = [];
    if (notes.length) inside.push(make("ul", { class: "notes" }, ...notes.map(part).map((text) => make("li", { dir: "auto" }, text))));
    if (plots.length) inside.push(make("div", { class: "plots" }, ...plots.map(plot)));
    inside.push(...tables.map(table));
    if (identity !== null) inside.push(table(shared[identity]));
    const cell = make("td", { colspan: String(row.tr.cells.length) }, make("div", {}, ...inside));
    return make("tr", { class: "detail", id: `detail-${row.at}` }, cell);
  }

  function open(row, wanted) {
    row.button.setAttribute("aria-expanded", String(wanted));
    if (wanted && !row.detail) {
      row.detail = detail(row);
      row.button.setAttribute("aria-controls", row.detail.id);
      row.tr.after(row.detail);
    } else if (!wanted && row.detail) {
      row.detail.remove();
      row.button.removeAttribute("aria-controls");
      row.detail = null;
    }
  }

  // Filter and order.
  function matches(row) {
    if (state.hidden.has(row.class) || (state.mode && row.mode !== state.mode)) return false;
    return state.words.toLowerCase().split(/\s+/).every((word) => row.text.includes(word));
  }

  function compare(a, b) {
    const [x, y] = [a[state.key], b[state.key]];
    if (typeof x === "string") return x < y ? -1 : Number(x > y);
    // What has no number stands last in either order.
    if (Number.isNaN(x) || Number.isNaN(y)) return (Number.isNaN(x) - Number.isNaN(y)) * (state.down ? -1 : 1);
    return x - y;
  }

  function order() {
    const sign = state.down ? -1 : 1;
    const sorted = rows.slice().sort((a, b) => (state.key ? sign * compare(a, b) : 0) || a.at - b.at);
    const all = document.createDocumentFragment();
    for (const row of sorted) {
      all.append(row.tr);
      if (row.detail) all.append(row.detail);
    }
    body.append(all);
    for (const th of document.querySelectorAll("th[data-key]")) {
      const mine = th.dataset.key === state.key;
      if (mine) th.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    }
    return sorted;
  }

  let sorted = rows;
  function show() {
    let found = 0;
    for (const row of sorted) {
      const wanted = matches(row);
      if (wanted) found += 1;
      row.tr.hidden = !wanted || found > state.limit;
      if (row.detail) row.detail.hidden = row.tr.hidden;
    }
    const more = byId("more");
    more.hidden = found <= state.limit;
    const shown = Math.min(found, state.limit);
    const number = (n) => n.toLocaleString("en");
    byId("count").textContent = found === rows.length && shown === found
      ? `${number(found)} trials`
      : `${number(found)} of ${number(rows.length)} trials match${shown < found ? `, the first ${number(shown)} are shown` : ""}`;
    more.textContent = `Show ${number(Math.min(step, found - shown))} more`;
    remember();
  }

  // The view can be linked to: it stands behind the # of the address.
  const boxes = () => Array.from(document.querySelectorAll("input[name=class]"));
  function remember() {
    const view = new URLSearchParams();
    if (state.words) view.set("words", state.words);
    if (state.mode) view.set("meter", state.mode);
    const hidden = boxes().filter((box) => !box.checked).map((box) => box.dataset.word);
    if (hidden.length) view.set("hide", hidden.join(","));
    if (state.key) view.set("order", (state.down ? "-" : "") + state.key);
    for (const row of rows) if (row.detail) view.append("open", `${row.mode} ${row.name}`);
    const text = view.toString();
    try {
      history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
    } catch (error) { /* some viewers do not let a page change its address: the view is then not linked */ }
  }

  function recall() {
    const view = new URLSearchParams(location.hash.slice(1));
    byId("words").value = state.words = view.get("words") ?? "";
    const mode = byId("mode");
    state.mode = view.get("meter") ?? "";
    if (mode) mode.value = state.mode;
    const hidden = (view.get("hide") ?? "").split(",");
    for (const box of boxes()) box.checked = !hidden.includes(box.dataset.word);
    state.hidden = new Set(boxes().filter((box) => !box.checked).map((box) => Number(box.value)));
    const key = view.get("order") ?? "";
    state.down = key.startsWith("-");
    state.key = ["class", "name", "mode", "value", "change"].find((known) => known === key.replace("-", "")) ?? "";
    const wanted = new Set(view.getAll("open"));
    sorted = order();
    for (const row of rows) if (wanted.has(`${row.mode} ${row.name}`)) open(row, true);
    show();
  }

  byId("controls").addEventListener("input", () => {
    state.words = byId("words").value.trim();
    state.mode = byId("mode")?.value ?? "";
    state.hidden = new Set(boxes().filter((box) => !box.checked).map((box) => Number(box.value)));
    state.limit = step;
    show();
  });
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("controls").addEventListener("reset", (event) => {
    event.preventDefault();
    for (const row of rows) open(row, false);
    history.replaceState(null, "", location.pathname + location.search);
    state.limit = step;
    recall();
  });
  byId("table").tHead.addEventListener("click", (event) => {
    const key = event.target.closest("th")?.dataset.key;
    if (!key || !event.target.closest("button")) return;
    // What is largest is looked for first; names are read from A on.
    const first = key === "value" || key === "change";
    state.down = state.key === key ? !state.down : first;
    state.key = key;
    sorted = order();
    show();
  });
  body.addEventListener("click", (event) => {
    const button = event.target.closest("th > button");
    const row = button && rows.find((known) => known.button === button);
    if (!row) return;
    open(row, button.getAttribute("aria-expanded") !== "true");
    remember();
  });
  byId("more").addEventListener("click", () => {
    state.limit += step;
    show();
  });
  window.addEventListener("hashchange", recall);
  recall();
})();
