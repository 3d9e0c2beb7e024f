// Documents at work, kept by the browser until a person forgets them: a tab that is closed loses nothing.

import {merge, record} from "./segments.js";
import {TAB} from "./tabs.js";

const NAME = "tmnmt", STORE = "kept";
const LAST = [];  // as part of a key it comes after every text and number

let opened = null;

function database() {
  opened ??= new Promise((done, failed) => {
    const asked = indexedDB.open(NAME, 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(STORE);
    asked.onsuccess = () => done(asked.result);
    asked.onerror = () => failed(asked.error);
  });
  return opened;
}

/** What `work` asks of the store, once all of it is done: the result of the request that it answers, or what else. */
async function within(mode, work) {
  const transaction = (await database()).transaction(STORE, mode);
  const answer = work(transaction.objectStore(STORE));
  return new Promise((done, failed) => {
    transaction.oncomplete = () => done(answer instanceof IDBRequest ? answer.result : answer);
    transaction.onabort = () => failed(transaction.error);
  });
}

// Writing to the store takes a moment, and a tab may be closed within it. So what is typed is held here, at once, until it is kept.
const heldAs = (id, at = "") => `${NAME} ${id} ${at}`;

function hold(name, text) {
  try {
    localStorage.setItem(name, text);
  } catch {}  // full, or not allowed: then the store alone has it
}

/** All that is held of a document: [name, record]. */
function held(id) {
  const names = Object.keys(localStorage).filter((name) => name.startsWith(heldAs(id)));
  return names.map((name) => [name, JSON.parse(localStorage.getItem(name))]);
}

const under = (...key) => IDBKeyRange.bound(key, [...key, LAST]);
const all = (...key) => within("readonly", (store) => store.getAll(under(...key)));

/** What was confirmed before in the same segment; pages before kept its state, too. */
function beforeOf({before}) {
  if (typeof before !== "object") return before;
  return before?.state === "confirmed" ? before.target : null;
}

/** One document, by the id of its session. */
export class Kept {
  constructor(id) {
    this.id = id;
  }

  /** Keeps a unit as it is now; answers the record that is kept, which has what another tab kept meanwhile. */
  async unit(at, open) {
    const own = {at, ...record(open.units[at], TAB)}, kept = {...own};
    const name = heldAs(this.id, at), text = JSON.stringify(own);
    hold(name, text);
    await this._within(open, (store) => {
      const asked = store.get(["unit", this.id, at]);
      asked.onsuccess = () => store.put(Object.assign(kept, merge(own, asked.result)), ["unit", this.id, at]);
    });
    if (localStorage.getItem(name) === text) localStorage.removeItem(name);
    return kept;
  }

  /** What is kept of a unit; undefined where nothing is. */
  read(at) {
    return within("readonly", (store) => store.get(["unit", this.id, at]));
  }

  /** Keeps one that was confirmed, by its number `n`. */
  add(entry, open) {
    return this._within(open, (store) => store.put(entry, ["done", this.id, entry.n]));
  }

  /** Forgets it again: it was taken back. */
  remove(entry, open) {
    return this._within(open, (store) => store.delete(["done", this.id, entry.n]));
  }

  /** Keeps whether the file was saved as it is now. */
  about(open) {
    return this._within(open, () => {});
  }

  /** What was done with it: {units, done}. */
  async work() {
    for (const [name, own] of held(this.id)) {
      await within("readwrite", (store) => {
        const asked = store.get(["unit", this.id, own.at]);
        asked.onsuccess = () => store.put(merge(own, asked.result), ["unit", this.id, own.at]);
      });
      localStorage.removeItem(name);
    }
    return {units: await all("unit", this.id), done: await this.done()};
  }

  /** All that was confirmed, in order. */
  async done() {
    return (await all("done", this.id)).map((entry, n) => ({...entry, n: entry.n ?? n, before: beforeOf(entry)}));
  }

  /** How it stands: {confirmed, drafts, saved, at}. */
  async standing() {
    const units = await all("unit", this.id), about = await within("readonly", (store) => store.get(["about", this.id]));
    const isDraft = (unit) => (unit.text ?? unit.draft ?? null) !== null;
    const isConfirmed = (unit) => (unit.confirmed ?? null) !== null || unit.state === "confirmed";
    return {confirmed: units.filter(isConfirmed).length, drafts: units.filter(isDraft).length, ...about};
  }

  forget() {
    for (const [name] of held(this.id)) localStorage.removeItem(name);
    return within("readwrite", (store) => {
      for (const kind of ["document", "about", "unit", "done"]) store.delete(under(kind, this.id));
    });
  }

  /** A change, and how the document stands by now; all of the document where nothing of it is kept yet. */
  _within(open, change) {
    return within("readwrite", (store) => {
      const asked = store.count(["document", this.id]);
      asked.onsuccess = () => {
        if (!asked.result) this._putAll(store, open);
        store.put({saved: !open.changed, at: Date.now()}, ["about", this.id]);
        change(store);
      };
    });
  }

  _putAll(store, {name, content, source, target, sentences, format, kind, segments, session, units, done}) {
    const document_ = {name, content, source, target, sentences, format, kind, segments, session, at: Date.now()};
    store.put(document_, ["document", this.id]);
    units.forEach((unit, at) => {
      if (unit.text !== null || unit.confirmed !== null) store.put({at, ...record(unit, TAB)}, ["unit", this.id, at]);
    });
    for (const entry of done) store.put(entry, ["done", this.id, entry.n]);
  }
}

/** The documents that are kept, the latest first. None where the browser keeps nothing. */
export async function documents() {
  const found = await all("document").catch(() => []);
  return found.sort((one, other) => other.at - one.at);
}
