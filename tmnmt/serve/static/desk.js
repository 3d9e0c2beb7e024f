// The desk: the document that is open, and its segment at work. All else is a part that registers itself (panels.js).

import {Actions} from "./actions.js";
import {get} from "./api.js";
import {chipsOf} from "./chips.js";
import "./column.js";
import "./confirm.js";
import {Copy} from "./copy.js";
import "./download.js";
import {Editor} from "./editor.js";
import "./finder.js";
import "./glossary.js";
import "./jump.js";
import {SegmentList} from "./list.js";
import {Listeners, startPanels} from "./panels.js";
import {Problems} from "./problems.js";
import {happen, isOpen, restore, segment, stateOf, textOf} from "./segments.js";
import {prepare} from "./start.js";
import "./suggestion.js";
import "./tags.js";
import "./tools.js";
import {shown, tagsOf} from "./texts.js";
import "./view.js";

const $ = (id) => document.getElementById(id);

/** open: the document, {name, kind, session, units, at, …}; null before one is open. editor: the field (editor.js).
    problems: what went wrong (problems.js). */
class Desk {
  constructor() {
    this.open = null;
    this.copy = null;
    this.problems = new Problems($("problem"));
    this.editor = new Editor($("target"), $("ghost"), $("room"), () => this._typed(), (text) => this.say(text));
    this._listeners = new Listeners();
    this._actions = new Actions(() => this.open !== null && !this.isModal, () => this._field());
    this._list = null;
    /** Whether a match was confirmed in this document. */
    this.isOwn = (match) => match.id < 0 || this.open.done.some((entry) => entry.src === match.src && entry.tgt === match.tgt);
    this.action({keys: ["alt ArrowDown"], held: true, work: () => this.step(1)});
    this.action({keys: ["alt ArrowUp"], held: true, work: () => this.step(-1)});
    addEventListener("beforeunload", (event) => { if (this._isUnsaved) event.preventDefault(); });
  }

  /** The segment at work; undefined where none is. */
  get unit() { return this.open?.units[this.open.at]; }

  /** Whether nothing can be written in the field. */
  get isLocked() { return this.editor.field.readOnly; }

  /** Whether a dialog is open. */
  get isModal() { return document.querySelector("dialog[open]") !== null; }

  /** What is marked in the field. */
  get selected() { return this.editor.selected.trim(); }

  get _isUnsaved() { return this.open && (this.open.changed || this.open.storing > 0 || this.open.lost || this.open.sending.size > 0); }

  /** `listener`: called with the detail of every event of that name (panels.js). */
  on(event, listener) { this._listeners.on(event, listener); }

  tell(event, detail) { this._listeners.tell(event, detail); }

  /** Adds what a key or a button does (actions.js). */
  action(action) { this._actions.add(action); }

  /** Says something to who listens to the page. */
  say(text) { $("said").textContent = text; }

  /** `work` as a function at whose failure all stays as it is; the reason stands under that name until the same goes well, or
      it is dismissed. */
  trying(name, work) {
    return async (...given) => {
      try {
        await work(...given);
        this.problems.clear(name);
      } catch (error) {
        this.failed(name, error);
      }
    };
  }

  failed(name, error) {
    if (error.name !== "AbortError") this.problems.show(name, error.message);
  }

  /** Opens a document that start.js gives; `kept`: where the browser keeps it, `work`: what was done with it, which is kept
      anew where it `isNew` there. Whether it is kept. */
  begin(document_, kept, work) {
    const units = document_.segments.map((record) => (
      {...segment(record), tags: tagsOf(record.source).concat(tagsOf(record.target ?? ""))}));
    for (const record of work.units) restore(units[record.at], record);
    this.open = {
      ...document_, units, done: work.done, at: -1, visit: 0, changed: !work.saved && work.units.length > 0, storing: 0,
      sending: new Set(),  // requests to confirm that are under way
    };
    this.copy = new Copy(this, kept);
    $("start").hidden = $("kept").hidden = true;
    for (const id of ["about", "list", "find", "undo", "save", "tmx"]) $(id).hidden = false;
    $("name").textContent = this.open.name;
    document.title = `${this.open.name} – tmnmt`;
    const {id, source, target} = this.open.session;
    $("review").href = `review#${encodeURIComponent(id)}`;
    $("source").lang = source;
    for (const element of ["offer", "target", "ghost"]) $(element).lang = target;
    for (const element of ["source", "offer", "target", "ghost", "room"]) $(element).dir = "auto";
    this._list = new SegmentList($("list"), units, {source, target}, (at) => this.go(at));
    this.progress();
    this.tell("opened");
    this.go(this.next(-1));
    return work.isNew ? this.copy.about() : true;
  }

  progress() {
    const {units, done} = this.open;
    const wanted = units.filter((unit) => unit.state !== "locked").length;
    const count = units.filter((unit) => ["confirmed", "translated"].includes(stateOf(unit))).length;
    $("progress").max = wanted || 1;
    $("progress").value = count;
    $("count").textContent = `${count.toLocaleString("en")} of ${wanted.toLocaleString("en")}`;
    $("undo").disabled = !done.length;
    $("save").classList.toggle("main", count === wanted);
  }

  /** The next segment without a translation, from the beginning again where there is none after it. */
  next(after) {
    const found = this.open.units.findIndex((unit, at) => at > after && isOpen(unit));
    return found >= 0 ? found : this.open.units.findIndex(isOpen);
  }

  /** Goes to a segment, by its number from 0; where there is none of it, to the button that saves the file. */
  go(at) {
    const unit = this.open.units[at];
    this.leave();
    if (!unit) {
      this.say("All segments are translated. Save the file.");
      $("save").focus();
      return;
    }
    this.open.at = at;
    this.open.visit++;
    const row = this._list.row(at);
    row.classList.add("active");
    row.firstElementChild.ariaCurrent = "true";
    row.append($("work"));
    $("work").hidden = false;
    this.fill(unit);
    this.editor.field.readOnly = unit.state === "locked";
    this.tell("at", {at});
    this._field();
    row.scrollIntoView({block: "start"});
    this.editor.field.focus({preventScroll: true});
    if (unit.state === "locked") this.say(`Segment ${at + 1} is locked.`);
  }

  /** Goes a segment on, or back: 1 or -1. */
  step(way) {
    const at = (this.open.at < 0 && way < 0 ? this.open.units.length : this.open.at) + way;
    if (this.open.units[at]) this.go(at);
  }

  leave() {
    const {unit} = this, {at} = this.open;
    if (!unit) return;
    this.tell("leave", {at});
    const row = this._list.row(at);
    row.classList.remove("active");
    row.firstElementChild.ariaCurrent = null;
    $("work").hidden = true;
    document.querySelector("main").append($("work"));
    this.open.at = -1;
  }

  /** Shows these rows of the list alone: `isShown` is asked of the number of each, from 0. null: all of them. */
  show(isShown) { this._list.show(isShown); }

  /** Puts a segment's text into the field. */
  fill(unit) { this.editor.open(textOf(unit), shown(unit.source), chipsOf(unit)); }

  /** Puts words where the caret is, as if they were typed. */
  insert(text) {
    if (this.unit && !this.isLocked) this.editor.insert(text, 1);
  }

  /** Gives a segment another text, as if it were typed there. */
  replaceText(at, text) {
    if (at === this.open.at) this.editor.replace(text);
    else this._write(at, text);
  }

  /** A segment has changed: it is kept, and drawn. */
  changed(at) {
    this.copy.unit(at);
    this.redraw(at);
  }

  redraw(at) {
    this._list.draw(at);
    this.progress();
    this.tell("unit", {at});
    if (at === this.open.at) this._field();
  }

  _typed() {
    if (!this.unit) return;
    const {at} = this.open;
    this._write(at, this.editor.text);
    this._field();
    this.tell("typed", {at});
  }

  /** What was written is the segment's text. */
  _write(at, text) {
    const unit = this.open.units[at], before = textOf(unit), {state} = unit;
    if (!happen(unit, "write", {text})) return;
    if (textOf(unit) === before && unit.state === state) return;
    this.problems.clear(unit);
    this.changed(at);
  }

  _field() {
    if (this.unit) this.tell("field");
  }
}

/** Says where a proxy tells the server another address than the browser has: then it refuses what the page sends. */
async function checkAddress(problems) {
  const {host, local} = await get("page/address");
  if (!local || host === location.host) return;
  problems.show("address", `Your browser has this page at ${location.host}, but the server is told ${host || "no address"}. Without keys it then refuses what the page sends. If a proxy stands between, let it pass the address on, with its port: “proxy_set_header Host $http_host;” in nginx.`);
}

const desk = new Desk();
$("keys").addEventListener("click", () => $("help").showModal());
startPanels(desk);
checkAddress(desk.problems).catch((error) => desk.failed("address", error));
prepare((...document_) => desk.begin(...document_), (error) => desk.failed("begin", error)).catch((error) => desk.failed("begin", error));
