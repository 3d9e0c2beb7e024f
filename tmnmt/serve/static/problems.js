// What went wrong, each thing until it is dismissed, put right or overtaken.

import {el} from "./elements.js";
import {phrase} from "./phrases.js";

export class Problems {
  constructor(box) {
    this._box = box;
    this._lines = new Map();
  }

  /** Shows a reason under a name; one under the same name gives way to it. */
  show(name, reason) {
    this.clear(name);
    const dismiss = el("button", "dismiss", phrase("Dismiss"));
    dismiss.type = "button";
    dismiss.addEventListener("click", () => this.clear(name));
    const line = el("p", "problem", el("span", "", reason), dismiss);
    this._lines.set(name, line);
    this._box.append(line);
  }

  clearAll() {
    for (const name of [...this._lines.keys()]) this.clear(name);
  }

  clear(name) {
    this._lines.get(name)?.remove();
    this._lines.delete(name);
  }
}
