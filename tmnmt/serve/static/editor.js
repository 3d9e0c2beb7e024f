// The field in which a translation is written, with the rest of the suggestion in grey behind it.

const WORD = /^\s*\S+/;

export class Editor {
  /** changed: called when the text has changed, by whatever. */
  constructor(field, ghost, changed) {
    this.field = field;
    this._typed = ghost.children[0];
    this._rest = ghost.children[1];
    this._changed = changed;
    this._offered = "";
    this._begun = false;
    this._hidden = false;
    this.keys = 0;
    field.addEventListener("input", (event) => {
      this._hidden = false;
      this.keys += event.inputType === "insertFromPaste" ? 2 : 1;
      this._draw();
      changed();
    });
    field.addEventListener("beforeinput", (event) => {
      if (event.inputType === "insertLineBreak") event.preventDefault();
    });
    field.addEventListener("paste", (event) => {
      event.preventDefault();
      this.insert(event.clipboardData.getData("text/plain").replace(/\s*[\r\n]+\s*/g, " "), 2);
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

  open(text) {
    this.field.value = text;
    this._offered = "";
    this._begun = false;
    this._hidden = false;
    this.keys = 0;
    this._draw();
  }

  /** begun: these are its next words alone. */
  offer(text, begun = false) {
    this._offered = text;
    this._begun = begun;
    this._draw();
  }

  /** Takes the next word of the rest; false where none will be there, or the caret is elsewhere. */
  takeWord() {
    if (this.isBegun && !this.rest) return true;
    if (!this.rest || this.field.selectionStart !== this.text.length) return false;
    this.insert(WORD.exec(this.rest)?.[0] ?? this.rest, 1);
    return true;
  }

  takeRest() { this.insert(this.rest, 1); }

  hide() {
    const had = this.rest !== "";
    this._hidden = true;
    this._draw();
    return had;
  }

  /** Puts another text in place of all. Ctrl+Z brings the former back. */
  replace(text) {
    this.field.focus();
    this.field.select();
    this.insert(text, 1);
    this.hide();
  }

  /** As if it were typed, so that Ctrl+Z takes it back; `keys`: so many keystrokes. */
  insert(text, keys) {
    const before = this.keys;
    this.field.focus();
    document.execCommand(text ? "insertText" : "delete", false, text);
    this.keys = before + keys;
  }

  _draw() {
    this._typed.textContent = this.text;
    this._rest.textContent = this.rest || "\u200b";
  }
}
