// The page on which documents are reviewed, and what was confirmed stands against what was suggested.

import {get} from "./api.js";
import {changes, segments as segmentsOf} from "./document.js";
import {el} from "./elements.js";
import {drawFigures} from "./figures.js";
import {follow} from "./follow.js";
import {moment, percent, phrase} from "./phrases.js";
import {rates, rowsOf} from "./reading.js";
import {ReviewList} from "./review_list.js";

const $ = (id) => document.getElementById(id);
const MOST_FILES = 50;  // documents of a project whose edit rates are told

let list = null;  // the segments of the document that is reviewed
let end = new AbortController();  // of listening for what others change in it

const review = (id) => get(`v1/sessions/${encodeURIComponent(id)}/review`);

function table(title, name, rows) {
  const head = el("tr", "", el("th", "", name), el("th", "", phrase("Segments")), el("th", "", phrase("Edit rate")));
  const lines = rows.map(({key, segments, rate}) => el("tr", "", el("td", "", key), el("td", "", String(segments)), el("td", "", percent(Math.min(1, rate)))));
  for (const cell of head.children) cell.scope = "col";
  return el("table", "", el("caption", "", title), el("thead", "", head), el("tbody", "", ...lines));
}

/** What was confirmed in the other documents of a project, with the names of their files. */
async function othersOf(about, documents) {
  const beside = about.project ? documents.filter(({project, id}) => project === about.project && id !== about.id).slice(0, MOST_FILES) : [];
  const others = await Promise.all(beside.map(async ({name, session}) => (await review(session.id)).segments.map((entry) => ({...entry, file: name}))));
  return others.flat();
}

/** Tells the edit rate by person and by file: of the document, and of others of its project. */
function drawRates(about, reviewed, others) {
  const entries = [...reviewed.map((entry) => ({...entry, file: about.name})), ...others];
  const byPerson = rates(entries, ({by}) => (by === "you" ? phrase("you") : by || phrase("nobody known"))), byFile = rates(entries, ({file}) => file);
  $("rates").hidden = !byPerson.length;
  $("rates-tables").replaceChildren(table(phrase("By person"), phrase("Person"), byPerson), table(phrase("By file"), phrase("File"), byFile));
}

/** Shows a document: its segments to be reviewed, and its figures. */
async function showDocument(about, documents) {
  const [{version, segments}, reviewed, others] = await Promise.all([segmentsOf(about.id, about.segments), review(about.session.id), othersOf(about, documents)]);
  $("reading").hidden = false;
  $("open").href = `d/${encodeURIComponent(about.id)}`;
  list = new ReviewList(about, rowsOf(segments, reviewed.segments));
  const draw = (latest) => {
    drawFigures(latest, false);
    drawRates(about, latest.segments, others);
  };
  draw(reviewed);
  $("none").hidden = true;
  const {signal} = end, shownList = list;
  const take = async ({segments: changed}) => {
    if (!changed.length) return;
    const latest = await review(about.session.id);
    if (signal.aborted) return;
    shownList.take(changed, latest.segments);
    draw(latest);
  };
  follow((since, stamp) => changes(about.id, since, stamp, signal), version, take, signal).catch((error) => {
    $("problem").textContent = phrase("The server does not tell any more what others do here: {reason}", {reason: error.message});
  });
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
  end.abort();
  end = new AbortController();
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
