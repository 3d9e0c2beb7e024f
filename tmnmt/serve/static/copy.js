// What the browser keeps of the document at work, and what other tabs that have it open have written.

import {el, text as paragraph} from "./elements.js";
import {happen, textOf} from "./segments.js";
import {Tabs} from "./tabs.js";

const $ = (id) => document.getElementById(id);

export class Copy {
  /** kept: where the browser keeps the document. */
  constructor(desk, kept) {
    this._desk = desk;
    this._kept = kept;
    this._tabs = new Tabs(desk.open.session.id, (message) => this._receive(message));
    this._tabs.tell("hello");
    desk.on("leave", ({at}) => {
      const unit = desk.open.units[at];
      if (unit.text === null && Object.keys(unit.others).length) this._takeOver(at);
    });
    desk.on("at", ({at}) => this._drawOthers(desk.open.units[at]));
    desk.on("unit", ({at}) => { if (at === desk.open.at) this._drawOthers(desk.open.units[at]); });
  }

  /** Whether it can keep what was `written`. Where it cannot, the page says so, and asks before it is closed. */
  async _keep(written) {
    const {open, problems} = this._desk;
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

  /** Keeps how the document stands. Whether it is kept. */
  about() {
    return this._keep(() => this._kept.about(this._desk.open));
  }

  /** Keeps a segment, tells other tabs, and draws what they have kept meanwhile. */
  unit(at) {
    const {open} = this._desk, unit = open.units[at];
    open.changed = true;
    unit.storing = (unit.storing ?? 0) + 1;
    this._keep(async () => {
      const record = await this._kept.unit(at, open).finally(() => unit.storing--);
      this._tabs.tell("unit", {at, record});
      happen(unit, "settle", {record});
      this._desk.redraw(at);
    });
  }

  /** Notes a pair that the server has taken. */
  add(entry) {
    const {open} = this._desk;
    const pair = {...entry, n: Math.max(Date.now(), (open.done.at(-1)?.n ?? 0) + 1)};
    open.done.push(pair);
    this._keep(async () => {
      await this._kept.add(pair, open);
      this._tabs.tell("done");
    });
  }

  /** The pair that was confirmed last, here or in another tab. */
  async last() {
    const others = await this._kept.done().catch(() => []);
    return [...others, ...this._desk.open.done].reduce((latest, entry) => (entry.n > latest.n ? entry : latest));
  }

  remove(entry) {
    const {open} = this._desk;
    open.done = open.done.filter(({n}) => n !== entry.n);
    this._keep(async () => {
      await this._kept.remove(entry, open);
      this._tabs.tell("done");
    });
  }

  /** What another tab tells. */
  _receive({kind, ...told}) {
    const desk = this._desk;
    if (kind === "hello" || kind === "here") {
      desk.problems.show("tabs", "This document is open in another tab, too. Each keeps what it writes; where both write one segment, you see both texts.");
    } else if (kind === "unit") this._adopt(told.at, told.record);
    else if (kind === "done") desk.trying("tabs", async () => { desk.open.done = await this._kept.done(); desk.progress(); })();
  }

  /** Another tab has kept a segment. The one at work keeps its text, and the other's stands below it. */
  _adopt(at, record) {
    const {open, editor} = this._desk, unit = open.units[at], before = textOf(unit);
    const busy = at === open.at || unit.state === "confirming" || unit.storing > 0;
    happen(unit, "adopt", {record, busy});
    if (at === open.at && editor.text === before && textOf(unit) !== before) this._desk.fill(unit);
    this._desk.redraw(at);
  }

  /** A segment that was left without a text of its own gets what another tab has kept of it. */
  _takeOver(at) {
    this._keep(async () => {
      const record = await this._kept.read(at);
      if (record) this._adopt(at, record);
    });
  }

  /** What other tabs have written for the segment. */
  _drawOthers(unit) {
    const {open, editor} = this._desk;
    $("others").hidden = !Object.keys(unit.others).length;
    $("others").replaceChildren(...Object.entries(unit.others).map(([tab, text]) => {
      const use = el("button", "", "Use"), drop = el("button", "", "Drop");
      use.type = drop.type = "button";
      use.addEventListener("click", () => editor.replace(text));
      drop.addEventListener("click", () => {
        delete unit.others[tab];
        this._drawOthers(unit);
        this.unit(open.at);
      });
      return el("li", "", el("span", "quiet", "In another tab:"), paragraph("span", open.session.target, text), use, drop);
    }));
  }
}
