// Signs that nobody sees on paper, and how they are shown. This module knows no page.

import {phrase} from "./phrases.js";

/** {sign, name, mark}: what is drawn in place of it. `letter`: the key that inserts it from the list of signs; `around`:
    what closes what it opens. */
export const INVISIBLE = [
  {sign: "\u00a0", name: phrase("no-break space"), mark: "°", letter: "s"},
  {sign: "\u202f", name: phrase("narrow no-break space"), mark: "˚", letter: "n"},
  {sign: "\u2011", name: phrase("non-breaking hyphen"), mark: "–", letter: "h"},
  {sign: "\u00ad", name: phrase("soft hyphen"), mark: "¬", letter: "t"},
  {sign: "\u200e", name: phrase("left-to-right mark"), mark: "⇢", letter: "l"},
  {sign: "\u200f", name: phrase("right-to-left mark"), mark: "⇠", letter: "r"},
  {sign: "\u061c", name: phrase("Arabic letter mark"), mark: "⇠", letter: "a"},
  {sign: "\u2068", name: phrase("isolate, either direction"), mark: "⟨", letter: "i", around: "\u2069"},
  {sign: "\u200d", name: phrase("joiner of zero width"), mark: "+", letter: "j"},
  {sign: "\u200c", name: phrase("non-joiner of zero width"), mark: "|", letter: "k"},
  {sign: "\u2060", name: phrase("word joiner"), mark: "⁀", letter: "w"},
  {sign: "\u200b", name: phrase("space of zero width"), mark: "|", letter: "z"},
  {sign: "\u2066", name: phrase("isolate, left to right"), mark: "⟨"},
  {sign: "\u2067", name: phrase("isolate, right to left"), mark: "⟨"},
  {sign: "\u2069", name: phrase("end of an isolate"), mark: "⟩"},
  {sign: "\u202a", name: phrase("embedding, left to right"), mark: "⟨"},
  {sign: "\u202b", name: phrase("embedding, right to left"), mark: "⟨"},
  {sign: "\u202c", name: phrase("end of an embedding"), mark: "⟩"},
  {sign: "\u202d", name: phrase("override, left to right"), mark: "⟨"},
  {sign: "\u202e", name: phrase("override, right to left"), mark: "⟨"},
  {sign: "\ufeff", name: phrase("byte order mark"), mark: "|"},
  {sign: "\u2007", name: phrase("figure space"), mark: "°"},
  {sign: "\u2009", name: phrase("thin space"), mark: "·"},
  {sign: "\u200a", name: phrase("hair space"), mark: "·"},
  {sign: "\u2002", name: phrase("en space"), mark: "·"},
  {sign: "\u2003", name: phrase("em space"), mark: "·"},
  {sign: "\u3000", name: phrase("ideographic space"), mark: "□"},
  {sign: "\t", name: phrase("tab"), mark: "→"},
];

/** A blank is shown with the others, and not worth telling. */
export const BLANK = {sign: " ", name: "", mark: "·"};

const OF = new Map([...INVISIBLE, BLANK].map((one) => [one.sign, one]));

/** Whether a sign has no width, so that its mark stands below the line, between two letters. */
export const isThin = ({sign}) => /\p{Cf}/u.test(sign);

/** What is known of a sign; undefined where it can be seen. */
export const invisible = (sign) => OF.get(sign);

/** Those that can be inserted from the list. */
export const INSERTED = INVISIBLE.filter(({letter}) => letter);
