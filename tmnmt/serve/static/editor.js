// The field in which a translation is written, with the rest of the suggestion in grey behind it.

const WORD = /^\s*\S+/;
const MORE = 4;  // of how many letters of a source one more is kept room for

export class Editor {
  /** room: an element behind the field that keeps it as high as a translation will need. changed: called when the text
      has changed, by whatever. */
  constructor(field, ghost, room, changed) {
    this.field = field;
    this._typed = ghost.children[0];
    this._rest = ghost.children[1];
    this._room = room;
    this._changed = changed;
    this._offered = "";
    this._begun = false;
    this._hidden = false;
    this._free = false;  // whether Tab leaves the field
    this._caret = null;  // where it was when the field was left; a browser may forget it behind a dialog
    this.keys = 0;
    field.addEventListener("blur", () => {
      this._free = false;
      this._caret = [field.selectionStart, field.selectionEnd];
    });
    field.addEventListener("focus", () => {
      if (this._caret) field.setSelectionRange(...this._caret);
      this._caret = null;
    });
    field.addEventListener("input", (event) => {
      this._hidden = this._free = false;
      this.keys += event.inputType === "insertFromPaste" ? 2 : 1;
      this._draw();
      changed();
    });
    field.addEventListener("beforeinput", (event) => {
      if (event.inputType === "insertLineBreak") event.preventDefault();
    });
    field.addEventListener("paste", (event) => {
      event.preventDefault();
      this.insert(event.clipboardData.getData("text/plain"), 2);
    });
  }

  get text() { return this.field.value; }

  /** What stands in grey: of the suggestion, where that begins as the text does. */
  get rest() {
    if (this._hidden || !this._offered.startsWith(this.text)) return "";
    return this._offered.slice(this.text.length);
  }

  /** Whether something is typed at whose end the suggestion does not go on, or its next words are used up. */
  get wants() {
    const {selectionStart, value} = this.field;
    if (this._hidden || value.trim() === "" || this.field.readOnly || selectionStart !== value.length) return false;
    return !this._offered.startsWith(value) || (this._begun && this._offered === value);
  }

  /** Whether only the next words of a suggestion are there. */
  get isBegun() { return this._begun && !this._hidden && this._offered.startsWith(this.text); }

  /** What is confirmed: the text, or the suggestion where there is none. */
  get whole() { return this.text.trim() ? this.text : this.rest; }

  /** Another text in the field; `source`: that of which it is the translation. */
  open(text, source) {
    this.field.value = text;
    this._room.textContent = `${source} ${source.slice(0, source.length / MORE)}`;
    this._offered = "";
    this._begun = this._hidden = this._free = false;
    this._caret = null;
    this.keys = 0;
    this._draw();
  }

  /** begun: these are its next words alone. */
  offer(text, begun = false) {
    this._offered = text;
    this._begun = begun;
    this._draw();
  }

  /** Takes the next word of the rest, where there is one and the caret stands before it. False where Tab is to leave the
      field, as only Escape allows. */
  takeWord() {
    if (this._free) return false;
    if (this.rest && this.field.selectionStart === this.text.length) this.insert(WORD.exec(this.rest)?.[0] ?? this.rest, 1);
    return true;
  }

  takeRest(keys = 1) { this.insert(this.rest, keys); }

  /** Hides the rest, and lets Tab leave the field. */
  release() {
    this._hidden = this._free = true;
    this._draw();
  }

  /** Puts another text in place of all. Ctrl+Z brings the former back. */
  replace(text) {
    this.field.focus();
    this.field.select();
    this.insert(text, 1);
    this._hidden = true;
    this._draw();
  }

  /** As if it were typed, so that Ctrl+Z takes it back; `keys`: so many keystrokes. */
  insert(lines, keys) {
    const text = lines.replace(/\s*[\r\n]+\s*/g, " ");
    this.field.getClientRects();  // a dialog that was closed just now holds the field until the page is laid out
    this.field.focus();
    const before = this.keys, {value, selectionStart, selectionEnd} = this.field;
    if (!text && selectionStart === selectionEnd) return;
    const wanted = value.slice(0, selectionStart) + text + value.slice(selectionEnd);
    document.execCommand(text ? "insertText" : "delete", false, text);
    if (this.field.value !== wanted) this._put(wanted, selectionStart + text.length);
    this.keys = before + keys;
  }

  /** Where the browser would not type it: all is there, only Ctrl+Z does not know of it. */
  _put(text, caret) {
    this.field.value = text;
    this.field.setSelectionRange(caret, caret);
    this.field.dispatchEvent(new InputEvent("input", {inputType: "insertText"}));
  }

  _draw() {
    this._typed.textContent = this.text;
    this._rest.textContent = this.rest || "\u200b";
  }
}
