// The desk: a document segment by segment, from the suggestion to what is confirmed.

import {bytes, get, post} from "./api.js";
import {Editor} from "./editor.js";
import {el, text as paragraph} from "./elements.js";
import {finder} from "./finder.js";
import {keyOf} from "./keys.js";
import {Offer, drawMatches, drawWords, pointOut} from "./offer.js";
import {Problems} from "./problems.js";
import {base, happen, isOpen, isSeen, restore, segment, stateOf, textOf} from "./segments.js";
import {prepare} from "./start.js";
import {Tabs} from "./tabs.js";
import {continued, marked, plain, sentence, shown, tagProblem, tagsOf} from "./texts.js";

const $ = (id) => document.getElementById(id);
const STATES = {
  new: "not translated", draft: "a draft", translated: "translated before", locked: "locked", confirming: "being confirmed",
  confirmed: "confirmed",
};
const SIGNS = {draft: "~", translated: "✓", locked: "–", confirming: "…", confirmed: "✓"};
const CHECKED = {
  codes: "tags", placeholders: "placeholders", length: "length", untranslated: "as in the source", repeated: "said twice",
  ends: "another end", spaces: "blanks", characters: "invisible characters", unreadable: "not readable", numbers: "numbers",
  replay: "as a match", terms: "missing term", forbidden: "forbidden term", meaning: "which meaning?",
};
const BLOCK = 40;  // segments
const MATCHES = 5;  // that are shown where no model is served
const PAUSE = 120;  // milliseconds without typing after which the model says all that follows what is typed
const NAMED = 10;  // segments whose reasons are told after a file was saved
const LONG = 400;  // milliseconds after which it is said that the model works

let open = null;  // the document: what start.js gives, with units, done and at
let kept = null;  // what the browser has of it
let tabs = null;  // others that have it, too
let offer = null;
let asking = null;  // the request for a suggestion
let find = null;
let typing = 0;  // the timer of the pause
let hurried = false;  // whether the next words are asked for
let tickets = 0;  // of requests to confirm
let undoing = false;
const sending = new Set();  // requests to confirm that are under way
const editor = new Editor($("target"), $("ghost"), $("room"), typed);
const problems = new Problems($("problem"));

// What is said

const said = (text) => { $("said").textContent = text; };

function failed(name, error) {
  if (error.name !== "AbortError") problems.show(name, error.message);
}

/** A piece of work at whose failure the text stays as it is; its reason stays until the same goes well, or it is
    dismissed. */
const trying = (name, work) => async (...given) => {
  try {
    await work(...given);
    problems.clear(name);
  } catch (error) {
    failed(name, error);
  }
};

// The list

/** A document that start.js gives; `before`: where the browser keeps it, `work`: what was done with it, which is kept anew
    where it `isNew` there. Whether it is kept. */
function begin(document_, before, work) {
  const units = document_.segments.map((one) => (
    {...segment(one), tags: tagsOf(one.source).concat(tagsOf(one.target ?? ""))}));
  for (const one of work.units) restore(units[one.at], one);
  open = {...document_, units, done: work.done, at: -1, visit: 0, changed: !work.saved && work.units.length > 0, storing: 0};
  kept = before;
  tabs = new Tabs(open.session.id, receive);
  tabs.tell("hello");
  find = finder(open, insert, failed.bind(null, "find"));
  $("start").hidden = $("kept").hidden = true;
  for (const id of ["about", "list", "find", "undo", "save", "tmx"]) $(id).hidden = false;
  $("name").textContent = open.name;
  document.title = `${open.name} – tmnmt`;
  $("add-term").hidden = open.session.model === null;
  $("review").href = `review#${encodeURIComponent(open.session.id)}`;
  $("list").replaceChildren(...blocks(units.map(row)));
  $("source").lang = open.session.source;
  for (const id of ["offer", "target", "ghost"]) $(id).lang = open.session.target;
  for (const id of ["source", "offer", "target", "ghost", "room"]) $(id).dir = "auto";
  progress();
  go(next(-1));
  return work.isNew ? keep(() => kept.about(open)) : true;
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
  const [source, target] = [paragraph("p", open.session.source, shown(unit.source)), paragraph("p", open.session.target)];
  source.classList.add("source");
  target.classList.add("target");
  const made = el("div", "row", number, el("div", "texts", source, target), el("span", "state"));
  made.role = "listitem";
  made.lastElementChild.ariaHidden = "true";
  unit.row = made;
  draw(unit, at);
  return made;
}

function draw(unit, at) {
  const state = stateOf(unit);
  unit.row.dataset.state = state;
  unit.row.toggleAttribute("data-checks", unit.checks.length > 0);
  unit.row.querySelector(".target").textContent = textOf(unit);
  const signs = [SIGNS[state], unit.checks.length ? "!" : "", Object.keys(unit.others).length ? "⇄" : ""];
  unit.row.querySelector(".state").textContent = signs.filter(Boolean).join("");
  const more = unit.checks.length ? ", the checks found something" : "";
  unit.row.firstElementChild.ariaLabel = `Segment ${at + 1}, ${STATES[state]}${more}`;
}

function progress() {
  const wanted = open.units.filter((unit) => unit.state !== "locked").length;
  const done = open.units.filter((unit) => ["confirmed", "translated"].includes(stateOf(unit))).length;
  $("progress").max = wanted || 1;
  $("progress").value = done;
  $("count").textContent = `${done.toLocaleString("en")} of ${wanted.toLocaleString("en")}`;
  $("undo").disabled = !open.done.length;
  $("save").classList.toggle("main", done === wanted);
}

/** The next segment without a translation, from the beginning again where there is none after it. */
function next(after) {
  const found = open.units.findIndex((unit, at) => at > after && isOpen(unit));
  return found >= 0 ? found : open.units.findIndex(isOpen);
}

// What the browser keeps

/** Whether it can. Where it cannot, the page says so, and asks before it is closed. */
async function keep(written) {
  open.storing++;
  try {
    await written();
    return true;
  } catch {
    if (!open.lost) problems.show("kept", "This browser keeps nothing of the document: save the file before you close the tab.");
    open.lost = true;
    return false;
  } finally {
    open.storing--;
  }
}

/** Keeps a segment, tells other tabs, and draws what they have kept meanwhile. */
function keepUnit(at) {
  open.changed = true;
  const unit = open.units[at];
  unit.storing = (unit.storing ?? 0) + 1;
  keep(async () => {
    const record = await kept.unit(at, open).finally(() => unit.storing--);
    tabs.tell("unit", {at, record});
    happen(unit, "settle", {record});
    redraw(at);
  });
}

function redraw(at) {
  const unit = open.units[at];
  draw(unit, at);
  if (at === open.at) drawOthers(unit);
}

/** What another tab tells. */
function receive({kind, ...told}) {
  if (kind === "hello" || kind === "here") {
    problems.show("tabs", "This document is open in another tab, too. Each keeps what it writes; where both write one segment, you see both texts.");
  } else if (kind === "unit") adopt(told.at, told.record);
  else if (kind === "done") trying("tabs", async () => { open.done = await kept.done(); progress(); })();
}

/** Another tab has kept a segment. The one at work keeps its text, and the other's stands below it. */
function adopt(at, record) {
  const unit = open.units[at], before = textOf(unit);
  const busy = at === open.at || unit.state === "confirming" || unit.storing > 0;
  happen(unit, "adopt", {record, busy});
  if (at === open.at && editor.text === before && textOf(unit) !== before) editor.open(textOf(unit), shown(unit.source));
  redraw(at);
  progress();
}

/** A segment that was left without a text of its own gets what another tab has kept of it. */
function takeOver(at) {
  keep(async () => {
    const record = await kept.read(at);
    if (record) adopt(at, record);
  });
}

const isUnsaved = () => open && (open.changed || open.storing > 0 || open.lost || sending.size > 0);

// The segment at work

function go(at) {
  const unit = open.units[at];
  leave();
  if (!unit) {
    said("All segments are translated. Save the file.");
    $("save").focus();
    return;
  }
  open.at = at;
  open.visit++;
  unit.row.classList.add("active");
  unit.row.firstElementChild.ariaCurrent = "true";
  unit.row.append($("work"));
  $("work").hidden = false;
  $("source").textContent = shown(unit.source);
  $("notes").textContent = [unit.problem, unit.context, unit.plural, ...unit.notes].filter(Boolean).join(" · ");
  $("notes").hidden = !$("notes").textContent;
  editor.open(textOf(unit), shown(unit.source));
  editor.field.readOnly = unit.state === "locked";
  clear();
  drawOthers(unit);
  unit.row.scrollIntoView({block: "start"});
  editor.field.focus({preventScroll: true});
  if (unit.state !== "locked") trying("suggest", suggest)(unit);
  else said(`Segment ${at + 1} is locked.`);
}

function leave() {
  asking?.abort();
  clearTimeout(typing);
  const {at} = open, unit = open.units[at];
  if (!unit) return;
  if (unit.text === null && Object.keys(unit.others).length) takeOver(at);
  unit.row.classList.remove("active");
  unit.row.firstElementChild.ariaCurrent = null;
  $("work").hidden = true;
  document.querySelector("main").append($("work"));
  open.at = -1;
}

/** What stands in the field is the segment's text. */
function write(unit) {
  const before = textOf(unit), {state} = unit;
  if (!happen(unit, "write", {text: editor.text})) return;
  if (textOf(unit) === before && unit.state === state) return;
  problems.clear(unit);
  keepUnit(open.at);
  draw(unit, open.at);
  progress();
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
  const unit = open?.units[open.at];
  if (!unit) return;
  const isLocked = editor.field.readOnly, isSending = unit.state === "confirming";
  $("confirm").setAttribute("aria-disabled", String(isSending || isLocked || !editor.whole.trim()));
  $("confirm").firstChild.textContent = isSeen(unit, editor.text) ? "Confirm all the same " : isSending ? "Confirming … " : "Confirm ";
  $("target").parentElement.ariaBusy = String(isSending);
  $("all").disabled = !offer || editor.text === offer.text || isLocked;
  $("discard").hidden = unit.state !== "draft";
  drawFound(unit);
}

/** What the checks found in what was to be confirmed. */
function drawFound(unit) {
  $("found-wrong").replaceChildren(...unit.checks.map((one) => el("li", "", check(one))));
  $("found-wrong").hidden = !unit.checks.length;
}

/** What other tabs have written for the segment. */
function drawOthers(unit) {
  $("others").hidden = !Object.keys(unit.others).length;
  $("others").replaceChildren(...Object.entries(unit.others).map(([tab, text]) => {
    const use = el("button", "", "Use"), drop = el("button", "", "Drop");
    use.type = drop.type = "button";
    use.addEventListener("click", () => editor.replace(text));
    drop.addEventListener("click", () => {
      delete unit.others[tab];
      drawOthers(unit);
      keepUnit(open.at);
    });
    return el("li", "", el("span", "quiet", "In another tab:"), paragraph("span", open.session.target, text), use, drop);
  }));
}

async function suggest(unit) {
  asking = new AbortController();
  const {signal} = asking;
  const waiting = setTimeout(() => { $("origin").textContent = isModelless() ? "The memories are searched …" : "The model works on it …"; }, LONG);
  const body = {texts: [unit.source], format: "xml", explain: true};
  try {
    const answer = isModelless() ? await lookedUp(unit, signal) : await post(`v1/sessions/${open.session.id}/translate`, body, signal);
    if (signal.aborted) return;
    offer = new Offer(answer.translations[0], isOwn);
    unit.suggested = offer.plain;
    drawOffer(unit);
    if (isFresh(unit)) continueWriting(unit);
  } finally {
    clearTimeout(waiting);
  }
}

/** Adds a term to the session; the segment at work is suggested anew, with it. What was typed stays. */
async function addTerm() {
  const [source, target] = [$("term-source").value.trim(), $("term-target").value.trim()];
  await post(`v1/sessions/${open.session.id}/terms`, {source, target});
  $("add-term").reset();
  asking?.abort();
  if (open.at >= 0) await suggest(open.units[open.at]);
}

const isModelless = () => open.session.model === null;

/** What the memories have, where no model is served: the target of a full match, else nothing, and the matches. */
async function lookedUp(unit, signal) {
  const search = {texts: [plain(unit.source)], k: MATCHES};
  const answers = await Promise.all(open.session.memories.map((name) => post(`v1/memories/${encodeURIComponent(name)}/search`, search, signal)));
  const worth = (match) => match.worth ?? 100 * match.score;
  const matches = answers.flatMap(({results}) => results[0].matches).sort((a, b) => worth(b) - worth(a)).slice(0, MATCHES);
  const [best] = matches;
  const full = best && !unit.tags.length && worth(best) >= 100 ? best.adapted || best.tgt : "";
  const origin = full ? (best.adapted ? "adapted" : "memory") : "";
  const segment = {matches, tokens: [], missing_numbers: [], checks: [], origin, low: false};
  return {translations: [{text: marked(full, []), segments: [segment]}]};
}

function typed() {
  const unit = open?.units[open.at];
  if (!unit) return;
  write(unit);
  buttons();
  continueWriting(unit);
}

function continueWriting(unit) {
  clearTimeout(typing);
  if (!offer || isModelless() || isInTag(editor.text, unit) || !(editor.wants || editor.isBegun)) return;
  asking?.abort();
  if (!unit.tags.length) trying("suggest", nextWords)(unit);
  typing = setTimeout(() => trying("suggest", goOn)(unit), PAUSE);
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

/** Whether the file has nothing for it, and nothing was confirmed. */
const isFresh = (unit) => unit.file.state === "new" && unit.confirmed === null;

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
  if (goesOn || isFresh(unit) || !editor.text) editor.offer(offer.text);
  buttons();
  const best = offer.matches[0];
  const match = best ? ` Best match ${best.worth ?? Math.round(100 * best.score)} %.` : " No match.";
  said(`Segment ${open.at + 1} of ${open.units.length}. Suggestion: ${sentence(offer.text)}${match}`);
}

const check = ({name, what}) => `${CHECKED[name] ?? name}: ${what}`;

function drawChecks({missing_numbers: numbers, checks}) {
  const found = checks.filter(({name}) => name !== "numbers" || !numbers.length).map(check);
  if (numbers.length) found.unshift(`missing number: ${numbers.join(", ")}`);
  $("checks").replaceChildren(...found.map((what) => el("li", "", what)));
  $("checks").hidden = !found.length;
}

// What is done with it

/** Confirms what stands in the field, in an empty one the suggestion. The page goes on when the server has it, and nothing
    else was written meanwhile. */
async function confirm() {
  const {at, visit} = open, unit = open.units[at];
  if (!unit || editor.field.readOnly || unit.state === "confirming" || undoing) return;
  if (!editor.text.trim()) {
    if (editor.text || !editor.rest) return;
    editor.takeRest(0);
  }
  const text = editor.text, despite = isSeen(unit, text);
  if (unit.state === "confirmed") return go(next(at));  // as it stands
  const ticket = ++tickets;
  if (!happen(unit, "press", {text, ticket})) return;
  clearTimeout(typing);
  asking?.abort();
  keepUnit(at);
  redraw(at);
  buttons();
  const work = send(unit, at, text.trim(), ticket, despite).finally(() => sending.delete(work));
  sending.add(work);
  await work;
  if (visit !== open.visit) return;
  buttons();
  if (unit.state === "confirmed" && !modal()) go(next(at));
  else if (!offer) trying("suggest", suggest)(unit);
}

/** One request; what comes of it. */
async function send(unit, at, text, ticket, despite) {
  const target = marked(text, unit.tags), before = unit.confirmed;
  const pair = {src: plain(unit.source).trim(), tgt: plain(target).trim()};
  const isPair = Boolean(pair.src && pair.tgt);
  const more = unit.suggested === undefined ? {} : {suggested: unit.suggested};
  const on_checks = despite ? "tell" : "refuse";
  const request = `${at}.${open.done.filter((pair) => pair.at === at).length}`;  // the same where an answer was lost
  const body = {src: unit.source, tgt: target, format: "xml", keys: editor.keys, on_checks, request, segment: String(at), ...more};
  try {
    const problem = tagProblem(text, unit.tags, plain(unit.source) + plain(unit.file.target ?? ""));
    if (problem) throw new Error(problem);
    const {checks} = isPair ? await post(`v1/sessions/${open.session.id}/confirm`, body) : {};
    happen(unit, "accept", {ticket, target, checks, at: Date.now()});
    problems.clear(unit);
    if (isPair) notePair({at, before, ...pair, sent: {src: unit.source, tgt: target, segment: String(at)}});
  } catch (error) {
    const reason = error.checks ? `${sentence(error.checks.map(check).join("; "))} Confirm once more to take it all the same.` : error.message;
    happen(unit, "refuse", {ticket, reason, checks: error.checks});
    problems.show(unit, `Segment ${at + 1} is not confirmed: ${reason}`);
  }
  keepUnit(at);
  redraw(at);
  progress();
}

/** Notes a pair that the server has taken. */
function notePair(entry) {
  const pair = {...entry, n: Math.max(Date.now(), (open.done.at(-1)?.n ?? 0) + 1)};
  open.done.push(pair);
  keep(async () => {
    await kept.add(pair, open);
    tabs.tell("done");
  });
}

/** Takes back what was confirmed last: then the segment has what was confirmed for it before, if anything was. */
async function undo() {
  if (undoing || sending.size || !open.done.length) return;
  undoing = true;
  const {at} = open, {text} = editor;
  try {
    const others = await kept.done().catch(() => []);  // what other tabs confirmed, too
    const entry = [...others, ...open.done].reduce((last, one) => (one.n > last.n ? one : last));
    await takenBack(entry);
    takeBack(entry);
    if (open.at === at && editor.text === text && !modal()) go(entry.at);  // else somebody writes elsewhere
    said(`Segment ${entry.at + 1} is taken back.`);
  } finally {
    undoing = false;
  }
}

/** The server has what it had before a pair was confirmed. */
async function takenBack({at, n, before, sent}) {
  const path = `v1/sessions/${open.session.id}`, {segment} = sent;  // none where the page was an earlier one
  if (segment === undefined) return post(`${path}/undo`, {});
  if (before !== null && plain(before).trim()) return post(`${path}/confirm`, {...sent, tgt: before, format: "xml", request: `${at}.back.${n}`});
  return post(`${path}/undo`, {segment}).catch((error) => {
    if (error.status !== 409) throw error;  // taken back elsewhere
  });
}

function takeBack(entry) {
  open.done = open.done.filter((one) => one.n !== entry.n);
  keep(async () => {
    await kept.remove(entry, open);
    tabs.tell("done");
  });
  happen(open.units[entry.at], "revert", {confirmed: entry.before ?? null, at: Date.now()});
  keepUnit(entry.at);
  redraw(entry.at);
  progress();
}

function discard() {
  const unit = open.units[open.at];
  if (unit?.state === "draft") editor.replace(base(unit));
}

/** The file with what was confirmed, and which segments it does not take: [{segment, reason}]. These stay as they were. */
async function filled() {
  const targets = open.units.map((unit) => unit.confirmed ?? "");
  const {name, content, sentences, format, session} = open;
  const {source, target} = session;
  const fill = () => bytes("v1/documents/fill", {name, content, source, target, sentences, format, targets});
  try {
    return {file: await fill(), refused: []};
  } catch (error) {
    if (!error.refused) throw error;
    for (const {segment: number} of error.refused) targets[number - 1] = "";
    return {file: await fill(), refused: error.refused};
  }
}

function tellRefused(refused) {
  if (!refused.length) return problems.clear("refused");
  const reasons = refused.slice(0, NAMED).map((one) => `segment ${one.segment}: ${one.reason}`).join("; ");
  const more = refused.length > NAMED ? ` And ${refused.length - NAMED} more.` : "";
  problems.show("refused", `The saved file does not have all that you confirmed. These segments stand in it as they were: ${sentence(reasons)}${more} Change the translation, and confirm it again.`);
}

async function save() {
  await Promise.allSettled(sending);
  const {name, session} = open;
  open.changed = false;
  try {
    const {file, refused} = await filled();
    if (refused.length) open.changed = true;
    tellRefused(refused);
    const isText = open.kind === "text" || open.kind === "paragraphs";
    download(file, isText ? name.replace(/(\.[^.]*)?$/, `.${session.target}$1`) : name);
  } catch (error) {
    open.changed = true;
    throw error;
  }
  const drafts = open.units.filter((unit) => unit.text !== null).length;
  if (drafts) problems.show("drafts", `The saved file has what you confirmed. ${drafts === 1 ? "One draft is" : `${drafts} drafts are`} not in it, and kept here.`);
  else problems.clear("drafts");
  await keep(() => kept.about(open));
}

async function saveTmx() {
  const {source, target, id} = open.session;
  download(await bytes(`v1/sessions/${id}/tmx`), `${open.name}.${source}-${target}.tmx`);
}

function download(file, name) {
  const link = el("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  said(`${name} is saved.`);
}

function takeAll() {
  if (!offer || open.at < 0 || editor.field.readOnly) return;
  if (editor.isBegun) editor.takeRest();
  else editor.replace(offer.text);
}

function insert(text) {
  if (open.at >= 0 && !editor.field.readOnly) editor.insert(text, 1);
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
  if (match && open.at >= 0 && !editor.field.readOnly) editor.replace(match.tgt);
}

function toWords() {
  const word = $("offer").querySelector("[tabindex='0']");
  (word ?? $("confirm")).focus();
}

// Keys

const modal = () => document.querySelector("dialog[open]");
const selected = () => editor.text.slice(editor.field.selectionStart, editor.field.selectionEnd).trim();

const WORK = {
  confirm: trying("confirm", confirm), undo: trying("undo", undo), save: trying("save", save), tmx: trying("save", saveTmx),
  all: takeAll, discard, find: () => find(selected()), jump, keys: () => $("help").showModal(),
};
const KEYS = {
  "ctrl Enter": WORK.confirm, "ctrl shift Enter": WORK.undo, "alt Enter": takeAll,
  "ctrl k": () => find(String(getSelection()).trim() || selected()), "ctrl s": WORK.save, "ctrl g": jump,
  ...Object.fromEntries([1, 2, 3, 4, 5].map((n) => [`ctrl ${n}`, () => take(n)])),
};
const REPEATING = {"alt ArrowDown": () => step(1), "alt ArrowUp": () => step(-1)};  // as long as the key is held
const IN_FIELD = {Tab: () => editor.takeWord(), "shift Tab": toWords, Escape: () => editor.release()};

/** What a key does; undefined where it does what it does elsewhere. */
function workOf(name, event) {
  const {[name]: inField} = event.target === editor.field ? IN_FIELD : {};
  const once = KEYS[name] ?? inField;
  if (!once) return REPEATING[name];
  return event.repeat ? () => {} : once;
}

document.addEventListener("keydown", (event) => {
  if (event.repeat && event.target.closest("button, [role=button]") && ["Enter", " "].includes(event.key)) event.preventDefault();
  if (!open || modal() || event.isComposing) return;
  const work = workOf(keyOf(event), event);
  if (!work || work(event) === false) return;
  event.preventDefault();
  buttons();
}, true);

$("offer").addEventListener("keydown", (event) => {
  if (event.key === "Escape") editor.field.focus();
});
$("list").addEventListener("click", (event) => {
  const at = open.units.findIndex((unit) => unit.row === event.target.closest(".row"));
  if (at >= 0 && at !== open.at && !$("work").contains(event.target)) go(at);
});
for (const id of ["confirm", "undo", "save", "tmx", "all", "discard", "find", "keys"]) {
  $(id).addEventListener("click", (event) => { if (event.detail < 2) WORK[id](); });  // not for the second of a double click
}
$("add-term").addEventListener("submit", (event) => {
  event.preventDefault();
  trying("term", addTerm)();
});
$("jump").addEventListener("close", () => { if ($("jump").returnValue && $("which").value) go($("which").value - 1); });
addEventListener("beforeunload", (event) => { if (isUnsaved()) event.preventDefault(); });

/** Says where a proxy tells the server another address than the browser has: then it refuses what the page sends. */
async function checkAddress() {
  const {host, local} = await get("page/address");
  if (!local || host === location.host) return;
  problems.show("address", `Your browser has this page at ${location.host}, but the server is told ${host || "no address"}. Without keys it then refuses what the page sends. If a proxy stands between, let it pass the address on, with its port: “proxy_set_header Host $http_host;” in nginx.`);
}

checkAddress().catch(failed.bind(null, "address"));
prepare(begin, failed.bind(null, "begin")).catch(failed.bind(null, "begin"));
