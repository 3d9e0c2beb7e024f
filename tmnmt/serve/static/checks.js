// What the checks look at, in words.

import {phrase} from "./phrases.js";

export const CHECKED = {
  codes: phrase("tags"), placeholders: phrase("placeholders"), length: phrase("length"), untranslated: phrase("as in the source"), repeated: phrase("said twice"),
  ends: phrase("another end"), spaces: phrase("blanks"), characters: phrase("invisible characters"), unreadable: phrase("not readable"), brackets: phrase("half a pair"), numbers: phrase("numbers"), limit: phrase("too long"),
  replay: phrase("as a match"), words: phrase("unknown word"), terms: phrase("missing term"), forbidden: phrase("forbidden term"), meaning: phrase("which meaning?"),
};

const SIDES = {lost: phrase("lost: "), made: phrase("made: ")};

/** What a check has found, in the language of the page where the server says it in words. */
export const foundOf = ({name, what}) => (name === "limit"
  ? what.replace(/^(\d+) characters of (\d+)$/, (_, length, limit) => phrase("{length} of {limit} characters", {length: Number(length), limit: Number(limit)}))
  : what.replace(/(^|, )(lost|made): /g, (_, before, side) => before + SIDES[side]));

/** The same with what the check looks at. */
export const checkLine = (check) => phrase("{check}: {found}", {check: CHECKED[check.name] ?? check.name, found: foundOf(check)});
