// What the checks look at, in words.

import {phrase} from "./phrases.js";

export const CHECKED = {
  codes: phrase("tags"), placeholders: phrase("placeholders"), length: phrase("length"), untranslated: phrase("as in the source"), repeated: phrase("said twice"),
  ends: phrase("another end"), spaces: phrase("blanks"), characters: phrase("invisible characters"), unreadable: phrase("not readable"), brackets: phrase("half a pair"), numbers: phrase("numbers"), limit: phrase("too long"),
  replay: phrase("as a match"), words: phrase("unknown word"), terms: phrase("missing term"), forbidden: phrase("forbidden term"), meaning: phrase("which meaning?"),
};

const SIDES = {lost: phrase("lost: "), made: phrase("made: ")};

const FOR = [/(^|; )([^;]+?) for ([^;]+)/g, (_, before, target, source) => before + phrase("{target} for {source}", {target, source})];
const wordOr = (found) => (found === "nothing" ? phrase("nothing") : found);
/** What the server says in words of a check, and how the page says it. */
const SAID = {
  limit: [/^(\d+) characters of (\d+)$/, (_, length, limit) => phrase("{length} of {limit} characters", {length: Number(length), limit: Number(limit)})],
  length: [/^(\d+) characters for (\d+)$/, (_, length, source) => phrase("{length} characters for {source}", {length: Number(length), source: Number(source)})],
  terms: FOR,
  forbidden: FOR,
  meaning: [/\) or /g, () => `) ${phrase("or")} `],
  replay: [/(^|; )([^;]+) \(match\) for ([^;]+)/g, (_, before, theirs, ours) => before + phrase("{theirs} in the match, {ours} here", {theirs: wordOr(theirs), ours: wordOr(ours)})],
};
const TAGS = [/(^|, )(lost|made): /g, (_, before, side) => before + SIDES[side]];

/** What a check has found, in the language of the page where the server says it in words. */
export const foundOf = ({name, what}) => what.replace(...(SAID[name] ?? TAGS));

/** The same with what the check looks at. */
export const checkLine = (check) => phrase("{check}: {found}", {check: CHECKED[check.name] ?? check.name, found: foundOf(check)});
