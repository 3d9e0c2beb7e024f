// The segments of a document under review, each with another version beside it. A person reads them in order, says how far
// each is right, and changes what is not.

import {get, patch, post} from "./api.js";
import {checkLine} from "./checks.js";
import {chipsOf} from "./chips.js";
import {Editor} from "./editor.js";
import {el, text} from "./elements.js";
import {drawnTags} from "./marks.js";
import {percent, phrase} from "./phrases.js";
import {formerOf, openIssues, presentOf, rowsOf, wanted} from "./reading.js";
import {diff, marked, plain, shown, tagProblem, tagsOf} from "./texts.js";

const $ = (id) => document.getElementById(id);
const PART = 60;  // rows that are drawn at a time
const STATES = {
  untouched: phrase("not translated"), draft: phrase("a draft"), translated: phrase("translated"), reviewed: phrase("reviewed"),
  approved: phrase("approved"), locked: phrase("locked"),
};
const CONFIRMED = ["translated", "reviewed", "approved"];

/** What one text has that the other has not, marked: `kind` is "out" for the first of them and "in" for the second. The tags
    of the segment are chips, and marked where words are changed beside them: a suggestion is kept without its tags. */
function side(before, after, kind, chips) {
  const parts = diff(before, after).filter((part) => part.kind === "same" || part.kind === kind);
  return parts.flatMap((part) => {
    const isMarked = part.kind !== "same" && chips.words(chips.signs(part.text)).trim();
    const made = drawnTags(part.text, chips);
    return isMarked ? [el(kind === "out" ? "del" : "ins", "", ...made)] : made;
  });
}

export class ReviewList {
  /** about: the document. rows: its segments (reading.js). */
  constructor(about, rows) {
    this._about = about;
    this._rows = rows;
    this._shown = [];
    this._drawn = 0;
    this._end = new AbortController();
    const {signal} = this._end;
    for (const id of ["compare", "show", "order"]) $(id).addEventListener("change", () => this._draw(), {signal});
    $("rows").addEventListener("click", (event) => this._click(event), {signal});
    $("rows").addEventListener("keydown", (event) => this._press(event), {signal});
    this._watch = new IntersectionObserver(([{isIntersecting}]) => { if (isIntersecting) this._more(); }, {rootMargin: "800px"});
    this._watch.observe($("rows-end"));
    this._draw();
  }

  close() {
    this._end.abort();
    this._watch.disconnect();
    $("rows").replaceChildren();
  }

  /** What has changed in segments, and what was suggested for them. reviews: as `rowsOf` has them. */
  take(segments, reviews) {
    for (const now of rowsOf(segments, reviews)) {
      const row = this._rows.find(({segment}) => segment.number === now.segment.number);
      if (!row || now.segment.version <= row.segment.version) continue;
      const item = $("rows").querySelector(`[data-number="${now.segment.number}"]`);
      Object.assign(row, now, {history: undefined});
      if (item) this._fill(item, row);
    }
    this._tell();
  }

  /** All rows anew. */
  _draw() {
    this._shown = wanted(this._rows, $("show").value, $("order").value);
    this._drawn = 0;
    $("rows").replaceChildren();
    $("no-rows").hidden = this._shown.length > 0;
    this._more();
    this._tell();
  }

  _more() {
    const part = this._shown.slice(this._drawn, this._drawn + PART);
    this._drawn += part.length;
    $("rows").append(...part.map((row) => this._element(row)));
    if (!$("rows").querySelector("[tabindex='0']") && $("rows").firstElementChild) $("rows").firstElementChild.tabIndex = 0;
  }

  _tell() {
    const count = this._rows.filter(({segment}) => ["reviewed", "approved"].includes(segment.state)).length;
    $("read-count").textContent = phrase("{read} of {count} segments are reviewed", {read: count, count: this._rows.length});
  }

  _element(row) {
    const item = el("li", "reviewed-row");
    item.tabIndex = -1;
    item.dataset.number = row.segment.number;
    this._fill(item, row);
    return item;
  }

  _fill(item, row) {
    const {segment} = row, {source, target} = this._about, present = shown(presentOf(segment)), chips = chipsOf(segment);
    const [beside, name] = this._beside(item, row);
    const isOffered = beside !== null && beside !== (this._isBare ? plain(presentOf(segment)) : present);
    item.dataset.state = segment.state;
    item.setAttribute("aria-label", phrase("Segment {number}, {state}", {number: String(segment.number), state: STATES[segment.state]}));
    const versions = el("div", "compared",
      el("div", "", el("p", "label", name), text("p", target, ...(beside === null ? [] : side(beside, present, "out", chips)))),
      el("div", "", el("p", "label", phrase("now")), text("p", target, ...(beside === null ? drawnTags(present, chips) : side(beside, present, "in", chips)))));
    const head = el("p", "head", el("span", "number", String(segment.number)), text("span", source, ...drawnTags(shown(segment.source), chips)));
    const form = item.querySelector("form"), hasFocus = item.contains(document.activeElement) && !form?.contains(document.activeElement);
    for (const child of [...item.children]) if (child !== form) child.remove();  // what somebody writes there stays
    item.prepend(head, versions, this._facts(segment), this._actions(segment, isOffered));
    if (hasFocus) item.focus();
  }

  /** Whether the other version is without its tags. */
  get _isBare() { return $("compare").value === "suggested"; }

  /** The other version as it is shown, null where there is none, and what it is. */
  _beside(item, row) {
    if (this._isBare) return [row.suggested ?? null, row.suggested === null ? phrase("nothing was suggested") : phrase("suggested")];
    if (row.history === undefined) this._ask(item, row);
    const former = row.history ? formerOf(row.segment, row.history) : null;
    return [former === null ? null : shown(former), row.history && former === null ? phrase("no former version") : phrase("before")];
  }

  /** Asks for what stood in a segment, once. */
  async _ask(item, row) {
    row.history = null;
    const {versions} = await get(this._path(row, "/history")).catch(() => ({versions: []}));
    row.history = versions;
    if (item.isConnected) this._fill(item, row);
  }

  _facts(segment) {
    const facts = [STATES[segment.state], segment.by === "you" ? phrase("you") : segment.by, segment.quality === null ? "" : phrase("suggestion likely right: {share}", {share: percent(segment.quality)})];
    const found = openIssues(segment).map((check) => el("span", "found", checkLine(check)));
    return el("p", "quiet facts", el("span", "state", facts.filter(Boolean).join(" · ")), ...found);
  }

  _actions(segment, isOffered) {
    const button = (name, label, key, isPressed) => {
      const made = el("button", "", label, " ", el("kbd", "", key));
      made.type = "button";
      made.tabIndex = -1;
      made.dataset.action = name;
      if (isPressed !== undefined) made.ariaPressed = String(isPressed);
      return made;
    };
    const isConfirmed = CONFIRMED.includes(segment.state);
    return el("p", "actions",
      ...(isConfirmed ? [button("reviewed", phrase("Reviewed"), "R", segment.state === "reviewed"), button("approved", phrase("Approved"), "A", segment.state === "approved")] : []),
      ...(segment.state === "locked" ? [] : [button("change", phrase("Change"), "C")]),
      ...(isOffered && segment.state !== "locked" ? [button("take", phrase("Take the other"), "O")] : []));
  }

  _row(item) { return this._rows.find(({segment}) => segment.number === Number(item.dataset.number)); }

  _path({segment}, end = "") { return `v1/desk/${encodeURIComponent(this._about.id)}/segments/${segment.number}${end}`; }

  _click({target}) {
    const item = target.closest("li"), action = target.closest("[data-action]")?.dataset.action;
    if (!item) return;
    this._focus(item, !target.closest("textarea, button"));
    if (action) this._do(action, item);
  }

  _press(event) {
    const item = event.target.closest("li");
    if (!item || event.target !== item || event.ctrlKey || event.altKey || event.metaKey) return;
    const action = {r: "reviewed", a: "approved", c: "change", Enter: "change", o: "take"}[event.key];
    const to = {ArrowDown: item.nextElementSibling, ArrowUp: item.previousElementSibling, Home: $("rows").firstElementChild}[event.key];
    if (action && item.querySelector(`[data-action=${action}]`)) this._do(action, item);
    else if (to) this._focus(to);
    else return;
    event.preventDefault();
  }

  _focus(item, isWanted = true) {
    for (const other of $("rows").querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
    item.tabIndex = 0;
    if (isWanted) item.focus();
  }

  async _do(action, item) {
    const row = this._row(item);
    $("problem").textContent = "";
    try {
      if (action === "change") this._edit(item, row, shown(presentOf(row.segment)));
      else if (action === "take") await this._take(item, row);
      else await this._judge(item, row, action);
    } catch (error) {
      this._failed(item, row, error);
    }
  }

  /** Where somebody else has changed the segment meanwhile, it is shown as it is now. */
  _failed(item, row, error) {
    $("problem").textContent = phrase("Segment {number}: {reason}", {number: String(row.segment.number), reason: error.message});
    if (error.segment) this._changed(item, row, error.segment);
  }

  /** Says how far a segment is right, once more that it is just translated; then the next is read. */
  async _judge(item, row, state) {
    const isBack = row.segment.state === state, {version} = row.segment;
    const record = await patch(this._path(row), {version, state: isBack ? "translated" : state});
    this._changed(item, row, record);
    if (!isBack) this._focus(item.nextElementSibling ?? item);
  }

  /** The other version takes the place of the present one; where that has tags, a person puts them in. */
  async _take(item, row) {
    const [beside] = this._beside(item, row);
    if (this._isBare && tagsOf(row.segment.source).length) this._edit(item, row, beside);
    else await this._confirm(item, row, beside, false, row.segment.version);
  }

  _edit(item, row, written) {
    item.querySelector("form")?.remove();
    const {target} = this._about, field = text("textarea", target), editor = this._editor(field, row.segment, written);
    const save = el("button", "main", phrase("Confirm"), " ", el("kbd", "", `Ctrl ${phrase("Enter")}`)), close = el("button", "", phrase("Leave it"), " ", el("kbd", "", phrase("Esc")));
    const tag = el("button", "", phrase("Next tag"), " ", el("kbd", "", "F8"));
    const form = el("form", "change", field.parentElement, el("p", "actions", save, close, ...(tagsOf(row.segment.source).length ? [tag] : [])));
    Object.assign(field, {rows: 1, ariaLabel: phrase("Translation")});
    close.type = tag.type = "button";
    tag.addEventListener("click", () => editor.insertTag());
    let seen = null;  // for which text the checks have found something
    let {version} = row.segment;  // that the reviewer knows
    const leave = () => {
      form.remove();
      this._focus(item);
    };
    const send = async () => {
      try {
        await this._confirm(item, row, editor.text.trim(), seen === editor.text, version);
      } catch (error) {
        seen = error.checks ? editor.text : null;
        version = error.segment?.version ?? version;
        this._failed(item, row, error.checks ? new Error(`${error.checks.map(checkLine).join("; ")}. ${phrase("Confirm once more to take it all the same.")}`) : error);
      }
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send();
    });
    close.addEventListener("click", leave);
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") leave();
      else if (event.key === "F8") editor.insertTag();
      else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
      else if (event.key !== "Enter") return;
      event.preventDefault();
    });
    item.append(form);
    field.focus();
  }

  /** A field for a translation, as on the desk, with what is put behind it: tags are chips. */
  _editor(field, segment, written) {
    const {target} = this._about, room = text("div", target), ghost = text("div", target, el("span", ""), el("span", "rest"));
    for (const [element, kind] of [[room, "room"], [ghost, "ghost"]]) {
      element.classList.add(kind);
      element.ariaHidden = "true";
    }
    el("div", "field", room, ghost, field);
    const editor = new Editor(field, ghost, room, undefined, undefined, this._end.signal);
    editor.open(written, shown(segment.source), chipsOf(segment));
    return editor;
  }

  /** Confirms a text, which the reviewer has read. */
  async _confirm(item, row, written, despite, version) {
    const {segment} = row, tags = tagsOf(segment.source).concat(tagsOf(segment.file.target ?? ""));
    const problem = tagProblem(written, tags, plain(segment.source) + plain(segment.file.target ?? ""));
    if (problem) throw new Error(problem);
    const body = {
      version, text: marked(written, tags), state: "reviewed", on_checks: despite ? "tell" : "refuse",
      request: `review.${segment.number}.${version}`, ...(row.suggested === null ? {} : {suggested: row.suggested}),
    };
    const {segment: record} = await post(this._path(row, "/confirm"), body);
    item.querySelector("form")?.remove();
    this._changed(item, row, record);
    this._focus(item);
  }

  _changed(item, row, record) {
    row.segment = record;
    row.history = undefined;
    this._fill(item, row);
    this._tell();
  }
}
