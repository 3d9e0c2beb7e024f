// The list of segments. Rows stand in blocks; a block that is far from view has no rows yet, and one that is out of view
// costs nothing but its block.

import {chipsOf} from "./chips.js";
import {el, text as paragraph} from "./elements.js";
import {drawnTags} from "./marks.js";
import {phrase} from "./phrases.js";
import {issuesOf, stateOf, textOf} from "./segments.js";
import {shown} from "./texts.js";

export const STATES = {
  new: phrase("not translated"), draft: phrase("a draft"), locked: phrase("locked"), confirming: phrase("being confirmed"),
  translated: phrase("translated"), reviewed: phrase("reviewed"), approved: phrase("approved"),
};
const SIGNS = {draft: "~", locked: "–", confirming: "…", translated: "✓", reviewed: "✓✓", approved: "★"};
const BLOCK = 40;  // segments
const IDLE = 8;  // milliseconds that are left where a block of rows is made ahead

export class SegmentList {
  /** box: the element of the list. languages: {source, target}. choose: called with the number of a row that is clicked,
      from 0. */
  constructor(box, units, languages, choose) {
    this._units = units;
    this._languages = languages;
    this._isShown = null;
    this._marks = new Map();  // by place: {name: value}
    this._blocks = [];
    for (let from = 0; from < units.length; from += BLOCK) this._blocks.push(this._block());
    box.replaceChildren(...this._blocks.map(({element}) => element));
    box.addEventListener("click", ({target}) => {
      const row = target.closest(".row");
      const at = row ? Number(row.dataset.at) : -1;
      if (at >= 0 && !target.closest(".active")) choose(at);
    });
    this._watch = new IntersectionObserver((found) => this._seen(found), {rootMargin: "1500px"});
    for (const {element} of this._blocks) this._watch.observe(element);
    this._fill(0);
    this._goOn();
  }

  /** The row of a segment. */
  row(at) {
    const block = Math.floor(at / BLOCK);
    this._fill(block);
    return this._blocks[block].rows[at - block * BLOCK];
  }

  /** Draws a segment as it is now. */
  draw(at) {
    const block = Math.floor(at / BLOCK), {rows} = this._blocks[block];
    if (rows) this._draw(rows[at - block * BLOCK], at);
  }

  /** Marks a segment, such as "differs"; a value that is empty takes the mark away. */
  mark(at, name, value) {
    const marks = this._marks.get(at) ?? {};
    if ((marks[name] || false) === (value || false)) return;
    this._marks.set(at, {...marks, [name]: value});
    this.draw(at);
  }

  /** Whether a row is shown. */
  isShown(at) { return this._isShown === null || this._isShown(at); }

  /** Shows these rows alone: `isShown` is asked of the number of each, from 0. null: all of them. */
  show(isShown) {
    this._isShown = isShown;
    this._blocks.forEach(({element, rows}, block) => {
      const numbers = this._numbers(block);
      element.hidden = isShown !== null && !numbers.some(isShown);
      rows?.forEach((row, n) => { row.hidden = isShown !== null && !isShown(numbers[n]); });
    });
  }

  _block() {
    const element = el("div", "block");
    element.role = "presentation";
    return {element, rows: null};
  }

  _numbers(block) {
    const from = block * BLOCK;
    return Array.from({length: Math.min(BLOCK, this._units.length - from)}, (_, n) => from + n);
  }

  _seen(found) {
    for (const {isIntersecting, target} of found) {
      if (isIntersecting) this._fill(this._blocks.findIndex(({element}) => element === target));
    }
  }

  /** Makes the other blocks as well while the page has nothing else to do, so that the browser finds their words. */
  _goOn() {
    const rest = () => this._blocks.findIndex(({rows}) => !rows);
    if (rest() < 0) return;
    whenIdle((time) => {
      do this._fill(rest()); while (rest() >= 0 && time() > IDLE);
      this._goOn();
    });
  }

  _fill(block) {
    const made = this._blocks[block];
    if (!made || made.rows) return;
    made.rows = this._numbers(block).map((at) => this._row(at));
    made.element.append(...made.rows);
    this._watch?.unobserve(made.element);
  }

  _row(at) {
    const number = el("button", "number", String(at + 1));
    number.type = "button";
    number.tabIndex = -1;
    const {source, target} = this._languages;
    const [said, written] = [paragraph("p", source, ...this._drawn(at, shown(this._units[at].source))), paragraph("p", target)];
    said.classList.add("source");
    written.classList.add("target");
    const row = el("div", "row", number, el("div", "texts", said, written), el("span", "state"));
    row.role = "listitem";
    row.dataset.at = at;
    row.lastElementChild.ariaHidden = "true";
    row.hidden = !this.isShown(at);
    this._draw(row, at);
    return row;
  }

  _drawn(at, text) { return drawnTags(text, chipsOf(this._units[at])); }

  _draw(row, at) {
    const unit = this._units[at], state = stateOf(unit), marks = this._marks.get(at) ?? {};
    const told = [
      ["!", phrase("the checks found something"), issuesOf(unit).length > 0],
      ["≠", phrase("a repetition has another text"), Boolean(marks.differs)],
      ["⇄", phrase("somebody else has written, too"), unit.others.length > 0],
      ["”", phrase("with a comment"), unit.comments.length > 0],
    ].filter(([, , isSo]) => isSo);
    row.dataset.state = state;
    row.toggleAttribute("data-checks", issuesOf(unit).length > 0);
    row.querySelector(".target").replaceChildren(...this._drawn(at, textOf(unit)));
    row.querySelector(".state").textContent = [SIGNS[state] ?? "", ...told.map(([sign]) => sign)].join("");
    const people = marks.people ? [phrase("{people} at work here", {people: marks.people})] : [];
    const [number] = row.children;
    number.ariaLabel = [phrase("Segment {number}", {number: at + 1}), STATES[state], ...told.map(([, what]) => what), ...people].join(", ");
    if ((number.dataset.people ?? "") !== (marks.people ?? "")) number.dataset.people = number.title = marks.people ?? "";
  }
}

/** Calls `work` when the page has nothing else to do, with a function that answers how many milliseconds are left. */
function whenIdle(work) {
  if (globalThis.requestIdleCallback) requestIdleCallback((deadline) => work(() => deadline.timeRemaining()));
  else setTimeout(() => work(() => 0), 30);
}
