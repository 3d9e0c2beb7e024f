// Segments that are confirmed, and taken back.

import {checkLine} from "./checks.js";
import {confirmSegment, undo} from "./document.js";
import {el} from "./elements.js";
import {panel} from "./panels.js";
import {phrase} from "./phrases.js";
import {base, happen, isConfirmed, isSeen} from "./segments.js";
import {marked, plain, sentence, tagProblem} from "./texts.js";

const $ = (id) => document.getElementById(id);
const TOLD = 8000;  // milliseconds for which is told what became of repetitions

class Confirmation {
  constructor(desk) {
    this._desk = desk;
    this._tickets = 0;  // of requests to confirm
    this._isUndoing = false;
    this._timer = 0;
    desk.on("field", () => this._buttons());
    desk.on("unit", ({at}) => { if (isConfirmed(desk.open.units[at])) desk.problems.clear(desk.open.units[at]); });
    desk.action({id: "confirm", keys: ["ctrl Enter"], work: desk.trying("confirm", () => this._confirm())});
    desk.action({id: "undo", keys: ["ctrl shift Enter"], work: desk.trying("undo", () => this._undo())});
    desk.action({id: "discard", work: () => { if (desk.unit?.state === "draft") desk.editor.replace(base(desk.unit)); }});
  }

  _buttons() {
    const {unit, editor, isLocked} = this._desk;
    const isSending = unit.state === "confirming";
    $("confirm").setAttribute("aria-disabled", String(isSending || isLocked || !editor.whole.trim()));
    $("confirm").firstChild.textContent = `${isSeen(unit, editor.text) ? phrase("Confirm all the same") : isSending ? phrase("Confirming …") : phrase("Confirm")} `;
    $("target").parentElement.ariaBusy = String(isSending);
    $("discard").hidden = unit.state !== "draft";
    const wrong = unit.checked === null && !isConfirmed(unit) ? [] : unit.checks;
    $("found-wrong").replaceChildren(...wrong.map((found) => el("li", "", checkLine(found))));
    $("found-wrong").hidden = !wrong.length;
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
    if (isConfirmed(unit)) return desk.go(desk.next(at));  // as it stands
    const ticket = ++this._tickets;
    if (!happen(unit, "press", {text, ticket})) return;
    desk.tell("sending", {at});
    desk.changed(at);
    const work = this._send(unit, at, text.trim(), ticket, despite).finally(() => open.sending.delete(work));
    open.sending.add(work);
    await work;
    if (visit === open.visit && isConfirmed(unit) && !desk.isModal) desk.go(desk.next(at));
  }

  /** One request; what comes of it. */
  async _send(unit, at, text, ticket, despite) {
    const desk = this._desk, {about} = desk.open;
    const {keys} = desk.editor, repetitions = $("repeat").checked;
    try {
      const problem = tagProblem(text, unit.tags, plain(unit.source) + plain(unit.file.target ?? ""));
      if (problem) throw new Error(problem);
      await desk.sync.flush();  // else a draft would be newer than what is confirmed, and one of a repetition not known
      const {origin, match} = unit.suggested === plain(marked(text, unit.tags)) ? unit.offered : {origin: "person", match: null};
      const suggestion = unit.suggested === undefined ? {} : {suggested: unit.suggested, quality: unit.offered.quality};
      const more = {...suggestion, origin, ...(match === null ? {} : {match})};
      const {version} = unit, request = `${unit.number}.${version}`;  // the same where an answer was lost
      const fields = {version, text: marked(text, unit.tags), keys, on_checks: despite ? "tell" : "refuse", repetitions, request, ...more};
      const answer = await confirmSegment(about.id, unit.number, fields);
      desk.sync.take(answer.segment, "accept", {ticket});
      for (const record of answer.repetitions) desk.sync.take(record);
      desk.tell("confirmed", {at});
      this._tellRepetitions(answer);
    } catch (error) {
      this._refuse(unit, at, ticket, error);
    }
  }

  _refuse(unit, at, ticket, error) {
    const desk = this._desk;
    const once = phrase("Confirm once more to take it all the same.");
    let reason = error.message;
    if (error.segment) reason = `${overtaken(error.segment.by)} ${phrase("The other text stands below yours.")} ${once}`;
    else if (error.checks) reason = `${sentence(error.checks.map(checkLine).join("; "))} ${once}`;
    if (!happen(unit, "refuse", {ticket, reason, checks: error.checks})) return;
    if (error.segment) desk.sync.take(error.segment, "conflict");
    if (!isConfirmed(unit)) desk.problems.show(unit, phrase("Segment {number} is not confirmed: {reason}", {number: at + 1, reason}));
    desk.changed(at);
    desk.tell("refused", {at});
  }

  _tellRepetitions({repetitions, differs}) {
    const filled = phrase("{count} repetitions are confirmed with it.", {count: repetitions.length});
    const differing = phrase("Segments {numbers} have other texts.", {count: differs.length, numbers: differs.slice(0, 10).join(", ")});
    const told = [...(repetitions.length ? [filled] : []), ...(differs.length ? [differing] : [])].join(" ");
    $("told").textContent = told;
    $("told").hidden = !told;
    clearTimeout(this._timer);
    this._timer = setTimeout(() => { $("told").hidden = true; }, TOLD);
  }

  /** Takes back what was confirmed last, with the repetitions that were confirmed with it: then it is a draft again. */
  async _undo() {
    const desk = this._desk, {open} = desk;
    if (this._isUndoing || open.sending.size) return;
    this._isUndoing = true;
    const {at} = open, {text} = desk.editor;
    try {
      await desk.sync.landed;
      const {segments} = await undo(open.about.id);
      for (const record of segments) desk.sync.take(record, "revert");
      const [first] = segments;
      if (open.at === at && desk.editor.text === text && !desk.isModal) desk.go(first.number - 1);  // else somebody writes elsewhere
      const told = {number: first.number, count: segments.length - 1};
      desk.say(told.count ? phrase("Segment {number} is taken back, with {count} repetitions.", told) : phrase("Segment {number} is taken back.", told));
    } finally {
      this._isUndoing = false;
    }
  }
}

/** That somebody has changed a segment meanwhile. */
const overtaken = (by) => (by === "you" ? phrase("It was changed meanwhile.") : phrase("{person} has changed it meanwhile.", {person: by}));

panel((desk) => { new Confirmation(desk); });
