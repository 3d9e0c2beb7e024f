// Which segments a person wants to see, and what becomes of their texts where words are replaced. It knows no page.

import {finderOf} from "./pattern.js";
import {issuesOf, stateOf, textOf} from "./segments.js";
import {shown} from "./texts.js";

const UNREADY = new Set(["new", "untouched", "draft", "confirming"]);
const TAG = /<[^<>]*>/g;
const sourceOf = (unit) => shown(unit.source);

/** What a person may ask of segments; "" and null ask nothing. */
export const NOTHING = {
  text: "", side: "both", isPattern: false, hasCase: false, state: "", issue: "", least: null, most: null, origin: "",
};

/** Whether these conditions ask anything. */
export const isEmpty = (conditions) => Object.entries(NOTHING).every(([name, value]) => (
  ["side", "isPattern", "hasCase"].includes(name) || (conditions[name] ?? value) === value));

/** What says of a unit whether it is wanted. Raises an Error, in words, for an expression that cannot be searched for. */
export function conditionOf(conditions) {
  const {text, side, state, issue, least, most, origin} = {...NOTHING, ...conditions};
  const tests = [];
  if (text) {
    const finder = finderOf(text, conditions);
    const sides = {source: [sourceOf], target: [textOf], both: [sourceOf, textOf]}[side];
    tests.push((unit) => sides.some((textIn) => finder.has(textIn(unit))));
  }
  if (state) tests.push((unit) => (state === "unready" ? UNREADY.has(stateOf(unit)) : stateOf(unit) === state));
  if (issue === "none") tests.push((unit) => !issuesOf(unit).length);
  else if (issue) tests.push((unit) => issuesOf(unit).some(({name}) => issue === "any" || name === issue));
  if (least !== null) tests.push((unit) => unit.match !== null && unit.match >= least);
  if (most !== null) tests.push((unit) => (unit.match ?? 0) <= most);
  if (origin) tests.push((unit) => unit.origin === origin);
  return (unit) => tests.every((test) => test(unit));
}

/** What a unit's translation becomes where words are replaced: {before, after, count}; null where nothing is. What touches
    a tag stays, and so does a segment that is locked or being confirmed. */
export function replacementIn(unit, finder, replacement) {
  if (unit.state === "locked" || unit.state === "confirming") return null;
  const before = textOf(unit), tags = [...before.matchAll(TAG)].filter(([tag]) => unit.tags.includes(tag));
  const isFree = ({start, end}) => !tags.some((tag) => start < tag.index + tag[0].length && end > tag.index);
  const places = finder.find(before).filter((place) => place.end > place.start && isFree(place));
  let after = "", at = 0;
  for (const place of places) {
    after += before.slice(at, place.start) + finder.replace(place, replacement);
    at = place.end;
  }
  after += before.slice(at);
  return after === before ? null : {before, after, count: places.length};
}
