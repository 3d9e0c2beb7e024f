// The field in which a translation is written, with the rest of the suggestion in grey behind it. Inside it every tag is
// one sign (chips.js), so that the browser moves over it, deletes it and undoes it as any other; `text` has the tags.

import {NONE} from "./chips.js";
import {drawn} from "./marks.js";
import {typeset} from "./typing.js";

const WORDS = /\s*\S+/g;
const MORE = 4;  // of how many letters of a source one more is kept room for
const UNDOING = ["historyUndo", "historyRedo"];

export class Editor {
  /** room: an element behind the field that keeps it as high as a translation will need. changed: called when the text
      has changed, by whatever. tell: called with what a chip is that the caret has gone over. signal: ends it. */
  constructor(field, ghost, room, changed = () => {}, tell = () => {}, signal = undefined) {
    this.field = field;
    this._ghost = ghost;
    this._room = room;
    this._changed = changed;
    this._tell = tell;
    this._chips = NONE;
    this._offered = "";
    this._begun = false;
    this._hidden = false;
    this._free = false;  // whether Tab leaves the field
    this._caret = null;  // where it was when the field was left; a browser may forget it behind a dialog
    this._working = false;  // whether the page itself changes the text now
    this._composing = false;  // whether an input method does
    this._exchanged = null;  // {start, end}: where the page has put something else in place of what was typed
    this._passed = 0;  // where the caret was
    this.keys = 0;
    this.typography = null;  // {quotes}: what opens and closes a quotation; null where what is typed stays
    this.areShown = false;  // whether signs that nobody sees are shown
    this._listen(signal);
  }

  _listen(signal) {
    const {field} = this;
    field.addEventListener("blur", () => {
      this._free = false;
      this._caret = [field.selectionStart, field.selectionEnd];
    });
    field.addEventListener("focus", () => {
      if (this._caret) field.setSelectionRange(...this._caret);
      this._caret = null;
    });
    field.addEventListener("compositionstart", () => { this._composing = true; });
    field.addEventListener("compositionend", () => { this._composing = false; });
    field.addEventListener("input", (event) => this._input(event));
    field.addEventListener("beforeinput", (event) => {
      if (event.inputType === "insertLineBreak") event.preventDefault();
    });
    field.addEventListener("paste", (event) => {
      event.preventDefault();
      this.insert(event.clipboardData.getData("text/plain"), 2);
    });
    for (const kind of ["copy", "cut"]) field.addEventListener(kind, (event) => this._copy(event, kind === "cut"));
    field.addEventListener("dragstart", (event) => event.dataTransfer?.setData("text/plain", this.selected));
    field.addEventListener("pointermove", (event) => this._point(event));
    document.addEventListener("selectionchange", () => this._pass(), {signal});
  }

  get text() { return this._chips.tags(this.field.value); }

  /** The text without its tags: what a limit of length counts. */
  get words() { return this._chips.words(this.field.value); }

  /** The text for the ear, where it has tags. */
  get spoken() { return this.words === this.field.value ? "" : this._chips.spoken(this.field.value); }

  /** What is selected in the field. */
  get selected() {
    const {value, selectionStart, selectionEnd} = this.field;
    return this._chips.tags(value.slice(selectionStart, selectionEnd));
  }

  /** What stands in grey: of the suggestion, where that begins as the text does. */
  get rest() { return this._chips.tags(this._left); }

  get _left() {
    if (this._hidden || !this._offered.startsWith(this.field.value)) return "";
    return this._offered.slice(this.field.value.length);
  }

  /** Whether something is typed at whose end the suggestion does not go on, or its next words are used up. */
  get wants() {
    const {selectionStart, value} = this.field;
    if (this._hidden || value.trim() === "" || this.field.readOnly || selectionStart !== value.length) return false;
    return !this._offered.startsWith(value) || (this._begun && this._offered === value);
  }

  /** Whether only the next words of a suggestion are there. */
  get isBegun() { return this._begun && !this._hidden && this._offered.startsWith(this.field.value); }

  /** What is confirmed: the text, or the suggestion where there is none. */
  get whole() { return this.text.trim() ? this.text : this.rest; }

  /** The tags of the source that the text lacks, as chips. */
  get missing() { return this._chips.missing(this.field.value).map((sign) => this._chips.of(sign)); }

  /** Another text in the field; `source`: that of which it is the translation, `chips`: the tags of both. */
  open(text, source, chips = NONE) {
    this._chips = chips;
    this.field.value = chips.signs(text);
    const room = chips.signs(source);
    this._room.textContent = `${room} ${room.slice(0, room.length / MORE)}`;
    this._offered = "";
    this._begun = this._hidden = this._free = false;
    this._caret = this._exchanged = null;
    this._passed = this.field.selectionStart;
    this.field.title = "";
    this.keys = 0;
    this.draw();
  }

  /** begun: these are its next words alone. */
  offer(text, begun = false) {
    this._offered = this._chips.signs(text);
    this._begun = begun;
    this.draw();
  }

  /** Takes the next words of the rest, where there are any and the caret stands before them. False where Tab is to leave
      the field, as only Escape allows. */
  takeWords(count = 1) {
    if (this._free) return false;
    const rest = this._left, words = rest.match(WORDS) ?? [];
    if (rest && this.field.selectionStart === this.field.value.length) this.insert(words.slice(0, count).join("") || rest, 1);
    return true;
  }

  takeRest(keys = 1) { this.insert(this._left, keys); }

  /** Hides the rest, and lets Tab leave the field. */
  release() {
    this._hidden = this._free = true;
    this.draw();
  }

  /** Puts another text in place of all. Ctrl+Z brings the former back. */
  replace(text) {
    this.field.focus();
    this.field.select();
    this.insert(text, 1);
    this._hidden = true;
    this.draw();
  }

  /** Puts the next tag that is missing at the caret; around what is selected, the next pair. Whether there is one. */
  insertTag() {
    const {value, selectionStart, selectionEnd} = this.field;
    if (this.field.readOnly) return false;
    if (selectionStart < selectionEnd) {
      const outside = value.slice(0, selectionStart) + value.slice(selectionEnd);
      const pair = this._chips.pair(outside);
      return Boolean(pair) && this.surround(...pair);
    }
    const [next] = this._chips.missing(value);
    if (next) this.insert(next, 1);
    return Boolean(next);
  }

  /** Puts one text before what is selected, and one behind it. */
  surround(opening, closing) {
    const {value, selectionStart, selectionEnd} = this.field;
    this.insert(opening + value.slice(selectionStart, selectionEnd) + closing, 1);
    if (selectionStart === selectionEnd) {
      const between = this.field.selectionStart - this._chips.signs(closing).length;
      this.field.setSelectionRange(between, between);
    }
    return true;
  }

  /** As if it were typed, so that Ctrl+Z takes it back; `keys`: so many keystrokes. */
  insert(lines, keys) {
    const text = this._chips.signs(lines.replace(/\s*[\r\n]+\s*/g, " "));
    this.field.getClientRects();  // a dialog that was closed just now holds the field until the page is laid out
    this.field.focus();
    const before = this.keys, {selectionStart, selectionEnd} = this.field;
    if (!text && selectionStart === selectionEnd) return;
    this._type(text);
    this._inputDone();
    this.keys = before + keys;
  }

  /** Types a text as the browser does, without telling anybody yet. */
  _type(text) {
    const {value, selectionStart, selectionEnd} = this.field;
    const wanted = value.slice(0, selectionStart) + text + value.slice(selectionEnd);
    this._working = true;
    try {
      document.execCommand(text ? "insertText" : "delete", false, text);
      if (this.field.value === wanted) return;
      this.field.value = wanted;  // where the browser would not type it, all is there; only Ctrl+Z does not know of it
      this.field.setSelectionRange(selectionStart + text.length, selectionStart + text.length);
    } finally {
      this._working = false;
    }
  }

  _input(event) {
    if (this._working) return;
    this.keys += event.inputType === "insertFromPaste" ? 2 : 1;
    if (UNDOING.includes(event.inputType)) this._leaveUndone();
    else if (!this._composing && !event.isComposing) this._correct(event);
    this._inputDone();
  }

  _inputDone() {
    this._hidden = this._free = false;
    this.draw();
    this._changed();
  }

  /** Puts chips in place of tags that are written out, and the marks of the language in place of a straight one. */
  _correct({inputType, data}) {
    for (let tag; (tag = this._chips.written(this.field.value));) this._exchange(tag.at, tag.at + tag.tag.length, tag.sign);
    if (inputType !== "insertText" || data?.length !== 1 || !this.typography) return;
    const {value, selectionStart: end, selectionEnd} = this.field, start = end - 1;
    if (end !== selectionEnd || value[start] !== data || this._offered.startsWith(value.slice(0, end))) return;
    const mark = typeset(data, this._chips.words(value.slice(0, start)), this.typography.quotes);
    if (mark !== data) this._exchange(start, end, mark);
  }

  /** Puts something in place of a part of the text, in one step of Ctrl+Z; the caret stays where it is. */
  _exchange(start, end, text) {
    const {selectionStart: caret} = this.field;
    this.field.setSelectionRange(start, end);
    this._type(text);
    const after = caret >= end ? caret + text.length - (end - start) : Math.min(caret, start + text.length);
    this.field.setSelectionRange(after, after);
    this._exchanged = {start, end};
  }

  /** Of what was exchanged, Ctrl+Z brings back what was typed, selected; the next letter is not to overwrite it. */
  _leaveUndone() {
    const {selectionStart, selectionEnd} = this.field, {start, end} = this._exchanged ?? {};
    if (selectionStart === start && selectionEnd === end) this.field.setSelectionRange(end, end);
    this._exchanged = null;
  }

  _copy(event, isCut) {
    if (!this.selected) return;
    event.clipboardData.setData("text/plain", this.selected);
    event.preventDefault();
    if (isCut && !this.field.readOnly) this.insert("", 1);
  }

  /** Says of the chip or sign under the pointer what it is. */
  _point({clientX: x, clientY: y}) {
    const under = ({left, right, top, bottom}) => left <= x && x <= right && top <= y && y <= bottom;
    const found = [...this._ghost.querySelectorAll("[data-told]")].find((one) => [...one.getClientRects()].some(under));
    const told = found?.dataset.told ?? "";
    if (this.field.title !== told) this.field.title = told;
  }

  /** Says of a chip that the caret has gone over what it is. */
  _pass() {
    if (document.activeElement !== this.field) return;
    const {value, selectionStart: at, selectionEnd} = this.field, before = this._passed;
    this._passed = at;
    if (at !== selectionEnd) return;
    const chip = this._chips.of(value.slice(Math.min(at, before), Math.max(at, before)));
    if (chip) this._tell(chip.told);
  }

  draw() {
    const {value} = this.field, {areShown} = this;
    const [typed, rest] = this._ghost.children;
    typed.replaceChildren(...drawn(value, this._chips, {areShown, as: "signs", wrong: this._chips.wrong(value)}));
    const left = this._left ? drawn(this._left, this._chips, {as: "signs"}) : ["\u200b"];
    rest.replaceChildren(document.createElement("wbr"), ...left);  // what is typed breaks as it does in the field
  }
}
