// The document at work, kept by the browser until its file is saved: a tab that is closed loses nothing.

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

/** What `work` asks of the store, once all of it is done. */
async function within(mode, work) {
  const transaction = (await database()).transaction(STORE, mode);
  const asked = work(transaction.objectStore(STORE));
  return new Promise((done, failed) => {
    transaction.oncomplete = () => done(asked?.result);
    transaction.onabort = () => failed(transaction.error);
  });
}

const under = (...key) => IDBKeyRange.bound(key, [...key, LAST]);
const all = (...key) => within("readonly", (store) => store.getAll(under(...key)));

/** One document, by the id of its session. */
export class Kept {
  constructor(id) {
    this.id = id;
    this.whole = false;  // whether the browser has it
  }

  /** Keeps a unit as it is now, and all of the document where nothing is kept yet. */
  unit(at, open) {
    return this._put(open, (store) => this._putUnit(store, at, open.units[at]));
  }

  /** Keeps what was confirmed or taken back last. */
  done(open) {
    const last = open.done.length - 1;
    return this._put(open, (store) => {
      store.delete(IDBKeyRange.bound(["done", this.id, last], ["done", this.id, LAST]));
      if (last >= 0) store.put(open.done[last], ["done", this.id, last]);
    });
  }

  /** What was done with it: {units, done}. */
  async work() {
    this.whole = true;
    return {units: await all("unit", this.id), done: await all("done", this.id)};
  }

  forget() {
    this.whole = false;
    return within("readwrite", (store) => {
      for (const kind of ["document", "unit", "done"]) store.delete(under(kind, this.id));
    });
  }

  _put(open, change) {
    const begins = !this.whole;
    this.whole = true;
    return within("readwrite", (store) => (begins ? this._putAll(store, open) : change(store)));
  }

  _putAll(store, {name, content, source, target, sentences, format, kind, segments, session, units, done}) {
    const document_ = {name, content, source, target, sentences, format, kind, segments, session, at: Date.now()};
    store.put(document_, ["document", this.id]);
    units.forEach((unit, at) => { if (unit.state === "confirmed" || unit.draft !== undefined) this._putUnit(store, at, unit); });
    done.forEach((entry, n) => store.put(entry, ["done", this.id, n]));
  }

  _putUnit(store, at, {state, target, draft}) {
    store.put({at, state, target, draft}, ["unit", this.id, at]);
  }
}

/** The documents that are kept, the latest first. None where the browser keeps nothing. */
export async function documents() {
  const found = await all("document").catch(() => []);
  return found.sort((one, other) => other.at - one.at);
}
