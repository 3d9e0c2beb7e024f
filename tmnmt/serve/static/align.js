// Aligned documents, mended by a person: what is doubtful first, each change kept at once.

import {get, post} from "./api.js";
import {el, text} from "./elements.js";
import {keyOf} from "./keys.js";
import {boundaryDown, boundaryUp, changed, decide, isDoubtful, merge, split, stretches} from "./links.js";
import {percent, phrase} from "./phrases.js";
import {Problems} from "./problems.js";

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const BLOCK = 40;  // links that are drawn together
const problems = new Problems($("problem"));
const EDITS = {
  d: (at) => decide(open.links, at, "dropped"),
  m: (at) => merge(open.links, at),
  s: (at) => split(open.links, at),
  "shift ArrowUp": (at) => boundaryUp(open.links, at, "sources"),
  "shift ArrowDown": (at) => boundaryDown(open.links, at, "sources"),
  "alt ArrowUp": (at) => boundaryUp(open.links, at, "targets"),
  "alt ArrowDown": (at) => boundaryDown(open.links, at, "targets"),
};
const MOVES = {
  ArrowDown: () => step(1), ArrowUp: () => step(-1), n: () => enter(nextDoubtful(here())), Enter: accept, u: undo,
  "ctrl z": undo, "?": help, "shift ?": help,
};

let open = null;  // the document: what the server gives, with its name and what can be undone
let documents = [];
let active = null;  // the link at work
let keeping = Promise.resolve();  // the last of the changes that are on their way
let waiting = 0;  // of them
const rows = new Map();  // of links: what is drawn of them

const said = (words) => { $("said").textContent = words; };
const here = () => open.links.indexOf(active);
const doubtful = () => open.links.filter((link) => isDoubtful(link, open.doubtful_below)).length;

// Drawing

function sentences(link, side, language) {
  const cell = el("div", "side");
  for (const number of link[side]) {
    cell.append(el("div", "sentence", el("span", "number", String(number + 1)), text("span", language, open[side][number])));
  }
  if (!link[side].length) cell.append(el("span", "quiet", side === "sources" ? phrase("no source") : phrase("no translation")));
  return cell;
}

/** Lines from every source sentence to every target sentence. */
function tie({sources, targets}) {
  const drawing = document.createElementNS(SVG, "svg");
  for (const [name, value] of [["viewBox", "0 0 100 100"], ["preserveAspectRatio", "none"], ["aria-hidden", "true"]]) {
    drawing.setAttribute(name, value);
  }
  const height = (at, of) => (100 * (at + 0.5)) / of;
  sources.forEach((_, at) => targets.forEach((__, to) => {
    const line = document.createElementNS(SVG, "line");
    const ends = {x1: 0, x2: 100, y1: height(at, sources.length), y2: height(to, targets.length)};
    for (const [name, value] of Object.entries(ends)) line.setAttribute(name, value);
    drawing.append(line);
  }));
  return drawing;
}

const STANDING = {accepted: phrase("accepted"), dropped: phrase("dropped"), doubtful: phrase("doubtful"), sure: ""};

function standing(link) {
  return link.decision || (isDoubtful(link, open.doubtful_below) ? "doubtful" : "sure");
}

function row(link) {
  const state = standing(link), share = link.decision ? STANDING[state] : percent(link.probability);
  const middle = el("div", "middle", tie(link), el("span", "badge", share));
  const drawn = el("div", "link", sentences(link, "sources", open.source), middle, sentences(link, "targets", open.target));
  drawn.role = "listitem";
  drawn.tabIndex = -1;
  drawn.dataset.state = state;
  const named = {sources: spoken(link.sources), targets: spoken(link.targets)};
  drawn.ariaLabel = phrase("{sources} with {targets}: {state}", {...named, state: [share, STANDING[state]].filter(Boolean).join(", ")});
  drawn.addEventListener("focus", () => settle(link));
  drawn.addEventListener("click", () => { if (active !== link) enter(open.links.indexOf(link)); });
  rows.set(link, drawn);
  return drawn;
}

const spoken = (numbers) => (numbers.length ? numbers.map((number) => number + 1).join(phrase(" and ")) : phrase("none"));

function list(links, title) {
  const made = el("div", "ties", ...blocks(links.map(row)));
  made.role = "list";
  made.ariaLabel = title;
  return made;
}

function blocks(drawn) {
  const made = [];
  for (let at = 0; at < drawn.length; at += BLOCK) {
    const block = el("div", "block", ...drawn.slice(at, at + BLOCK));
    block.role = "presentation";
    made.push(block);
  }
  return made;
}

function draw() {
  rows.clear();
  $("actions").hidden = true;
  document.body.append($("actions"));
  const isAll = $("view").value === "all", parts = isAll ? [[0, open.links.length]] : stretches(open.links, open.doubtful_below);
  $("links").replaceChildren(...parts.filter(([from, to]) => from < to).map(([from, to], at) => {
    const title = isAll ? phrase("All links") : phrase("Stretch {number} of {count}", {number: at + 1, count: parts.length});
    return el("section", "stretch", el("h2", "quiet", title), list(open.links.slice(from, to), title));
  }));
  $("none").hidden = rows.size > 0;
  active = null;
  tell();
}

/** The rows of a change: those of links that are gone, and in their place the new ones. */
function redraw(gone, links) {
  const drawn = gone.map((link) => rows.get(link)).filter(Boolean);
  for (const link of gone) rows.delete(link);
  if (!drawn.length) {
    draw();
    return;
  }
  drawn[0].before(...links.map(row));
  for (const one of drawn) one.remove();
}

function tell() {
  const left = doubtful(), decided = open.links.filter((link) => link.decision).length;
  $("count").textContent = phrase("{left} doubtful, {decided} decided, {count} links", {left, decided, count: open.links.length});
  $("undo").disabled = !open.undone.length;
  const option = [...$("document").options].find(({value}) => value === open.name);
  if (option) option.textContent = titled(documents.find(({name}) => name === open.name).title, left);
}

const titled = (title, count) => (count ? phrase("{title} ({count} doubtful)", {title, count}) : phrase("{title} (nothing doubtful)", {title}));

// The link at work

/** The link that has the focus is the one at work, and has the buttons under it. */
function settle(link) {
  if (active && rows.get(active)) Object.assign(rows.get(active), {tabIndex: -1, ariaCurrent: null});
  active = link;
  const drawn = rows.get(link);
  Object.assign(drawn, {tabIndex: 0, ariaCurrent: "true"});
  $("actions").hidden = false;
  drawn.append($("actions"));
}

function enter(at) {
  const drawn = rows.get(open.links[at]);
  if (!drawn) return;
  drawn.focus({preventScroll: true});
  drawn.scrollIntoView({block: "nearest"});
}

/** The next link that is drawn, or the one before. */
function step(by) {
  const drawn = [...rows.entries()].sort(([, one], [, other]) => (one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1));
  const at = drawn.findIndex(([link]) => link === active) + by;
  if (drawn[at]) enter(open.links.indexOf(drawn[at][0]));
}

/** Where the next doubtful link stands that is drawn behind this one, else the first one; -1: there is none. */
function nextDoubtful(from) {
  const drawn = [...document.querySelectorAll(".link")], all = [...rows.entries()];
  const links = drawn.map((one) => all.find(([, other]) => other === one)[0]);
  const start = links.indexOf(open.links[from]) + 1;
  const order = [...links.slice(start), ...links.slice(0, start)];
  const found = order.find((link) => isDoubtful(link, open.doubtful_below));
  return found ? open.links.indexOf(found) : -1;
}

// Changes

/** Makes a change, and answers whether there was one. */
function change(edit) {
  if (!edit) return false;
  const gone = open.links.slice(edit.start, edit.start + edit.count);
  const [links, back] = changed(open.links, edit);
  open.links = links;
  document.body.append($("actions"));
  $("actions").hidden = true;
  redraw(gone, edit.links);
  keep(edit);
  open.undone.push(back);
  tell();
  return true;
}

function keep(edit) {
  const document_ = open;
  waiting++;
  keeping = keeping.then(async () => {
    if (document_ !== open) return;
    const {version} = await post(`alignments/${document_.name}`, {...edit, version: document_.version});
    document_.version = version;
  }).catch(async (error) => {
    problems.show("keep", `${error.message} ${phrase("What is shown now is what was kept.")}`);
    if (document_ === open) await load(document_.name);
  }).finally(() => { waiting--; });
}

function edited(key) {
  const at = here();
  if (at < 0 || !change(EDITS[key](at))) return;
  enter(Math.min(at, open.links.length - 1));
}

function accept() {
  const at = here();
  if (at < 0) return;
  change(decide(open.links, at, "accepted"));
  const link = open.links[at], next = link.decision ? nextDoubtful(at) : at;
  enter(next < 0 ? at : next);
  if (!doubtful()) said(phrase("Nothing is doubtful in this document any more."));
}

function undo() {
  const back = open.undone.pop();
  if (!back) return;
  change(back);
  open.undone.pop();  // what would take that back
  tell();
  enter(back.start);
}

async function write() {
  await keeping;
  try {
    const {memory, segments} = await post("memory", {});
    said(phrase("{memory}: {count} segments written.", {memory, count: segments}));
    problems.clear("write");
  } catch (error) {
    problems.show("write", error.message);
  }
}

function help() {
  $("help").showModal();
}

// The page

async function load(name) {
  const found = await get(`alignments/${name}`);
  open = {...found, name, undone: []};
  draw();
  enter(Math.max(nextDoubtful(-1), open.links.length && $("view").value === "all" ? 0 : -1));
}

document.addEventListener("keydown", (event) => {
  const key = keyOf(event);
  if (key === "ctrl s") {
    event.preventDefault();
    write();
    return;
  }
  const isRow = document.activeElement?.classList.contains("link");
  const work = EDITS[key] ? () => edited(key) : MOVES[key];
  if (!isRow || !work || $("help").open) return;
  event.preventDefault();
  work();
});
$("actions").addEventListener("click", (event) => {
  const key = event.target.closest("button")?.dataset.key;
  if (!key) return;
  event.stopPropagation();
  if (EDITS[key]) edited(key);
  else MOVES[key]();
});
$("undo").addEventListener("click", undo);
$("write").addEventListener("click", write);
$("keys").addEventListener("click", help);
$("view").addEventListener("change", () => {
  draw();
  enter(Math.max(nextDoubtful(-1), 0));
});
$("document").addEventListener("change", async () => {
  await keeping;
  await load($("document").value).catch((error) => problems.show("load", error.message));
});
addEventListener("beforeunload", (event) => { if (waiting) event.preventDefault(); });

try {
  ({documents} = await get("alignments"));
  documents.sort((one, other) => other.doubtful - one.doubtful);
  for (const {name, title, doubtful: left} of documents) $("document").append(new Option(titled(title, left), name));
  if (documents.length) await load(documents[0].name);
} catch (error) {
  problems.show("load", error.message);
}
