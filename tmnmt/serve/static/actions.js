// What a person can do by a key or by a button.

import {keyOf} from "./keys.js";

export class Actions {
  /** isActive: whether keys do something now. after: called when a key has done something. */
  constructor(isActive, after) {
    this._isActive = isActive;
    this._after = after;
    this._keys = new Map();
    this._held = new Map();  // these go on as long as the key is held
    this._inside = new Map();  // by element: keys that do this there alone
    document.addEventListener("keydown", (event) => this._press(event), true);
  }

  /** Adds an action: {id, keys, held, within, work}. id: of its button, where it has one. keys: such as "ctrl k" (keys.js).
      held: whether it is done again as long as the key is held. within: the element in which the keys do this; everywhere
      where none is given. work: called with the event; where it answers false, the key does what it does elsewhere. */
  add({id = null, keys = [], held = false, within = null, work}) {
    if (id) document.getElementById(id).addEventListener("click", (event) => { if (event.detail < 2) work(event); });  // not for the second of a double click
    if (within && !this._inside.has(within)) this._inside.set(within, new Map());
    const table = within ? this._inside.get(within) : held ? this._held : this._keys;
    for (const key of keys) table.set(key, work);
  }

  _press(event) {
    if (event.repeat && event.target.closest("button, [role=button]") && ["Enter", " "].includes(event.key)) event.preventDefault();
    if (event.isComposing || !this._isActive()) return;
    const work = this._workOf(keyOf(event), event);
    if (!work || work(event) === false) return;
    event.preventDefault();
    this._after();
  }

  /** What a key does; undefined where it does what it does elsewhere. */
  _workOf(name, event) {
    const once = this._keys.get(name) ?? this._inside.get(event.target)?.get(name);
    if (!once) return this._held.get(name);
    return event.repeat ? () => {} : once;
  }
}
