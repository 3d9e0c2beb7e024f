// The segments that a person wants to see, and words that are replaced in them, with every change shown before.

import {CHECKED} from "./checks.js";
import {NOTHING, conditionOf, isEmpty, replacementIn} from "./conditions.js";
import {el, text as paragraph} from "./elements.js";
import {drawDiff} from "./offer.js";
import {panel} from "./panels.js";
import {finderOf} from "./pattern.js";
import {phrase} from "./phrases.js";
import {textOf} from "./segments.js";
import {sliced} from "./slices.js";

const $ = (id) => document.getElementById(id);
const PAUSE = 150;  // milliseconds after a letter before it is looked for
const MOST_SHOWN = 200;  // changes that are listed at a time

/** What stands in the form. */
function read(form) {
  const data = new FormData(form), number = (name) => (data.get(name) ? Number(data.get(name)) : null);
  return {
    ...NOTHING, ...Object.fromEntries(["text", "side", "state", "issue", "origin"].map((name) => [name, data.get(name)])),
    isPattern: data.has("isPattern"), hasCase: data.has("hasCase"), least: number("least"), most: number("most"),
  };
}

class Filter {
  constructor(desk) {
    this._desk = desk;
    this._form = $("filter-form");
    this._wanted = null;  // the numbers of the segments that are shown, from 0; null: all
    this._changes = [];  // that are previewed: {at, before, after, count}
    this._replaced = [];  // what was replaced with these words: it is undone together
    this._work = new AbortController();
    this._timer = 0;
    const apply = desk.trying("filter", () => this.apply());
    this._form.addEventListener("input", () => this._later(apply));
    this._form.addEventListener("submit", (event) => this._submit(event, apply));
    $("filter").addEventListener("keydown", (event) => this._leave(event));
    for (const id of ["replacement", "deletes"]) $(id).addEventListener("input", () => this._later(apply));
    $("filter-clear").addEventListener("click", () => this._clear());
    $("replace-all").addEventListener("click", desk.trying("filter", () => this._replaceAll()));
    $("replace-undo").addEventListener("click", desk.trying("filter", () => this._undo()));
    $("changes").addEventListener("click", (event) => this._choose(event));
    $("changes").addEventListener("keydown", (event) => this._along(event));
    $("filter-issue").append(...Object.entries(CHECKED).map(([name, label]) => new Option(label, name)));
    desk.on("opened", () => { $("filter-open").hidden = false; });
    desk.on("at", ({at}) => { if (this._wanted && !this._wanted.has(at)) this._show(); });
    desk.action({id: "filter-open", keys: ["ctrl shift f"], work: () => this._open("filter-text")});
    desk.action({keys: ["ctrl h"], work: () => this._open(this._form.elements.text.value ? "replacement" : "filter-text")});
  }

  _open(id) {
    $("filter").hidden = false;
    const marked = this._desk.selected;
    if (marked && !this._form.elements.text.value) {
      this._form.elements.text.value = marked;
      this._form.dispatchEvent(new Event("input"));
    }
    $(id).focus();
    $(id).select();
  }

  _later(work) {
    clearTimeout(this._timer);
    this._work.abort();
    this._timer = setTimeout(work, PAUSE);
  }

  _submit(event, apply) {
    event.preventDefault();
    clearTimeout(this._timer);
    apply();
  }

  /** Escape goes back to the field; what is filtered stays so. */
  _leave(event) {
    if (event.key === "Escape") this._desk.editor.field.focus();
  }

  _clear() {
    this._form.reset();
    $("replacement").value = "";
    $("deletes").checked = false;
    $("filter").hidden = true;
    this._later(() => {});
    this._wanted = null;
    this._replaced = [];
    this._preview([]);
    this._show();
    this._desk.editor.field.focus();
  }

  /** Shows the segments that the conditions are true of, and what would be replaced in them. */
  async apply() {
    this._work.abort();
    this._work = new AbortController();
    const {signal} = this._work, {units} = this._desk.open, conditions = read(this._form);
    const isWanted = conditionOf(conditions);
    if (isEmpty(conditions)) this._wanted = null;
    else {
      const answers = await sliced(units.length, (at) => isWanted(units[at]), signal);
      if (!answers) return;
      this._wanted = new Set(answers.flatMap((answer, at) => (answer ? [at] : [])));
    }
    this._show();
    await this._look(conditions, signal);
  }

  _show() {
    const {units} = this._desk.open, wanted = this._wanted;
    this._desk.show(wanted && ((number) => wanted.has(number) || number === this._desk.open.at));
    $("filter-count").textContent = wanted ? phrase("{shown} of {count} segments", {shown: wanted.size, count: units.length}) : "";
  }

  /** Looks for what would be replaced. */
  async _look(conditions, signal) {
    const replacement = $("deletes").checked ? "" : $("replacement").value, {units} = this._desk.open;
    if (!conditions.text || conditions.side === "source" || !(replacement || $("deletes").checked)) return this._preview([]);
    const finder = finderOf(conditions.text, conditions);
    const numbers = [...this._wanted ?? units.keys()];
    const found = await sliced(numbers.length, (n) => replacementIn(units[numbers[n]], finder, replacement), signal);
    if (!found) return undefined;
    const changes = found.flatMap((change, n) => (change ? [{at: numbers[n], ...change}] : []));
    const rows = await sliced(Math.min(changes.length, MOST_SHOWN), (n) => this._row(changes[n]), signal);
    return rows && this._preview(changes, rows);
  }

  /** Lists changes, the first of them by these rows. */
  _preview(changes, rows = []) {
    this._changes = changes;
    const count = changes.reduce((sum, change) => sum + change.count, 0);
    $("changes").replaceChildren(...rows);
    $("changes").hidden = $("replace-all").disabled = !changes.length;
    $("changes-count").textContent = changes.length ? phrase("{places} places in {count} segments", {places: count, count: changes.length}) : "";
    $("replace-undo").hidden = !this._replaced.length;
  }

  _row({at, before, after}) {
    const number = el("button", "number", String(at + 1)), replace = el("button", "replace", phrase("Replace"));
    number.type = replace.type = "button";
    number.ariaLabel = phrase("Go to segment {number}", {number: at + 1});
    replace.ariaLabel = phrase("Replace in segment {number}", {number: at + 1});
    const row = el("li", "changed-row", number, paragraph("span", this._desk.open.session.target, ...drawDiff(before, after)), replace);
    row.dataset.at = at;
    return row;
  }

  _choose({target}) {
    const row = target.closest("li");
    if (!row || !target.closest("button")) return;
    const at = Number(row.dataset.at);
    if (target.closest(".number")) return this._desk.go(at);
    this._replace(this._changes.find((change) => change.at === at));
    const next = row.nextElementSibling ?? row.previousElementSibling;
    this._changes = this._changes.filter((change) => change.at !== at);
    row.remove();
    const rows = [...$("changes").children];
    rows.push(...this._changes.slice(rows.length, MOST_SHOWN).map((change) => this._row(change)));
    this._preview(this._changes, rows);
    (rows.find((one) => one.dataset.at === next?.dataset.at)?.querySelector(".replace") ?? $("replace-undo")).focus();
  }

  _along(event) {
    const rows = [...$("changes").children], at = rows.indexOf(event.target.closest("li"));
    const next = {ArrowDown: rows[at + 1], ArrowUp: rows[at - 1]}[event.key];
    if (!next) return;
    event.preventDefault();
    next.querySelector(".replace").focus();
  }

  _replace({at, before, after}) {
    const unit = this._desk.open.units[at];
    if (textOf(unit) !== before) return;  // somebody has written there since
    this._desk.replaceText(at, after);
    this._replaced.push({at, before, after});
  }

  async _replaceAll() {
    const changes = this._changes;
    await sliced(changes.length, (n) => this._replace(changes[n]));
    this._desk.say(phrase("{count} segments are changed. They are drafts.", {count: changes.length}));
    this._preview([]);
    $("replace-undo").focus();
  }

  /** Takes back what was replaced with these words, where nothing else was written since. */
  async _undo() {
    const {units} = this._desk.open, replaced = this._replaced.reverse();
    const isAsReplaced = ({at, after}) => textOf(units[at]) === after;
    const undone = replaced.filter(isAsReplaced);
    await sliced(undone.length, (n) => this._desk.replaceText(undone[n].at, undone[n].before));
    this._replaced = [];
    this._desk.say(phrase("{count} segments have their former text.", {count: undone.length}));
    await this.apply();
    $("replacement").focus();
  }
}

panel((desk) => { new Filter(desk); });
