// The desk: a document segment by segment, from the suggestion to what is confirmed.

import {bytes, post} from "./api.js";
import {Editor} from "./editor.js";
import {el} from "./elements.js";
import {finder} from "./finder.js";
import {Offer, drawMatches, drawWords, pointOut} from "./offer.js";
import {prepare} from "./start.js";
import {continued, marked, plain, shown, tagsOf} from "./texts.js";

const $ = (id) => document.getElementById(id);
const STATES = {new: "not translated", draft: "a draft", translated: "translated before", locked: "locked", confirmed: "confirmed"};
const SIGNS = {draft: "~", translated: "✓", locked: "–", confirmed: "✓"};
const CHECKED = {
  codes: "tags", placeholders: "placeholders", length: "length", numbers: "numbers", untranslated: "as in the source", repeated: "said twice",
  unreadable: "not readable",
  terms: "missing term", forbidden: "forbidden term",
};
const BLOCK = 40;  // segments
const PAUSE = 120;  // milliseconds without typing after which the model says all that follows what is typed
const LONG = 400;  // milliseconds after which it is said that the model works

let open = null;  // the document: what start.js gives, with units, done and at
let kept = null;  // what the browser has of it
let offer = null;
let asking = null;  // the request for a suggestion
let find = null;
let typing = 0;  // the timer of the pause
let hurried = false;  // whether the next words are asked for
const editor = new Editor($("target"), $("ghost"), typed);

// What is said

function failed(error) {
  if (error.name !== "AbortError") $("problem").textContent = error.message;
}

const said = (text) => { $("said").textContent = text; };

/** A piece of work at whose failure the text stays as it is. */
const trying = (work) => async (...given) => {
  $("problem").textContent = "";
  try {
    await work(...given);
  } catch (error) {
    failed(error);
  }
};

// The list

/** A document that start.js gives; `before`: where the browser kept it, `work`: what was done with it. */
function begin(document_, before, work) {
  const units = document_.segments.map((one) => ({...one, tags: tagsOf(one.source).concat(tagsOf(one.target ?? ""))}));
  for (const {at, ...did} of work.units) Object.assign(units[at], did);
  open = {...document_, units, done: work.done, at: -1, saved: !work.done.length};
  kept = before;
  if (work.units.length) keep(kept.unit(work.units[0].at, open));
  find = finder(open, (text) => editor.insert(text, 1), failed);
  $("start").hidden = $("kept").hidden = true;
  for (const id of ["about", "list", "find", "undo", "save", "tmx"]) $(id).hidden = false;
  $("name").textContent = open.name;
  document.title = `${open.name} – tmnmt`;
  $("review").href = `review#${encodeURIComponent(open.session.id)}`;
  $("list").replaceChildren(...blocks(units.map(row)));
  $("source").lang = open.session.source;
  for (const id of ["offer", "target", "ghost"]) $(id).lang = open.session.target;
  for (const id of ["source", "offer", "target", "ghost"]) $(id).dir = "auto";
  progress();
  go(next(-1));
}

/** Rows together: what is out of view costs nothing but its block. */
function blocks(rows) {
  const made = [];
  for (let at = 0; at < rows.length; at += BLOCK) made.push(el("div", "block", ...rows.slice(at, at + BLOCK)));
  return made;
}

function row(unit, at) {
  const number = el("button", "number", String(at + 1));
  number.type = "button";
  number.tabIndex = -1;
  const [source, target] = [el("p", "source text", shown(unit.source)), el("p", "target text")];
  source.lang = open.session.source;
  target.lang = open.session.target;
  source.dir = target.dir = "auto";
  const made = el("div", "row", number, el("div", "texts", source, target), el("span", "state"));
  made.role = "listitem";
  made.lastElementChild.ariaHidden = "true";
  unit.row = made;
  draw(unit, at);
  return made;
}

function draw(unit, at) {
  unit.row.dataset.state = unit.state;
  unit.row.querySelector(".target").textContent = unit.target === null ? "" : shown(unit.target);
  unit.row.querySelector(".state").textContent = SIGNS[unit.state] ?? "";
  unit.row.firstElementChild.ariaLabel = `Segment ${at + 1}, ${STATES[unit.state]}`;
}

function progress() {
  const wanted = open.units.filter((unit) => unit.state !== "locked").length;
  const done = open.units.filter((unit) => ["confirmed", "translated"].includes(unit.state)).length;
  $("progress").max = wanted || 1;
  $("progress").value = done;
  $("count").textContent = `${done.toLocaleString("en")} of ${wanted.toLocaleString("en")}`;
  $("undo").disabled = !open.done.length;
  $("save").classList.toggle("main", done === wanted);
}

/** The next segment without a translation, from the beginning again where there is none after it. */
function next(after) {
  const isOpen = (unit) => unit.state === "new" || unit.state === "draft";
  const found = open.units.findIndex((unit, at) => at > after && isOpen(unit));
  return found >= 0 ? found : open.units.findIndex(isOpen);
}

// What the browser keeps

/** Where it cannot, the page asks before it is closed. */
function keep(written) {
  written.catch(() => { open.lost = true; });
}

// The segment at work

function go(at, text) {
  const unit = open.units[at];
  leave();
  if (!unit) {
    said("All segments are translated. Save the file.");
    $("save").focus();
    return;
  }
  open.at = at;
  unit.row.classList.add("active");
  unit.row.firstElementChild.ariaCurrent = "true";
  unit.row.append($("work"));
  $("work").hidden = false;
  $("source").textContent = shown(unit.source);
  $("notes").textContent = [unit.problem, ...unit.notes].filter(Boolean).join(" · ");
  $("notes").hidden = !$("notes").textContent;
  editor.open(text ?? unit.draft ?? (unit.target === null ? "" : shown(unit.target)));
  editor.field.readOnly = unit.state === "locked";
  clear();
  unit.row.scrollIntoView({block: "start"});
  editor.field.focus({preventScroll: true});
  if (unit.state !== "locked") trying(suggest)(unit);
  else said(`Segment ${at + 1} is locked.`);
}

function leave() {
  asking?.abort();
  clearTimeout(typing);
  const unit = open.units[open.at];
  if (!unit) return;
  takeDraft(unit);
  unit.row.classList.remove("active");
  unit.row.firstElementChild.ariaCurrent = null;
  $("work").hidden = true;
  document.querySelector("main").append($("work"));
  open.at = -1;
}

function takeDraft(unit) {
  const before = unit.draft;
  unit.draft = editor.text === shown(unit.target ?? "") ? undefined : editor.text;
  if (unit.draft !== before) keep(kept.unit(open.at, open));
}

function clear() {
  offer = null;
  $("offer").replaceChildren();
  $("origin").textContent = "";
  $("matches").replaceChildren();
  $("checks").hidden = $("sure").hidden = true;
  buttons();
}

function buttons() {
  $("confirm").disabled = !editor.whole.trim() || editor.field.readOnly;
  $("all").disabled = !offer || editor.text === offer.text || editor.field.readOnly;
}

async function suggest(unit) {
  asking = new AbortController();
  const {signal} = asking;
  const waiting = setTimeout(() => { $("origin").textContent = "The model works on it …"; }, LONG);
  const body = {texts: [unit.source], format: "xml", explain: true};
  try {
    const answer = await post(`v1/sessions/${open.session.id}/translate`, body, signal);
    if (signal.aborted) return;
    offer = new Offer(answer.translations[0], isOwn);
    unit.suggested = offer.plain;
    drawOffer(unit);
    if (unit.state === "new") typed();
  } finally {
    clearTimeout(waiting);
  }
}

function typed() {
  buttons();
  clearTimeout(typing);
  const unit = open?.units[open.at];
  if (unit) takeDraft(unit);
  if (!offer || isInTag(editor.text, unit) || !(editor.wants || editor.isBegun)) return;
  asking?.abort();
  if (!unit.tags.length) trying(nextWords)(unit);
  typing = setTimeout(() => trying(goOn)(unit), PAUSE);
}

/** The next words, at every letter with which the suggestion does not go on; one request at a time. */
async function nextWords(unit) {
  if (hurried) return;
  hurried = true;
  try {
    for (let text; editor.wants && editor.text !== text && unit === open.units[open.at];) {
      text = editor.text;
      const body = {text: unit.source, format: "xml", prefix: text, session: open.session.id, whole: false};
      const done = await post("v1/complete", body);
      if (unit === open.units[open.at] && editor.wants && done.text !== text) editor.offer(done.text, true);
    }
  } finally {
    hurried = false;
  }
}

const isInTag = (text, unit) => unit.tags.length > 0 && /<[^<>]*$/.test(text);

/** A suggestion that begins with what is typed, where the one that there is does not. */
async function goOn(unit) {
  if (!editor.wants && !editor.isBegun) return;
  asking?.abort();
  asking = new AbortController();
  const {signal} = asking, text = editor.text;
  const prefix = plain(marked(text, unit.tags));
  const body = {text: unit.source, format: "xml", prefix, session: open.session.id};
  const done = await post("v1/complete", body, signal);
  if (signal.aborted || editor.text !== text) return;
  const whole = continued(text, done.text, unit.tags);
  offer = new Offer({text: marked(whole, unit.tags), segments: [done]}, isOwn);
  drawOffer(unit, true);
}

const isOwn = (match) => match.id < 0 || open.done.some((one) => one.src === match.src && one.tgt === match.tgt);

function drawOffer(unit, goesOn = false) {
  const told = (what, word) => {
    $("origin").textContent = what || offer?.whole || "";
    if (offer) pointOut($("matches"), offer, word);
  };
  drawWords($("offer"), offer, told, (text) => editor.replace(text));
  drawMatches($("matches"), offer, plain(unit.source), open.session, (text) => editor.replace(text));
  told("");
  const {low} = offer.segment;
  $("sure").textContent = low ? "the model is unsure" : offer.sure;
  $("sure").classList.toggle("low", low);
  $("sure").hidden = !$("sure").textContent;
  drawChecks(offer.segment);
  if (goesOn || unit.state === "new" || !editor.text) editor.offer(offer.text);
  buttons();
  const best = offer.matches[0];
  const match = best ? ` Best match ${best.worth ?? Math.round(100 * best.score)} %.` : " No match.";
  said(`Segment ${open.at + 1} of ${open.units.length}. Suggestion: ${offer.text}.${match}`);
}

function drawChecks({missing_numbers: numbers, checks}) {
  const found = checks.map(({name, what}) => `${CHECKED[name]}: ${what}`);
  if (numbers.length) found.unshift(`missing number: ${numbers.join(", ")}`);
  $("checks").replaceChildren(...found.map((what) => el("li", "", what)));
  $("checks").hidden = !found.length;
}

// What is done with it

const confirm = trying(async () => {
  const at = open.at, unit = open.units[at], text = editor.whole.trim();
  if (!unit || !text || editor.field.readOnly) return;
  const target = marked(text, unit.tags);
  const pair = {src: plain(unit.source).trim(), tgt: plain(target).trim()};
  $("confirm").disabled = true;
  if (/[^\s]/.test(pair.src) && pair.tgt) {
    await post(`v1/sessions/${open.session.id}/confirm`, {
      src: unit.source, tgt: target, format: "xml", keys: editor.keys,
      ...(unit.suggested === undefined ? {} : {suggested: unit.suggested}),
    });
    open.done.push({at, before: {state: unit.state, target: unit.target}, ...pair, sent: {src: unit.source, tgt: target}});
    keep(kept.done(open));
  }
  [unit.state, unit.target, unit.draft, open.saved] = ["confirmed", target, undefined, false];
  keep(kept.unit(at, open));
  editor.open(text);
  draw(unit, at);
  progress();
  go(next(at));
});

const undo = trying(async () => {
  const last = open.done.at(-1);
  if (!last) return;
  await post(`v1/sessions/${open.session.id}/undo`, {});
  open.done.pop();
  keep(kept.done(open));
  const unit = open.units[last.at], text = shown(unit.target);
  Object.assign(unit, last.before, {draft: undefined});
  leave();
  keep(kept.unit(last.at, open));
  draw(unit, last.at);
  progress();
  go(last.at, text);
  said(`Segment ${last.at + 1} is taken back.`);
});

const save = trying(async () => {
  const targets = open.units.map((unit) => (unit.state === "confirmed" ? unit.target : ""));
  const {name, content, sentences, format, session} = open;
  const {source, target} = session;
  const file = await bytes("v1/documents/fill", {name, content, source, target, sentences, format, targets});
  const isText = open.kind === "text" || open.kind === "paragraphs";
  download(file, isText ? name.replace(/(\.[^.]*)?$/, `.${session.target}$1`) : name);
  open.saved = true;
  keep(kept.forget());
});

const saveTmx = trying(async () => {
  const {source, target, id} = open.session;
  download(await bytes(`v1/sessions/${id}/tmx`), `${open.name}.${source}-${target}.tmx`);
});

function download(file, name) {
  const link = el("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
  said(`${name} is saved.`);
}

function takeAll() {
  if (!offer || editor.field.readOnly) return;
  if (editor.isBegun) editor.takeRest();
  else editor.replace(offer.text);
}

function step(way) {
  const at = (open.at < 0 && way < 0 ? open.units.length : open.at) + way;
  if (open.units[at]) go(at);
}

function jump() {
  $("which").max = open.units.length;
  $("which").value = $("jump").returnValue = "";
  $("jump").showModal();
}

function take(number) {
  const match = offer?.matches[number - 1];
  if (match && !editor.field.readOnly) editor.replace(match.tgt);
}

// Keys

const modal = () => document.querySelector("dialog[open]");

const KEYS = {
  "ctrl Enter": () => confirm(), "ctrl shift Enter": () => undo(), "alt Enter": takeAll,
  "alt ArrowDown": () => step(1), "alt ArrowUp": () => step(-1),
  "ctrl k": () => find(String(getSelection()).trim() || selected()), "ctrl s": () => save(), "ctrl g": jump,
  ...Object.fromEntries([1, 2, 3, 4, 5].map((n) => [`ctrl ${n}`, () => take(n)])),
};

const selected = () => editor.text.slice(editor.field.selectionStart, editor.field.selectionEnd).trim();

document.addEventListener("keydown", (event) => {
  if (!open || modal() || event.isComposing) return;
  const held = [["ctrl", event.ctrlKey || event.metaKey], ["shift", event.shiftKey], ["alt", event.altKey]];
  const name = [...held.filter(([, is]) => is).map(([key]) => key), event.key].join(" ");
  const inField = event.target === editor.field;
  if (KEYS[name]) KEYS[name]();
  else if (!(inField && name === "Tab" && editor.takeWord()) && !(inField && name === "Escape" && editor.hide())) return;
  event.preventDefault();
  buttons();
});

$("offer").addEventListener("keydown", (event) => {
  if (event.key === "Escape") editor.field.focus();
});
$("list").addEventListener("click", (event) => {
  const at = open.units.findIndex((unit) => unit.row === event.target.closest(".row"));
  if (at >= 0 && at !== open.at && !$("work").contains(event.target)) go(at);
});
for (const [id, work] of Object.entries({confirm, undo, save, tmx: saveTmx, all: takeAll, find: () => find(selected())})) {
  $(id).addEventListener("click", () => work());
}
$("jump").addEventListener("close", () => { if ($("jump").returnValue && $("which").value) go($("which").value - 1); });
$("keys").addEventListener("click", () => $("help").showModal());
addEventListener("beforeunload", (event) => {
  if (open && !open.saved && open.lost) event.preventDefault();
});

prepare(begin, failed).catch(failed);
