// Segments that are confirmed, and taken back.

import {post} from "./api.js";
import {checkLine} from "./checks.js";
import {el} from "./elements.js";
import {panel} from "./panels.js";
import {base, happen, isSeen} from "./segments.js";
import {marked, plain, sentence, tagProblem} from "./texts.js";

const $ = (id) => document.getElementById(id);

class Confirmation {
  constructor(desk) {
    this._desk = desk;
    this._tickets = 0;  // of requests to confirm
    this._isUndoing = false;
    desk.on("field", () => this._buttons());
    desk.action({id: "confirm", keys: ["ctrl Enter"], work: desk.trying("confirm", () => this._confirm())});
    desk.action({id: "undo", keys: ["ctrl shift Enter"], work: desk.trying("undo", () => this._undo())});
    desk.action({id: "discard", work: () => { if (desk.unit?.state === "draft") desk.editor.replace(base(desk.unit)); }});
  }

  _buttons() {
    const {unit, editor, isLocked} = this._desk;
    const isSending = unit.state === "confirming";
    $("confirm").setAttribute("aria-disabled", String(isSending || isLocked || !editor.whole.trim()));
    $("confirm").firstChild.textContent = isSeen(unit, editor.text) ? "Confirm all the same " : isSending ? "Confirming … " : "Confirm ";
    $("target").parentElement.ariaBusy = String(isSending);
    $("discard").hidden = unit.state !== "draft";
    $("found-wrong").replaceChildren(...unit.checks.map((found) => el("li", "", checkLine(found))));
    $("found-wrong").hidden = !unit.checks.length;
  }

  /** Confirms what stands in the field, in an empty one the suggestion. The page goes on when the server has it, and nothing
      else was written meanwhile. */
  async _confirm() {
    const desk = this._desk, {open, unit, editor} = desk, {at, visit} = open;
    if (!unit || desk.isLocked || unit.state === "confirming" || this._isUndoing) return;
    if (!editor.text.trim()) {
      if (editor.text || !editor.rest) return;
      editor.takeRest(0);
    }
    const text = editor.text, despite = isSeen(unit, text);
    if (unit.state === "confirmed") return desk.go(desk.next(at));  // as it stands
    const ticket = ++this._tickets;
    if (!happen(unit, "press", {text, ticket})) return;
    desk.tell("sending", {at});
    desk.changed(at);
    const work = this._send(unit, at, text.trim(), ticket, despite).finally(() => open.sending.delete(work));
    open.sending.add(work);
    await work;
    if (visit === open.visit && unit.state === "confirmed" && !desk.isModal) desk.go(desk.next(at));
  }

  /** One request; what comes of it. */
  async _send(unit, at, text, ticket, despite) {
    const desk = this._desk, {open, problems} = desk;
    const target = marked(text, unit.tags), before = unit.confirmed;
    const pair = {src: plain(unit.source).trim(), tgt: plain(target).trim()};
    const isPair = Boolean(pair.src && pair.tgt);
    const more = unit.suggested === undefined ? {} : {suggested: unit.suggested};
    const on_checks = despite ? "tell" : "refuse";
    const request = `${at}.${open.done.filter((entry) => entry.at === at).length}`;  // the same where an answer was lost
    const body = {src: unit.source, tgt: target, format: "xml", keys: desk.editor.keys, on_checks, request, segment: String(at), ...more};
    try {
      const problem = tagProblem(text, unit.tags, plain(unit.source) + plain(unit.file.target ?? ""));
      if (problem) throw new Error(problem);
      const {checks} = isPair ? await post(`v1/sessions/${open.session.id}/confirm`, body) : {};
      happen(unit, "accept", {ticket, target, checks, at: Date.now()});
      problems.clear(unit);
      if (isPair) desk.copy.add({at, before, ...pair, sent: {src: unit.source, tgt: target, segment: String(at)}});
    } catch (error) {
      const reason = error.checks ? `${sentence(error.checks.map(checkLine).join("; "))} Confirm once more to take it all the same.` : error.message;
      happen(unit, "refuse", {ticket, reason, checks: error.checks});
      problems.show(unit, `Segment ${at + 1} is not confirmed: ${reason}`);
    }
    desk.changed(at);
    desk.tell(unit.state === "confirmed" ? "confirmed" : "refused", {at});
  }

  /** Takes back what was confirmed last: then the segment has what was confirmed for it before, if anything was. */
  async _undo() {
    const desk = this._desk, {open} = desk;
    if (this._isUndoing || open.sending.size || !open.done.length) return;
    this._isUndoing = true;
    const {at} = open, {text} = desk.editor;
    try {
      const entry = await desk.copy.last();
      await this._takeBack(entry);
      desk.copy.remove(entry);
      happen(open.units[entry.at], "revert", {confirmed: entry.before ?? null, at: Date.now()});
      desk.changed(entry.at);
      if (open.at === at && desk.editor.text === text && !desk.isModal) desk.go(entry.at);  // else somebody writes elsewhere
      desk.say(`Segment ${entry.at + 1} is taken back.`);
    } finally {
      this._isUndoing = false;
    }
  }

  /** The server has what it had before a pair was confirmed. */
  async _takeBack({at, n, before, sent}) {
    const path = `v1/sessions/${this._desk.open.session.id}`, {segment} = sent;  // none where the page was an earlier one
    if (segment === undefined) return post(`${path}/undo`, {});
    if (before !== null && plain(before).trim()) return post(`${path}/confirm`, {...sent, tgt: before, format: "xml", request: `${at}.back.${n}`});
    return post(`${path}/undo`, {segment}).catch((error) => {
      if (error.status !== 409) throw error;  // taken back elsewhere
    });
  }
}

panel((desk) => { new Confirmation(desk); });
