// What a reviewer reads: a document's segments with another version of each beside it, in the order of reading, and how much
// of the suggestions people have changed. It knows no page.

import {plain, shown} from "./texts.js";

/** The text that stands in a segment: a draft, what is confirmed, or what the file has; as XML. */
export const presentOf = ({text, confirmed, file}) => text ?? confirmed ?? file.target ?? "";

/** Rows of segments as the server tells them, with what was suggested for each, where the review of its session says so:
    {segment, suggested, edits, tokens, by}. suggested: without tags; null where nothing was. */
export function rowsOf(segments, reviews) {
  const latest = new Map(reviews.filter(({segment}) => segment !== null).map((review) => [Number(review.segment), review]));
  return segments.filter(({source}) => plain(source).trim()).map((segment) => {
    const {suggested = null, edits = 0, tokens = 0, by = ""} = latest.get(segment.number) ?? {};
    return {segment, suggested, edits, tokens, by};
  });
}

/** Checks that found something and that nobody has set aside. */
export const openIssues = ({checks}) => checks.filter(({ignored}) => (ignored ?? null) === null);

/** What stood in a segment before its present text: the newest text of its history that is another one, or what the file
    had; as XML, null where nothing did. history: the newest first. */
export function formerOf(segment, history) {
  const present = shown(presentOf(segment));
  const texts = [...history.map(({text, confirmed}) => text ?? confirmed), segment.file.target];
  return texts.find((text) => text !== null && text !== "" && shown(text) !== present) ?? null;
}

/** How much a segment needs to be read: first those in which a check found something, then those that the model is least
    sure of, and at the end those of which nobody knows. */
const need = ({segment}) => [openIssues(segment).length ? 0 : 1, segment.quality ?? 2];

/** Rows in an order: "need", or "place". */
export function ordered(rows, order) {
  if (order === "place") return [...rows];
  const place = ({segment}) => segment.number;
  return [...rows].sort((one, other) => {
    const [issues, quality] = need(one), [others, theirs] = need(other);
    return issues - others || quality - theirs || place(one) - place(other);
  });
}

const SHOWN = {
  all: () => true,
  unread: ({segment}) => segment.state === "translated",
  changed: ({edits}) => edits > 0,
  issues: ({segment}) => openIssues(segment).length > 0,
  open: ({segment}) => !["translated", "reviewed", "approved", "locked"].includes(segment.state),
};

/** The rows that a person wants to see, in their order. show: a name of `SHOWN`. */
export const wanted = (rows, show, order) => ordered(rows.filter(SHOWN[show]), order);

/** The edit rate by what `keyOf` says of each of these, {edits, tokens, suggested}: [{key, segments, rate}], the highest
    first. Where nothing was suggested there is none. */
export function rates(entries, keyOf) {
  const sums = new Map();
  for (const entry of entries) {
    if (entry.suggested === null) continue;
    const key = keyOf(entry), sum = sums.get(key) ?? {key, segments: 0, edits: 0, tokens: 0};
    sums.set(key, {key, segments: sum.segments + 1, edits: sum.edits + entry.edits, tokens: sum.tokens + entry.tokens});
  }
  return [...sums.values()].map(({key, segments, edits, tokens}) => ({key, segments, rate: edits / (tokens || 1)}))
    .sort((one, other) => other.rate - one.rate);
}
