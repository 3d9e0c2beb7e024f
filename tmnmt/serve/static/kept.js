// What the browser keeps of a document: what the server has not taken yet, and what others wrote beside it. It is kept at
// every letter, at once, so that a tab that is closed or a broken connection loses nothing.

const NAME = "tmnmt";

export class Kept {
  /** id: of the document. tab: names this page, so that two tabs do not overwrite what the other has kept. storage: as
      localStorage is. */
  constructor(id, tab, storage = globalThis.localStorage) {
    this._all = `${NAME} ${id} `;
    this._here = `${this._all}${tab} `;
    this._storage = storage;
  }

  /** Keeps what a segment has (segments.js, `unsent`); null forgets it. Whether the browser can. */
  put(number, record) {
    try {
      if (record === null) this._storage.removeItem(this._here + number);
      else this._storage.setItem(this._here + number, JSON.stringify(record));
      return true;
    } catch {
      return record === null;  // full, or not allowed
    }
  }

  /** All that any tab has kept: [number, record]. */
  all() {
    return this._names().map((name) => [Number(name.slice(name.lastIndexOf(" "))), JSON.parse(this._storage.getItem(name))]);
  }

  /** Forgets what other tabs have kept: this page has taken it over. */
  takeOver() {
    for (const name of this._names()) if (!name.startsWith(this._here)) this._storage.removeItem(name);
  }

  forget() {
    for (const name of this._names()) this._storage.removeItem(name);
  }

  _names() { return keysOf(this._storage).filter((name) => name.startsWith(this._all)); }
}

/** Nothing where the browser lets nothing be kept. */
function keysOf(storage) {
  try {
    return Array.from({length: storage.length}, (_, at) => storage.key(at));
  } catch {
    return [];
  }
}
