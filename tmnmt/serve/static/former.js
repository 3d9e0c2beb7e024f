// Documents that former versions of this page kept in the browser. They are brought to the server when a person says so, and
// then forgotten here.

import {confirmSegment, create, segments as segmentsOf, writeDrafts} from "./document.js";
import {marked, tagsOf} from "./texts.js";

const NAME = "tmnmt", STORE = "kept";
const LAST = [];  // as part of a key it comes after every text and number
const AT_ONCE = 200;  // drafts of one request

/** The store; null where there is none. */
async function database() {
  const all = await indexedDB.databases?.() ?? [];
  if (!all.some(({name}) => name === NAME)) return null;
  return new Promise((done, failed) => {
    const request = indexedDB.open(NAME);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => done(request.result);
    request.onerror = () => failed(request.error);
  });
}

async function within(mode, work) {
  const store = await database();
  if (!store) return [];
  try {
    const transaction = store.transaction(STORE, mode), request = work(transaction.objectStore(STORE));
    return await new Promise((done, failed) => {
      transaction.oncomplete = () => done(request?.result ?? []);
      transaction.onabort = () => failed(transaction.error);
    });
  } finally {
    store.close();
  }
}

const under = (...key) => IDBKeyRange.bound(key, [...key, LAST]);
const heldAs = (id) => `${NAME} ${id} `;

/** What such a page wrote at once, and had not stored yet. */
function held(id) {
  return Object.keys(localStorage).filter((name) => name.startsWith(heldAs(id)))
    .map((name) => JSON.parse(localStorage.getItem(name))).filter((record) => Number.isInteger(record.at));
}

/** The documents that are kept so, the latest first; none where the browser keeps nothing. */
export async function formerDocuments() {
  const found = await within("readonly", (store) => store.getAll(under("document"))).catch(() => []);
  return found.sort((first, second) => second.at - first.at);
}

/** What was done with one: {confirmed: [{number, text}], drafts: [{number, text}]}, texts as XML. Of a segment, the record
    that was written last counts; where two tabs wrote one, both texts are in it. */
export function workOf(segments, units) {
  const work = {confirmed: [], drafts: []};
  for (const [at, unit] of new Map(units.map((record) => [record.at, record]))) {
    if (!segments[at]) continue;
    const confirmed = unit.confirmed ?? (unit.state === "confirmed" ? unit.target : null);  // as the first pages kept it
    const tags = tagsOf(segments[at].source).concat(tagsOf(segments[at].target ?? ""));
    const texts = [unit.text ?? unit.draft, ...Object.values(unit.others ?? {})].filter((text) => text != null);
    if (confirmed !== null) work.confirmed.push({number: at + 1, text: confirmed});
    if (texts.length) work.drafts.push({number: at + 1, text: marked(texts.join(" ⇄ "), tags)});
  }
  return work;
}

/** Brings one to the server; answers what is known of it there, and how many texts it refused to confirm, which are drafts
    there. */
export async function bring({name, content, source, target, sentences, format, session, segments}) {
  const units = [...await within("readonly", (store) => store.getAll(under("unit", session.id))), ...held(session.id)];
  const {model, memories, terms, write_to} = session;
  const given = {name, content, source, target, sentences, ...(format ? {format} : {})};
  const about = await create({...given, model: model ?? "", memories, terms, write_to: write_to ?? "", fill: "none"});
  const versions = (await segmentsOf(about.id, about.segments)).segments.map(({version}) => version);
  const work = workOf(segments, units), refused = [];
  for (const {number, text} of work.confirmed) {
    const fields = {version: versions[number - 1], text, on_checks: "tell", repetitions: false, request: `former.${number}`};
    try {
      versions[number - 1] = (await confirmSegment(about.id, number, fields)).segment.version;
    } catch (error) {
      if (error.status !== 400) throw error;
      refused.push({number, text});
    }
  }
  const drafts = [...refused, ...work.drafts].map((draft) => ({...draft, version: versions[draft.number - 1]}));
  for (let from = 0; from < drafts.length; from += AT_ONCE) await writeDrafts(about.id, drafts.slice(from, from + AT_ONCE));
  return {about, refused: refused.length};
}

export async function forget({session}) {
  for (const name of Object.keys(localStorage).filter((key) => key.startsWith(heldAs(session.id)))) localStorage.removeItem(name);
  await within("readwrite", (store) => {
    for (const kind of ["document", "about", "unit", "done"]) store.delete(under(kind, session.id));
  });
}
