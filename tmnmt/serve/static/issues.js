// All that the checks have found in the document, by kind, as it stands now. A person goes there, or sets it aside with a
// reason; and is asked before the file is saved while any is there.

import {CHECKED, checkLine, foundOf} from "./checks.js";
import {change, changeSegment} from "./document.js";
import {el} from "./elements.js";
import {panel} from "./panels.js";
import {phrase} from "./phrases.js";
import {issuesOf} from "./segments.js";
import {sentence} from "./texts.js";

const $ = (id) => document.getElementById(id);
const MOST_SHOWN = 100;  // of a kind
const MOST_NAMED = 5;  // where no file is saved
const PAUSE = 250;  // milliseconds after a change before the list is drawn

/** What the checks have found in units: {kinds: by name, [{at, name, what}], ignored: [{at, name, what, ignored}], count}. */
export function collected(units) {
  const kinds = new Map(), ignored = [];
  let count = 0;
  units.forEach((unit, at) => {
    for (const check of issuesOf(unit)) {
      kinds.set(check.name, [...kinds.get(check.name) ?? [], {at, ...check}]);
      count++;
    }
    for (const check of unit.checks) if ((check.ignored ?? null) !== null) ignored.push({at, ...check});
  });
  return {kinds, ignored, count};
}

class Issues {
  constructor(desk) {
    this._desk = desk;
    this._timer = 0;
    this._ignore = desk.trying("issues", (entry, reason) => this._set(entry, reason));
    desk.on("opened", () => {
      $("issues-open").hidden = false;
      this._draw();
      this._drawRule();
    });
    desk.on("unit", () => { this._timer ||= setTimeout(() => this._draw(), PAUSE); });
    desk.action({id: "issues-open", work: () => this._toggle()});
    desk.action({keys: ["ctrl shift e"], work: () => this._enter()});
    desk.on("about", () => this._drawRule());
    $("strict").addEventListener("change", desk.trying("strict", () => this._setRule($("strict").checked)));
    $("issues-close").addEventListener("click", () => this._toggle());
    $("issues").addEventListener("keydown", (event) => this._press(event));
  }

  /** Whether no file is saved while the checks find something: all who work on the document or its project share that. */
  async _setRule(strict) {
    const {open} = this._desk;
    try {
      open.about = await change(open.about.id, {strict});
    } finally {
      this._drawRule();
    }
  }

  _drawRule() {
    const {strict, project} = this._desk.open.about;
    $("strict").checked = strict;
    $("strict-of").textContent = project ? phrase("for everybody, in all documents of {project}", {project}) : phrase("for everybody who works on this document");
  }

  /** Goes to the list; where a person is there already, it is closed. */
  _enter() {
    if ($("issues").hidden || $("issues").contains(document.activeElement)) this._toggle();
    else this._focus();
  }

  _focus() { ($("issues").querySelector("li button") ?? $("issues-close")).focus(); }

  _toggle() {
    $("issues").hidden = !$("issues").hidden;
    $("issues-open").ariaExpanded = String(!$("issues").hidden);
    this._draw();
    if ($("issues").hidden) this._desk.editor.field.focus();
    else this._focus();
  }

  _draw() {
    clearTimeout(this._timer);
    this._timer = 0;
    const {kinds, ignored, count} = collected(this._desk.open.units);
    $("issues-open").firstChild.textContent = count ? phrase("Issues {count}", {count}) : phrase("No issues");
    if ($("issues").hidden || $("issues").contains(document.querySelector(".reason"))) return;
    const place = this._place();
    $("issues-list").replaceChildren(...[...kinds].flatMap(([name, found]) => this._kind(CHECKED[name] ?? name, found)),
      ...(ignored.length ? this._kind(phrase("Set aside"), ignored) : []));
    $("no-issues").hidden = count > 0;
    this._return(place);
  }

  /** Which of the buttons has the focus, so that it has it again when the list is drawn anew. */
  _place() {
    const buttons = [...$("issues-list").querySelectorAll("button")];
    return buttons.indexOf(document.activeElement);
  }

  _return(place) {
    const buttons = [...$("issues-list").querySelectorAll("button")];
    if (place >= 0) (buttons[Math.min(place, buttons.length - 1)] ?? $("issues-close")).focus();
  }

  _kind(title, found) {
    const list = el("ul", "", ...found.slice(0, MOST_SHOWN).map((entry) => this._line(entry)));
    list.ariaLabel = title;
    return [el("h3", "", title, " ", el("small", "quiet", String(found.length))), list];
  }

  _line(entry) {
    const {at, ignored = null} = entry;
    const go = el("button", "number", String(at + 1)), aside = el("button", "", ignored === null ? phrase("Set aside …") : phrase("Look at it again"));
    go.type = aside.type = "button";
    go.ariaLabel = phrase("Go to segment {number}", {number: at + 1});
    go.addEventListener("click", () => this._desk.go(at));
    aside.addEventListener("click", () => (ignored === null ? this._ask(aside, entry) : this._ignore(entry, null)));
    return el("li", "issue", go, el("span", "", foundOf(entry)), ...(ignored ? [el("span", "quiet", ignored)] : []), aside);
  }

  /** Asks for the reason for which a check is set aside. */
  _ask(button, entry) {
    const reason = el("input"), form = el("form", "reason", reason, el("button", "main", phrase("Set aside")));
    Object.assign(reason, {required: true, maxLength: 500, ariaLabel: phrase("Reason"), placeholder: phrase("Reason")});
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      form.remove();
      this._ignore(entry, reason.value.trim());
    });
    form.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      form.replaceWith(button);
      button.focus();
    });
    button.replaceWith(form);
    reason.focus();
  }

  async _set({at, name, what}, reason) {
    const unit = this._desk.open.units[at];
    await this._desk.sync.landed;
    const ignore = {check: name, what, ...(reason === null ? {} : {reason})};
    this._desk.sync.take(await changeSegment(this._desk.open.about.id, unit.number, {version: unit.version, ignore}));
    this._draw();
    if (!$("issues").contains(document.activeElement)) this._return(0);
  }

  _press(event) {
    if (event.key === "Escape") this._toggle();
  }
}

const showIssues = () => {
  if ($("issues").hidden) $("issues-open").click();
  else $("issues").scrollIntoView();
};

/** Says why the file was not saved. issues: [{segment, name, what}]; none where it was saved. */
export function tellIssues(desk, issues) {
  if (!issues.length) return desk.problems.clear("strict");
  const named = issues.slice(0, MOST_NAMED).map(({segment: number, ...check}) => phrase("segment {number}: {reason}", {number, reason: checkLine(check)}));
  const more = issues.length > MOST_NAMED ? phrase("And {count} more.", {count: issues.length - MOST_NAMED}) : "";
  const told = [phrase("The file is not saved, since the checks find something in it:"), sentence(named.join("; ")), more];
  desk.problems.show("strict", told.filter(Boolean).join(" "));
  showIssues();
}

/** Whether the file is to be saved: a person is asked where the checks have found something. Where none may be saved then,
    the server says so. */
export function maySave(desk) {
  const {count} = collected(desk.open.units), dialog = $("unready");
  if (!count || desk.open.about.strict) return Promise.resolve(true);
  $("unready-count").textContent = phrase("The checks have found {count} things that nobody has set aside.", {count});
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => {
    done(dialog.returnValue === "save");
    if (dialog.returnValue === "look") showIssues();
  }, {once: true}));
}

panel((desk) => { new Issues(desk); });
