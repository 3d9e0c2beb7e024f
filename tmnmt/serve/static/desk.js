// The desk: the document that is open, and its segment at work. All else is a part that registers itself (panels.js).

import {Actions} from "./actions.js";
import {address, get} from "./api.js";
import {chipsOf} from "./chips.js";
import "./column.js";
import "./comments.js";
import "./confirm.js";
import * as server from "./document.js";
import "./download.js";
import {Editor} from "./editor.js";
import "./filter.js";
import "./finder.js";
import "./glossary.js";
import "./issues.js";
import {Kept} from "./kept.js";
import {SegmentList} from "./list.js";
import "./moves.js";
import "./others.js";
import {Listeners, startPanels} from "./panels.js";
import {phrase} from "./phrases.js";
import {Presence} from "./presence.js";
import {Problems} from "./problems.js";
import "./progress.js";
import "./repetitions.js";
import {happen, isOpen, segment, textOf} from "./segments.js";
import {prepare} from "./start.js";
import "./states.js";
import "./suggestion.js";
import {Sync} from "./sync.js";
import "./tags.js";
import {plain, shown} from "./texts.js";
import "./tools.js";
import "./versions.js";
import "./view.js";

const $ = (id) => document.getElementById(id);
const PART = 500;  // segments that are made at a time

/** open: the document, {about, session, units, at, …}; null before one is open. editor: the field (editor.js). people: who
    else has it open, [{name, number}]. problems: what went wrong (problems.js). sync: the way to the server (sync.js). */
class Desk {
  constructor() {
    this.open = null;
    this.people = [];
    this.sync = null;
    this._isGone = false;  // whether the document is no longer on the server
    this._isBehind = false;  // whether something was asked for that the server did not answer
    this.problems = new Problems($("problem"));
    this.editor = new Editor($("target"), $("ghost"), $("room"), () => this._typed(), (text) => this.say(text));
    this._listeners = new Listeners();
    this._actions = new Actions(() => this.open !== null && !this.isModal, () => this._field());
    this._list = null;
    this._sources = new Map();  // segments by their sources
    /** Whether a match was confirmed in this document. */
    this.isOwn = (match) => match.id < 0 || (this._sources.get(match.src) ?? []).some((unit) => unit.confirmed !== null && plain(unit.confirmed).trim() === match.tgt);
    addEventListener("beforeunload", (event) => { if (this.sync?.isAtRisk || this.open?.sending.size) event.preventDefault(); });
    addEventListener("popstate", () => location.reload());
    addEventListener("pageshow", ({persisted}) => { if (persisted) location.reload(); });  // as it stood when it was left
    document.addEventListener("visibilitychange", () => { if (document.hidden) this.sync?.flush(); });
  }

  /** The segment at work; undefined where none is. */
  get unit() { return this.open?.units[this.open.at]; }

  /** Whether nothing can be written in the field. */
  get isLocked() { return this.editor.field.readOnly; }

  /** Whether a dialog is open. */
  get isModal() { return document.querySelector("dialog[open]") !== null; }

  /** What is marked in the field. */
  get selected() { return this.editor.selected.trim(); }

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

  /** What failed stands under that name; that the server does not answer is told once for all, until it does. */
  failed(name, error) {
    if (error.name === "AbortError" || this._isGone) return;
    if (error.isAway && this.sync) {
      this._isBehind = true;
      this.sync.missed();
      this._tellState("waiting");  // also where it was dismissed
    } else {
      this.problems.show(name, error.message);
    }
  }

  /** Opens a document of the server. about: what is known of it. */
  async begin(about) {
    const {version, segments} = await server.segments(about.id, about.segments);
    const units = await inParts(segments, segment);
    const session = {...about.session, source: about.source, target: about.target};
    this.open = {about, name: about.name, session, units, version, at: -1, visit: 0, sending: new Set()};
    for (const unit of units) {
      const source = plain(unit.source).trim();
      if (!this._sources.has(source)) this._sources.set(source, []);
      this._sources.get(source).push(unit);
    }
    this._show(about);
    this._list = new SegmentList($("list"), units, session, (at) => this.go(at));
    const isBusy = (at) => at === this.open.at;
    const presence = new Presence(this, server), kept = new Kept(about.id, presence.tab);
    this.sync = new Sync(this.open, server, kept, this._hooks(presence), isBusy);
    this.sync.start();
    this.tell("opened");
    this.go(this.next(-1));
  }

  _show(about) {
    for (const id of ["start", "documents", "former"]) $(id).hidden = true;
    for (const id of ["about", "list", "find", "undo", "save", "tmx", "home"]) $(id).hidden = false;
    $("name").textContent = $("name").title = about.name;
    document.title = `${about.name} – tmnmt`;
    $("review").href = address(`review#${encodeURIComponent(about.session.id)}`);
    $("home").href = address("");
    $("source").lang = about.source;
    for (const element of ["offer", "target", "ghost"]) $(element).lang = about.target;
    for (const element of ["source", "offer", "target", "ghost", "room"]) $(element).dir = "auto";
  }

  /** What the way to the server tells. */
  _hooks(presence) {
    return {
      drawn: (at) => this._came(at),
      people: (people) => {
        this.people = people.filter(({tab}) => tab !== presence.tab);
        this.tell("people", {people: this.people});
      },
      about: (about) => {
        this.open.about = about;
        this.tell("about");
      },
      state: (what) => this._tellState(what),
      refused: (error, numbers) => this._refused(error, numbers),
    };
  }

  /** The server does not take what was written in these segments, or where there are none, does not tell what others do. */
  _refused(error, numbers) {
    if (this._isGone) return;
    if (error.status === 404) {
      this._isGone = true;
      this.problems.clearAll();
      this.problems.show("sync", phrase("This document is no longer on the server: somebody has deleted it, or your key does not see it any more. What you wrote stays on this page until you leave it; copy what you need."));
      return;
    }
    const reason = error.message;
    this.problems.show("sync", numbers.length
      ? phrase("The server does not take what you wrote in segment {number}: {reason}", {number: numbers[0] + 1, reason})
      : phrase("The server does not tell any more what others do here: {reason} Your text stays in this browser.", {reason}));
  }

  _tellState(what) {
    if (what === "lost") this.problems.show("kept", phrase("This browser keeps nothing of what you write, so that it is lost where the server does not answer: do not close the tab then."));
    else if (what === "sent") this._answers();
    else this.problems.show("sync", phrase("The server does not answer. Nothing is lost: this browser keeps what you write, and sends it as soon as the server answers. Go on."));
  }

  /** The server answers again. */
  _answers() {
    this.problems.clear("sync");
    if (this._isBehind) this.tell("again");
    this._isBehind = false;
  }

  /** A segment has changed by what the server told. */
  _came(at) {
    const unit = this.open.units[at];
    if (at === this.open.at && unit.state !== "confirming" && this.editor.text !== textOf(unit)) this.fill(unit);
    this.redraw(at);
  }

  /** The next segment without a translation among those that are shown, from the beginning again where there is none after
      it; -1 where there is none. isWanted: asked instead of each unit whether it is one. */
  next(after, isWanted = isOpen) {
    const {units} = this.open;
    for (let step = 1; step <= units.length; step++) {
      const at = (after + step) % units.length;
      if (this._list.isShown(at) && isWanted(units[at])) return at;
    }
    return -1;
  }

  /** Goes to a segment, by its number from 0; where there is none of it, to the button that saves the file. */
  go(at) {
    const unit = this.open.units[at];
    this.leave();
    if (!unit) {
      this.say(phrase("All segments are translated. Save the file."));
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
    if (unit.state === "locked") this.say(phrase("Segment {number} is locked.", {number: at + 1}));
  }

  /** Goes a segment on, or back, among those that are shown: 1 or -1. */
  step(way) {
    let at = (this.open.at < 0 && way < 0 ? this.open.units.length : this.open.at) + way;
    while (this.open.units[at] && !this._list.isShown(at)) at += way;
    if (this.open.units[at]) this.go(at);
  }

  leave() {
    const {unit} = this, {at} = this.open;
    if (!unit) return;
    this.tell("leave", {at});
    if (happen(unit, "leave")) this.changed(at);
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

  /** A segment was changed here: the server is told, and it is drawn. */
  changed(at) {
    this.sync.written(at);
    this.redraw(at);
  }

  /** Puts a mark on a row: "differs", true where its repetitions have other texts, or "people", the names of who is there. */
  mark(at, name, value) { this._list.mark(at, name, value); }

  redraw(at) {
    this._list.draw(at);
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
  problems.show("address", phrase("Your browser has this page at {own}, but the server is told {host}. Without keys it then refuses what the page sends. If a proxy stands between, let it pass the address on, with its port: “proxy_set_header Host $http_host;” in nginx.", {own: location.host, host: host || phrase("no address")}));
}

/** What `work` makes of each, without keeping the page from anything else for long. */
async function inParts(entries, work) {
  const results = [];
  for (let from = 0; from < entries.length; from += PART) {
    results.push(...entries.slice(from, from + PART).map(work));
    if (from + PART < entries.length) await new Promise((done) => setTimeout(done));
  }
  return results;
}

/** What the server knows of a document. Where it cannot be opened, a person can go to the others. */
async function known(id) {
  try {
    return await server.about(id);
  } catch (error) {
    $("home").hidden = false;
    $("home").href = address("");
    if (error.status !== 404) throw error;
    throw new Error(phrase("There is no document at this address: somebody has deleted it, or your key does not see it."));
  }
}

/** The document of the page's address, or the start page. */
async function open(desk, failed) {
  document.querySelector("link[rel=icon]").href = address("page/icon.svg");  // whatever the page's address becomes
  const [, id] = /\/d\/([^/]+)$/.exec(location.pathname) ?? [];
  if (id) return desk.begin(await known(decodeURIComponent(id)));
  return prepare((about) => {
    history.pushState(null, "", address(`d/${encodeURIComponent(about.id)}`));
    desk.begin(about).catch(failed);
  }, failed);
}

const desk = new Desk();
const failed = (error, name = "begin") => desk.failed(name, error);
$("keys").addEventListener("click", () => $("help").showModal());
startPanels(desk);
checkAddress(desk.problems).catch((error) => failed(error, "address"));
open(desk, failed).catch(failed);
