// What a word came from, drawn beside the text, and the map of a segment's attention when it is opened.
// Texts reach the page by textContent alone.
"use strict";

// What was mixed in, by what was read for it: the class of its part of the bar, and its name
const MIXED = {cache: ["recalled", "recalled from the session cache"], memory: ["copied", "copied from the memory"]};
const END = "end";
const NOTE = "A row a subword of the translation; in percent, gates, attention to the words of each pair, and matching of the "
  + "session cache's slots. What is not shown is below 1.";
const known = new WeakMap();  // article -> its data, read once
let shown = null, held = null;  // tokens
let pointer = [];  // where it was last: what scrolls under a pointer at rest was not pointed at

function el(name, kind, ...children) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  made.append(...children);
  return made;
}

function shaded(element, weight) {
  element.style.setProperty("--w", weight);
  return element;
}

const number = (x) => x.toFixed(x && Math.abs(x) < 0.01 ? 4 : 2).replace("-", "\u2212");
const signed = (x) => (x < 0 ? "" : "+") + number(x);
const sum = (values) => values.reduce((total, x) => total + x, 0);

function dataOf(article) {
  if (!known.has(article)) {
    known.set(article, JSON.parse(article.querySelector("script").textContent));
  }
  return known.get(article);
}

const tokensOf = (article) => [...article.querySelectorAll(".token")];
const of = (data, name, at) => (data[name] ? data[name][at] : 0);

// The inspector: one token

function show(token) {
  if (token === shown) return;
  shown?.classList.remove("shown");
  shown = token;
  token.classList.add("shown");
  const article = token.closest("article"), at = tokensOf(article).indexOf(token), data = dataOf(article);
  const inspector = document.getElementById("inspector");
  inspector.replaceChildren(
    el("h2", "", el("span", token.classList[1], token.textContent || "\u00b7"), ` ${number(of(data, "probability", at))}`),
    mixture(data, at), ...effects(data, at), ...gates(data, at), ...pairs(data, at, token.textContent), ...slots(data, at));
  inspector.scrollTop = 0;
  article.querySelectorAll("tr.shown").forEach((row) => row.classList.remove("shown"));
  article.querySelectorAll("tbody tr")[at]?.classList.add("shown");
}

function mixture(data, at) {
  const bar = el("div", "bar"), told = el("ul", "parts");
  const parts = [["generated", "generated", of(data, "generated", at)]];
  for (const [source, names] of Object.entries(MIXED)) {
    const mixed = data.provenance.filter((one) => one.is_mixed && one.source === source);
    parts.push([...names, sum(mixed.map((one) => one.weights[at]))]);
  }
  for (const [kind, what, part] of parts) {
    if (!part) continue;
    bar.append(shaded(el("span", kind), part));
    told.append(el("li", kind, `${number(part)} ${what}`));
  }
  return el("div", "", bar, told);
}

function effects(data, at) {
  const plain = of(data, "plain", at), blended = data.provenance.filter((one) => !one.is_mixed && one.weights[at]);
  if (!blended.length) return [];
  const steps = [`plain ${number(plain)}`, ...blended.map((one) => `${one.name} ${signed(one.weights[at])}`)];
  const total = plain + sum(blended.map((one) => one.weights[at]));
  return [el("p", "effects", `Generator, in this order: ${steps.join(", ")} = ${number(total)}`)];
}

function gates(data, at) {
  const open = data.provenance.filter((one) => one.gates[at]);
  if (!open.length) return [];
  const list = el("dl", "gates");
  for (const {name, gates} of open) {
    list.append(el("dt", "", `${name} gate`), el("dd", "", shaded(el("span", "meter"), gates[at]), number(gates[at])));
  }
  return [list];
}

// The pairs a token read, most read first; positions that hold the very word are what copying counts
function pairs(data, at, text) {
  const read = data.matches.map(() => new Map());
  for (const [match, position, weight] of data.attention[at]) read[match].set(position, weight);
  const total = read.map((positions) => sum([...positions.values()]));
  const order = [...read.keys()].filter((match) => total[match]).sort((a, b) => total[b] - total[a]);
  const heaviest = Math.max(...data.attention[at].map(([, , weight]) => weight));
  return order.map((match) => {
    const words = el("p", "pieces");
    words.dir = "auto";
    data.matches[match].pieces.forEach((piece, position) => {
      const weight = read[match].get(position);
      const last = position === data.matches[match].pieces.length - 1, word = last ? END : piece.trim();
      if (piece.startsWith(" ") || last) words.append(" ");
      if (weight === undefined) {
        words.append(last ? "" : word);
        return;
      }
      const mark = shaded(el("mark", "", word), weight);
      mark.title = `position ${position + 1}: ${number(weight)}`;
      mark.classList.toggle("heaviest", weight === heaviest);
      mark.classList.toggle("same", !last && word !== "" && word === text);
      mark.classList.toggle("end", last);
      words.append(mark);
    });
    const [position, most] = [...read[match]].reduce((best, one) => (one[1] > best[1] ? one : best));
    const told = `weight ${number(total[match])}, most at position ${position + 1} (${number(most)})`;
    return el("section", "pair", heading(data.matches[match], match), el("p", "weight", told), source(data.matches[match]), words);
  });
}

function slots(data, at) {
  if (!data.slots[at].length) return [];
  const words = el("p", "pieces");
  for (const [, word, weight] of data.slots[at]) {
    words.append(shaded(el("mark", "cache", word.trim()), weight), ` ${number(weight)}  `);
  }
  return [el("section", "pair", el("h3", "", "session cache"), words)];
}

function heading(match, at) {
  return el("h3", "", `match ${at + 1}`, el("b", "", match.score.toFixed(2)), el("span", "document", match.document));
}

function source(match) {
  const text = el("p", "source", match.src);
  text.dir = "auto";
  return text;
}

// The details of a segment: its matches, and a row a token over gates, the words of the pairs, and the cache's slots

function open(article) {
  const details = article.querySelector("details"), data = dataOf(article);
  if (details.childElementCount > 1) return;
  data.matches.forEach((match, at) => {
    const target = el("p", "pieces", match.pieces.slice(0, -1).join("").trim());
    target.dir = "auto";
    details.append(el("section", "pair", heading(match, at), source(match), target));
  });
  const groups = columns(data);
  if (!groups.length || !data.attention.length) {
    details.append(el("p", "weight", "Nothing was read: no pair, and no session cache."));
    return;
  }
  const map = el("div", "map", table(article, data, groups));
  map.tabIndex = 0;
  map.role = "region";
  map.ariaLabel = "Gates and attention by subword, in percent";
  details.append(el("p", "weight", NOTE), map);
}

// Groups of columns: {name, kind, columns: [{label, weights: one a token}]}
function columns(data) {
  const tokens = [...data.attention.keys()], groups = [];
  if (data.provenance.length) {
    const gates = data.provenance.map((one) => ({label: `${one.name} gate`, weights: one.gates}));
    groups.push({name: "gates", kind: "gate", columns: gates});
  }
  data.matches.forEach((match, number) => {
    const words = wordsOf(match.pieces), column = words.flatMap((word, at) => word.positions.map(() => at));
    const weights = words.map(() => tokens.map(() => 0));
    for (const at of tokens) {
      for (const [of, position, weight] of data.attention[at]) {
        if (of === number) weights[column[position]][at] += weight;
      }
    }
    groups.push({name: `match ${number + 1} \u00b7 ${match.score.toFixed(2)}`, kind: "memory",
                 columns: words.map((word, at) => ({label: word.text, weights: weights[at]}))});
  });
  const slots = new Map();
  tokens.forEach((at) => data.slots[at].forEach(([slot, word, weight]) => {
    if (!slots.has(slot)) slots.set(slot, {label: word.trim(), weights: tokens.map(() => 0)});
    slots.get(slot).weights[at] = weight;
  }));
  if (slots.size) groups.push({name: "session cache", kind: "cache", columns: [...slots.values()]});
  return groups;
}

function wordsOf(pieces) {
  const words = [];
  pieces.forEach((piece, position) => {
    const last = position === pieces.length - 1;
    if (!words.length || last || piece.startsWith(" ")) words.push({text: "", positions: []});
    words.at(-1).text += last ? END : piece.trim();
    words.at(-1).positions.push(position);
  });
  return words;
}

function table(article, data, groups) {
  const names = el("tr", "", el("td")), labels = el("tr", "labels", el("td")), body = el("tbody");
  for (const {name, columns} of groups) {
    const group = el("th", "group", name);
    group.colSpan = columns.length;
    group.scope = "colgroup";
    names.append(group);
    columns.forEach(({label}, at) => labels.append(header(label, "col", at ? "" : "first")));
  }
  tokensOf(article).forEach((token, at) => {
    const row = el("tr", "", header(token.textContent, "row", token.classList[1]));
    for (const {kind, columns} of groups) {
      columns.forEach(({label, weights}, column) => {
        const cell = shaded(el("td", column ? kind : `${kind} first`), weights[at]);
        if (weights[at] >= 0.005) {
          cell.append(Math.round(100 * weights[at]));
          cell.title = `${token.textContent} \u2190 ${label}: ${number(weights[at])}`;
        }
        row.append(cell);
      });
    }
    body.append(row);
  });
  return el("table", "", el("thead", "", names, labels), body);
}

function header(text, scope, kind) {
  const made = el("th", kind, el("span", "", text));
  made.scope = scope;
  made.title = text;
  return made;
}

// Reaching tokens: by pointer, by Tab to the first of a segment, by arrows from there

function reach(target) {
  const token = target.closest?.(".token");
  if (token && !held) show(token);
  const row = target.closest?.("tbody tr");
  if (row && !held) show(tokensOf(row.closest("article"))[row.sectionRowIndex]);
}

function hold(token) {
  held?.setAttribute("aria-pressed", "false");
  held = token === held ? null : token;
  held?.setAttribute("aria-pressed", "true");
  if (token) show(token);
}

function focus(token) {
  if (!token) return;
  token.parentElement.querySelectorAll("[tabindex='0']").forEach((other) => { other.tabIndex = -1; });
  token.tabIndex = 0;
  token.focus();
}

function along(article, way) {
  do article = way > 0 ? article.nextElementSibling : article.previousElementSibling;
  while (article && !article.querySelector?.(".token"));
  return article?.querySelector(".token");
}

document.addEventListener("mouseover", (event) => {
  const moved = event.screenX !== pointer[0] || event.screenY !== pointer[1];
  pointer = [event.screenX, event.screenY];
  if (moved) reach(event.target);
});
document.addEventListener("focusin", (event) => reach(event.target));
document.addEventListener("click", (event) => {
  const token = event.target.closest(".token");
  if (token) hold(token);
});
document.addEventListener("toggle", (event) => {
  if (event.target.open && event.target.closest("article")) open(event.target.closest("article"));
}, true);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") return hold(null);
  const token = event.target.closest?.(".token");
  if (!token || event.ctrlKey || event.altKey || event.metaKey) return;
  const article = token.closest("article"), tokens = tokensOf(article), at = tokens.indexOf(token);
  const forth = getComputedStyle(token).direction === "rtl" ? -1 : 1;
  const moves = {
    ArrowRight: () => focus(tokens[at + forth]), ArrowLeft: () => focus(tokens[at - forth]),
    Home: () => focus(tokens[0]), End: () => focus(tokens.at(-1)),
    ArrowDown: () => focus(along(article, 1)), ArrowUp: () => focus(along(article, -1)),
    Enter: () => hold(token), " ": () => hold(token),
  };
  if (moves[event.key]) {
    event.preventDefault();
    moves[event.key]();
  }
});
