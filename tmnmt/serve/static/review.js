// The page on which documents are reviewed, and what was confirmed stands against what was suggested.

import {get} from "./api.js";
import {el} from "./elements.js";
import {drawFigures} from "./figures.js";
import {moment, percent, phrase} from "./phrases.js";
import {rates, rowsOf} from "./reading.js";
import {ReviewList} from "./review_list.js";

const $ = (id) => document.getElementById(id);
const PAGE = 500;  // segments of an answer
const MOST_FILES = 50;  // documents of a project whose edit rates are told

let list = null;  // the segments of the document that is reviewed

const review = (id) => get(`v1/sessions/${encodeURIComponent(id)}/review`);

/** All segments of a document. */
async function segmentsOf({id, segments: count}) {
  const firsts = Array.from({length: Math.ceil(count / PAGE)}, (_, page) => 1 + page * PAGE);
  const pages = await Promise.all(firsts.map((first) => get(`v1/desk/${encodeURIComponent(id)}/segments?first=${first}&count=${PAGE}`)));
  return pages.flatMap(({segments}) => segments);
}

function table(title, name, rows) {
  const head = el("tr", "", el("th", "", name), el("th", "", phrase("Segments")), el("th", "", phrase("Edit rate")));
  const lines = rows.map(({key, segments, rate}) => el("tr", "", el("td", "", key), el("td", "", String(segments)), el("td", "", percent(Math.min(1, rate)))));
  for (const cell of head.children) cell.scope = "col";
  return el("table", "", el("caption", "", title), el("thead", "", head), el("tbody", "", ...lines));
}

/** Tells the edit rate by person and by file: of the document, and of all documents of its project. */
async function drawRates(about, reviewed, documents) {
  const beside = about.project ? documents.filter(({project, id}) => project === about.project && id !== about.id).slice(0, MOST_FILES) : [];
  const others = await Promise.all(beside.map(async ({name, session}) => (await review(session.id)).segments.map((entry) => ({...entry, file: name}))));
  const entries = [...reviewed.map((entry) => ({...entry, file: about.name})), ...others.flat()];
  const byPerson = rates(entries, ({by}) => by || phrase("nobody known")), byFile = rates(entries, ({file}) => file);
  $("rates").hidden = !byPerson.length;
  $("rates-tables").replaceChildren(table(phrase("By person"), phrase("Person"), byPerson), table(phrase("By file"), phrase("File"), byFile));
}

/** Shows a document: its segments to be reviewed, and its figures. */
async function showDocument(about, documents) {
  const [segments, reviewed] = await Promise.all([segmentsOf(about), review(about.session.id)]);
  $("reading").hidden = false;
  $("open").href = `d/${encodeURIComponent(about.id)}`;
  list = new ReviewList(about, rowsOf(segments, reviewed.segments));
  drawFigures(reviewed, false);
  await drawRates(about, reviewed.segments, documents);
  $("none").hidden = true;
}

/** Shows a session of no document. */
async function showSession(id) {
  const reviewed = await review(id);
  drawFigures(reviewed, true);
  $("none").hidden = reviewed.segments.some((pair) => pair.suggested !== null);
}

async function shown(documents) {
  $("problem").textContent = "";
  $("reading").hidden = $("rates").hidden = true;
  list?.close();
  const id = $("session").value, about = documents.find((document_) => document_.id === id);
  try {
    if (about) await showDocument(about, documents);
    else if (id) await showSession(id);
  } catch (error) {
    $("problem").textContent = error.message;
  }
}

try {
  const [{documents}, {sessions}] = await Promise.all([get("v1/desk"), get("v1/sessions")]);
  const worked = new Set(documents.map(({session}) => session.id)), wanted = decodeURIComponent(location.hash.slice(1));
  for (const {id, name, project, changed} of documents) $("session").append(new Option([project, name, moment(changed)].filter(Boolean).join(" · "), id));
  for (const {id, name, began, confirmed} of sessions.filter((session) => !worked.has(session.id))) {
    $("session").append(new Option(`${name || phrase("without a name")} · ${moment(1000 * began)} · ${confirmed}`, id));
  }
  const chosen = documents.find(({session}) => session.id === wanted)?.id ?? wanted;
  if ([...$("session").options].some(({value}) => value === chosen)) $("session").value = chosen;
  $("session").addEventListener("change", () => shown(documents));
  await shown(documents);
} catch (error) {
  $("problem").textContent = error.message;
}
