// The suggestion for the segment at work: asked for, gone on with while somebody types, shown and taken.

import {post} from "./api.js";
import {checkLine} from "./checks.js";
import {chipsOf} from "./chips.js";
import {el} from "./elements.js";
import {Offer, drawWords} from "./offer.js";
import {panel} from "./panels.js";
import {percent, phrase} from "./phrases.js";
import {continued, marked, plain, sentence} from "./texts.js";

const $ = (id) => document.getElementById(id);
const MATCHES = 5;  // that are shown where no model is served
const MOST_WORDS = 9;  // that one key takes
const IS_MAC = /^Mac/.test(navigator.platform);  // where Alt and a digit type a sign
const PAUSE = 120;  // milliseconds without typing after which the model says all that follows what is typed
const LONG = 400;  // milliseconds after which it is said that the model works

/** Whether the file has nothing for it, and nothing was confirmed. */
const isFresh = (unit) => unit.file.state === "new" && unit.confirmed === null;
const isInTag = (text, unit) => unit.tags.length > 0 && /<[^<>]*$/.test(text);

class Suggestion {
  constructor(desk) {
    this._desk = desk;
    this._request = null;  // for a suggestion
    this._pause = 0;  // the timer
    this._isHurried = false;  // whether the next words are asked for
    this.offer = null;
    const suggest = desk.trying("suggest", (unit) => this.suggest(unit));
    this._nextWords = desk.trying("suggest", (unit) => this._hurry(unit));
    this._rest = desk.trying("suggest", (unit) => this._follow(unit));
    desk.on("leave", () => this._stop());
    desk.on("at", ({at}) => {
      this._clear();
      const unit = desk.open.units[at];
      if (unit.state !== "locked") suggest(unit);
    });
    desk.on("typed", ({at}) => this._continue(desk.open.units[at]));
    desk.on("sending", () => this._stop());
    desk.on("refused", ({at}) => { if (at === desk.open.at && !this.offer) suggest(desk.open.units[at]); });
    desk.on("again", () => { if (desk.unit && !desk.isLocked) this._again(suggest); });
    desk.on("field", () => { $("all").disabled = !this.offer || desk.editor.text === this.offer.text || desk.isLocked; });
    desk.action({id: "all", keys: ["alt Enter"], work: () => this._takeAll()});
    desk.action({keys: ["Tab"], within: desk.editor.field, work: () => desk.editor.takeWords()});
    for (let count = 2; count <= MOST_WORDS && !IS_MAC; count++) {
      desk.action({keys: [`alt ${count}`], within: desk.editor.field, work: () => desk.editor.takeWords(count)});
    }
    desk.action({keys: ["shift Tab"], within: desk.editor.field, work: () => ($("offer").querySelector("[tabindex='0']") ?? $("confirm")).focus()});
    desk.action({keys: ["Escape"], within: desk.editor.field, work: () => desk.editor.release()});
    $("offer").addEventListener("keydown", (event) => { if (event.key === "Escape") desk.editor.field.focus(); });
  }

  get _isModelless() { return this._desk.open.session.model === null; }

  _stop() {
    this._request?.abort();
    clearTimeout(this._pause);
  }

  _again(suggest) {
    this._request?.abort();
    suggest(this._desk.unit);
  }

  _clear() {
    this.offer = null;
    $("offer").replaceChildren();
    $("origin").textContent = "";
    $("checks").hidden = $("sure").hidden = true;
    this._desk.tell("offer", {offer: null, goesOn: false});
  }

  async suggest(unit) {
    this._request = new AbortController();
    const {signal} = this._request, {session} = this._desk.open;
    const waiting = setTimeout(() => { $("origin").textContent = this._isModelless ? phrase("The memories are searched …") : phrase("The model works on it …"); }, LONG);
    const body = {texts: [unit.source], format: "xml", explain: true};
    try {
      const answer = this._isModelless ? await this._lookUp(unit, signal) : await post(`v1/sessions/${session.id}/translate`, body, signal);
      if (signal.aborted) return;
      this.offer = new Offer(answer.translations[0], this._desk.isOwn);
      unit.suggested = this.offer.plain;
      unit.offered = this.offer.provenance;
      this._draw(unit);
      if (isFresh(unit)) this._continue(unit);
    } finally {
      clearTimeout(waiting);
    }
  }

  /** What the memories have, where no model is served: the target of a full match, else nothing, and the matches. */
  async _lookUp(unit, signal) {
    const search = {texts: [plain(unit.source)], k: MATCHES};
    const {memories} = this._desk.open.session;
    const answers = await Promise.all(memories.map((name) => post(`v1/memories/${encodeURIComponent(name)}/search`, search, signal)));
    const worth = (match) => match.worth ?? 100 * match.score;
    const matches = answers.flatMap(({results}) => results[0].matches).sort((a, b) => worth(b) - worth(a)).slice(0, MATCHES);
    const [best] = matches;
    const full = best && !unit.tags.length && worth(best) >= 100 ? best.adapted || best.tgt : "";
    const origin = full ? (best.adapted ? "adapted" : "memory") : "";
    const segment = {matches, tokens: [], missing_numbers: [], checks: [], origin, low: false};
    return {translations: [{text: marked(full, []), segments: [segment]}]};
  }

  _continue(unit) {
    clearTimeout(this._pause);
    const {editor} = this._desk;
    if (!this.offer || this._isModelless || isInTag(editor.text, unit) || !(editor.wants || editor.isBegun)) return;
    this._request?.abort();
    if (!unit.tags.length) this._nextWords(unit);
    this._pause = setTimeout(() => this._rest(unit), PAUSE);
  }

  /** The next words, at every letter with which the suggestion does not go on; one request at a time. */
  async _hurry(unit) {
    if (this._isHurried) return;
    this._isHurried = true;
    const {editor, open} = this._desk;
    try {
      for (let text; editor.wants && editor.text !== text && unit === this._desk.unit;) {
        text = editor.text;
        const body = {text: unit.source, format: "xml", prefix: text, session: open.session.id, whole: false};
        const completion = await post("v1/complete", body);
        if (unit === this._desk.unit && editor.wants && completion.text !== text) editor.offer(completion.text, true);
      }
    } finally {
      this._isHurried = false;
    }
  }

  /** A suggestion that begins with what is typed, where the one that there is does not. */
  async _follow(unit) {
    const {editor, open} = this._desk;
    if (!editor.wants && !editor.isBegun) return;
    this._request?.abort();
    this._request = new AbortController();
    const {signal} = this._request, text = editor.text;
    const prefix = plain(marked(text, unit.tags));
    const completion = await post("v1/complete", {text: unit.source, format: "xml", prefix, session: open.session.id}, signal);
    if (signal.aborted || editor.text !== text) return;
    const whole = continued(text, completion.text, unit.tags);
    this.offer = new Offer({text: marked(whole, unit.tags), segments: [completion]}, this._desk.isOwn);
    this._draw(unit, true);
  }

  _draw(unit, goesOn = false) {
    const desk = this._desk, {offer} = this;
    const tell = (what, word = null) => {
      $("origin").textContent = what || this.offer?.whole || "";
      if (this.offer) desk.tell("word", {word});
    };
    drawWords($("offer"), offer, chipsOf(unit), tell, (text) => desk.editor.replace(text));
    desk.tell("offer", {offer, goesOn});
    tell("");
    const {low} = offer.segment;
    $("sure").textContent = low ? phrase("the model is unsure") : offer.sure;
    $("sure").classList.toggle("low", low);
    $("sure").hidden = !$("sure").textContent;
    this._drawChecks(offer.segment);
    if (goesOn || isFresh(unit) || !desk.editor.text) desk.editor.offer(offer.text);
    desk.tell("field");
    const [best] = offer.matches;
    const match = best ? phrase("Best match {worth}.", {worth: percent((best.worth ?? 100 * best.score) / 100)}) : phrase("No match.");
    const told = {number: desk.open.at + 1, count: desk.open.units.length, text: sentence(offer.text), match};
    desk.say(phrase("Segment {number} of {count}. Suggestion: {text} {match}", told));
  }

  _drawChecks({missing_numbers: numbers, checks}) {
    const lines = checks.filter(({name}) => name !== "numbers" || !numbers.length).map(checkLine);
    if (numbers.length) lines.unshift(phrase("missing number: {numbers}", {numbers: numbers.join(", ")}));
    $("checks").replaceChildren(...lines.map((line) => el("li", "", line)));
    $("checks").hidden = !lines.length;
  }

  _takeAll() {
    const {editor} = this._desk;
    if (!this.offer || !this._desk.unit || this._desk.isLocked) return;
    if (editor.isBegun) editor.takeRest();
    else editor.replace(this.offer.text);
  }
}

panel((desk) => { new Suggestion(desk); });
