// What the checks look at, in words.

export const CHECKED = {
  codes: "tags", placeholders: "placeholders", length: "length", untranslated: "as in the source", repeated: "said twice",
  ends: "another end", spaces: "blanks", characters: "invisible characters", unreadable: "not readable", numbers: "numbers",
  replay: "as a match", terms: "missing term", forbidden: "forbidden term", meaning: "which meaning?",
};

/** What a check has found, in words. */
export const checkLine = ({name, what}) => `${CHECKED[name] ?? name}: ${what}`;
