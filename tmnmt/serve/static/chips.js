// The tags of a segment as single signs of a text, so that a field can hold them and nobody can break one. A sign is a
// character that no text has; the font chips.ttf gives it the width of a chip and draws nothing, and marks.js draws the
// chip there. This module knows no page.

import {phrase} from "./phrases.js";
import {plain, tagsOf} from "./texts.js";

const BLOCKS = [[0x1fb00, 0x1fb92], [0x1fb94, 0x1fbca]];  // symbols of old computers, neutral in either direction
const SIGNS = BLOCKS.flatMap(([first, last]) => Array.from({length: last - first + 1}, (_, at) => String.fromCodePoint(first + at)));
const FORM = /^<(\/?)([a-z]*[a-z])(\d+)(\/?)>$/;
const LONG = 80;  // of the markup that is told
const KINDS = {
  open: {label: (number) => `${number}›`, told: (number) => phrase("start of tag {number}", {number})},
  close: {label: (number) => `‹${number}`, told: (number) => phrase("end of tag {number}", {number})},
  alone: {label: (number) => number, told: (number) => phrase("tag {number}", {number})},
};

export class Chips {
  /** source, target: what the segment has as XML with short tags, "" for no target. markup: by tag, what it is in the
      file. A segment with more different tags than there are signs has the others as text. */
  constructor(source, target = "", markup = {}) {
    const words = plain(source) + plain(target);
    const free = SIGNS.filter((sign) => !words.includes(sign));
    this._needed = tagsOf(source);
    const tags = [...new Set([...this._needed, ...tagsOf(target)])].slice(0, free.length);
    this._chips = new Map(tags.map((tag, at) => [free[at], chip(tag, free[at], markup[tag] ?? "")]));
    this._signs = new Map(tags.map((tag, at) => [tag, free[at]]));
    this._tag = tags.length ? new RegExp(tags.join("|"), "g") : null;
    this._sign = tags.length ? new RegExp(`[${free.slice(0, tags.length).join("")}]`, "gu") : null;
    this._needed = this._needed.map((tag) => this._signs.get(tag)).filter(Boolean);
  }

  /** Whether there are no tags. */
  get isNone() { return this._tag === null; }

  /** A text with signs in place of its tags. */
  signs(text) { return this._tag ? text.replace(this._tag, (tag) => this._signs.get(tag)) : text; }

  /** A text with tags in place of its signs. */
  tags(text) { return this._sign ? text.replace(this._sign, (sign) => this._chips.get(sign).tag) : text; }

  /** A text without its signs. */
  words(text) { return this._sign ? text.replace(this._sign, "") : text; }

  /** The first tag that is written out in a text: {at, tag, sign}; null where there is none. */
  written(text) {
    const found = this._tag && text.search(this._tag);
    if (found === null || found < 0) return null;
    const [tag] = text.slice(found).match(this._tag);
    return {at: found, tag, sign: this._signs.get(tag)};
  }

  /** What is known of a sign: {tag, sign, kind, number, label, told}; undefined where it is no tag. */
  of(sign) { return this._chips.get(sign); }

  /** A text for the ear: tags by what they are. */
  spoken(text) { return this._sign ? text.replace(this._sign, (sign) => ` (${this._chips.get(sign).told}) `).trim() : text; }

  /** The signs of the source that a text does not have, in the order of the source. */
  missing(text) {
    const present = this._found(text);
    return this._needed.filter((sign) => {
      const at = present.indexOf(sign);
      if (at >= 0) present.splice(at, 1);
      return at < 0;
    });
  }

  /** Both signs of the first pair that a text lacks, as one text each; null where it lacks none. */
  pair(text) {
    const lacking = this.missing(text);
    const opening = lacking.map((sign) => this.of(sign)).find((one) => one.kind === "open" && lacking.includes(this._partner(one)));
    return opening ? [opening.sign, this._partner(opening)] : null;
  }

  /** Where a text has a sign that cannot be right there: once more than the source, or an end before its start. */
  wrong(text) {
    const left = [...this._needed], opened = [], found = new Set();
    for (const {0: sign, index} of this._sign ? text.matchAll(this._sign) : []) {
      const one = this.of(sign), at = left.indexOf(sign);
      if (at >= 0) left.splice(at, 1);
      else if (this._needed.includes(sign)) found.add(index);
      if (one.kind === "open") opened.push(one.number);
      else if (one.kind === "close" && !opened.includes(one.number)) found.add(index);
    }
    return found;
  }

  _found(text) { return this._sign ? text.match(this._sign) ?? [] : []; }

  _partner({tag}) { return this._signs.get(tag.replace("<", "</")); }
}

function chip(tag, sign, markup) {
  const [, end, , number, alone] = FORM.exec(tag) ?? ["", "", "", tag.replace(/[<>/]/g, ""), "/"];
  const kind = alone ? "alone" : end ? "close" : "open";
  const more = markup ? `: ${markup.slice(0, LONG)}` : "";
  return {tag, sign, kind, number, label: KINDS[kind].label(number), told: KINDS[kind].told(number) + more};
}

/** A segment without tags. */
export const NONE = new Chips("");

const known = new WeakMap();

/** The chips of a segment. */
export function chipsOf(unit) {
  if (!known.has(unit)) known.set(unit, new Chips(unit.source, unit.file.target ?? "", unit.markup));
  return known.get(unit);
}
