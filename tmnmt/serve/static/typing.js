// Quotes and apostrophes as a language sets them, while they are typed. This module knows no page. What a language has
// comes from the server.

const STRAIGHT = '"', PRIME = "'", APOSTROPHE = "\u2019";
const OPENS = /(?:^|[\s\u2060\u2066-\u2069([{\u2014\u2013/=:-])$/u;
const LETTER = /[\p{L}\p{M}]$/u;
const IN_MARKUP = /<[^<>\s][^<>]*$/;

/** What is written in place of a straight quote or apostrophe; the sign itself where it stays. `before`: the text up to
    it, without tags; `quotes`: what opens and closes a quotation in the language, null where that is not known. */
export function typeset(sign, before, quotes) {
  if (IN_MARKUP.test(before)) return sign;
  if (sign === PRIME) return LETTER.test(before) ? APOSTROPHE : sign;
  if (sign !== STRAIGHT || !quotes) return sign;
  const [opening, closing] = quotes;
  if (OPENS.test(before)) return opening;
  return isOpen(before, opening, closing) ? closing : sign;
}

/** Whether a quotation is open at the end of a text. */
function isOpen(before, opening, closing) {
  const [start, end] = [opening.trim(), closing.trim()];
  if (start === end) return before.split(start).length % 2 === 0;
  return before.lastIndexOf(start) > before.lastIndexOf(end);
}
