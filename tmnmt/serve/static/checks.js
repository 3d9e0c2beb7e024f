// What the checks look at, in words.

import {phrase} from "./phrases.js";

export const CHECKED = {
  codes: phrase("tags"), placeholders: phrase("placeholders"), length: phrase("length"), untranslated: phrase("as in the source"), repeated: phrase("said twice"),
  ends: phrase("another end"), spaces: phrase("blanks"), characters: phrase("invisible characters"), unreadable: phrase("not readable"), brackets: phrase("half a pair"), numbers: phrase("numbers"), limit: phrase("too long"),
  replay: phrase("as a match"), words: phrase("unknown word"), terms: phrase("missing term"), forbidden: phrase("forbidden term"), meaning: phrase("which meaning?"),
};

/** What a check has found, in words. */
export const checkLine = ({name, what}) => `${CHECKED[name] ?? name}: ${what}`;
