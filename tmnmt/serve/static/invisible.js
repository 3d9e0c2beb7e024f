// Signs that nobody sees on paper, and how they are shown. This module knows no page.

/** {sign, name, mark}: what is drawn in place of it. `letter`: the key that inserts it from the list of signs; `around`:
    what closes what it opens. */
export const INVISIBLE = [
  {sign: "\u00a0", name: "no-break space", mark: "°", letter: "s"},
  {sign: "\u202f", name: "narrow no-break space", mark: "˚", letter: "n"},
  {sign: "\u2011", name: "non-breaking hyphen", mark: "–", letter: "h"},
  {sign: "\u00ad", name: "soft hyphen", mark: "¬", letter: "t"},
  {sign: "\u200e", name: "left-to-right mark", mark: "⇢", letter: "l"},
  {sign: "\u200f", name: "right-to-left mark", mark: "⇠", letter: "r"},
  {sign: "\u061c", name: "Arabic letter mark", mark: "⇠", letter: "a"},
  {sign: "\u2068", name: "isolate, either direction", mark: "⟨", letter: "i", around: "\u2069"},
  {sign: "\u200d", name: "joiner of zero width", mark: "+", letter: "j"},
  {sign: "\u200c", name: "non-joiner of zero width", mark: "|", letter: "k"},
  {sign: "\u2060", name: "word joiner", mark: "⁀", letter: "w"},
  {sign: "\u200b", name: "space of zero width", mark: "|", letter: "z"},
  {sign: "\u2066", name: "isolate, left to right", mark: "⟨"},
  {sign: "\u2067", name: "isolate, right to left", mark: "⟨"},
  {sign: "\u2069", name: "end of an isolate", mark: "⟩"},
  {sign: "\u202a", name: "embedding, left to right", mark: "⟨"},
  {sign: "\u202b", name: "embedding, right to left", mark: "⟨"},
  {sign: "\u202c", name: "end of an embedding", mark: "⟩"},
  {sign: "\u202d", name: "override, left to right", mark: "⟨"},
  {sign: "\u202e", name: "override, right to left", mark: "⟨"},
  {sign: "\ufeff", name: "byte order mark", mark: "|"},
  {sign: "\u2007", name: "figure space", mark: "°"},
  {sign: "\u2009", name: "thin space", mark: "·"},
  {sign: "\u200a", name: "hair space", mark: "·"},
  {sign: "\u2002", name: "en space", mark: "·"},
  {sign: "\u2003", name: "em space", mark: "·"},
  {sign: "\u3000", name: "ideographic space", mark: "□"},
  {sign: "\t", name: "tab", mark: "→"},
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
