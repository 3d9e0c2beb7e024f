// A segment of the document at work as a small machine: its states, and what each event makes of them. It knows no page,
// no server and no clock, so that it can be tried without them.
//
//     untouched ──write──► draft ──press──► confirming ──accept──► translated ──write──► draft …
//                                               └──refuse──► draft
//
// A segment has all that the server's record of it has. Beside that, `text` is what was written in it, as it is shown, null
// where nothing was; `stored` is what the server has of that; `isUnsent` says that the text was written here and the server
// has not taken it yet. Whatever the server tells, a text that was written here stays until a person discards it: where
// somebody else has written another one, that stands in `others`.

import {marked, shown, tagsOf} from "./texts.js";

/** States of a confirmed text, from the first to the last that a person gives it. */
export const LEVELS = ["translated", "reviewed", "approved"];

const READ = [  // of a record, beside what the machine keeps
  "version", "confirmed", "origin", "match", "quality", "checks", "comments", "by", "time",
];

/** A segment as the server tells it. */
export function segment(record) {
  const {source, file, text = null} = record;
  const unit = {
    origin: "", match: null, quality: null, checks: [], comments: [], by: "", time: null, version: 0, confirmed: null,
    repeats: null, words: 0, notes: [],
    ...record, tags: tagsOf(source).concat(tagsOf(file.target ?? "")),
    text: null, stored: null, isUnsent: false, others: [],
    sent: null, flight: null, ticket: 0, reason: "", checked: null,
  };
  return Object.assign(unit, record.state === "locked" ? {state: "locked"} : told(unit, {...record, text}));
}

/** What the segment holds beside what is being written: what was confirmed, or what the file has. */
export const base = (unit) => shown(unit.confirmed ?? unit.file.target ?? "");

/** What stands in its field. */
export const textOf = (unit) => unit.text ?? base(unit);

/** Its state as the list has it: of an untouched one that which the file tells. */
export const stateOf = (unit) => (unit.state === "untouched" ? unit.file.state : unit.state);

/** Whether a person has still to see to it. */
export const isOpen = (unit) => ["new", "draft"].includes(stateOf(unit));

/** Whether what stands in it is confirmed. */
export const isConfirmed = (unit) => LEVELS.includes(unit.state);

/** Checks that found something and that nobody has set aside. */
export const issuesOf = (unit) => unit.checks.filter(({ignored}) => (ignored ?? null) === null);

/** Whether a press would confirm this text although the checks found something in it: they were shown for it. */
export const isSeen = (unit, text) => unit.checked !== null && unit.checked === text;

/** A text of a segment as the server has it. */
export const xmlOf = (unit, text) => (text === null ? null : marked(text, unit.tags));

const CLEAR = {reason: "", checked: null};

/** These changes, with the state that follows from them where no request is under way. */
function resting(unit, changes) {
  const now = {...unit, ...changes};
  const text = now.text === base(now) ? null : now.text;
  const state = text !== null ? "draft" : now.confirmed !== null ? now.level ?? "translated" : "untouched";
  return {...changes, text, state};
}

/** What a record of the server says, beside its text; nothing new where a later one came before. */
function known(unit, record) {
  if (record.version < unit.version) return {level: unit.level, stored: unit.stored};
  const changes = Object.fromEntries(READ.filter((name) => name in record).map((name) => [name, record[name]]));
  const level = LEVELS.includes(record.state) ? record.state : record.confirmed == null ? "translated" : unit.level;
  return {...changes, level, stored: record.text == null ? null : shown(record.text)};
}

/** All that a record of the server says: nothing was written here. */
function told(unit, record) {
  const changes = known(unit, record);
  return resting(unit, {...CLEAR, ...changes, text: changes.stored, isUnsent: false});
}

/** What a record says of a segment in which something was written here; that stays, and another's text stands beside it. */
function beside(unit, record) {
  const changes = known(unit, record), after = {...unit, ...changes};
  const text = changes.stored ?? base(after), now = textOf(unit);
  const isOwn = [now, unit.flight, unit.sent].includes(text) || text === "";
  const others = isOwn ? unit.others : withOther(unit.others, {by: record.by ?? "", text});
  const settled = {...changes, others: without(others, now), text: now, isUnsent: unit.isUnsent && text !== now};
  return unit.state === "confirming" ? settled : resting(unit, settled);
}

const without = (others, text) => others.filter((other) => other.text !== text);
/** One text of each other person: the latest. */
const withOther = (others, other) => [...others.filter(({by, text}) => (by !== other.by || by === "") && text !== other.text), other];

function write(unit, {text}) {
  if (text === textOf(unit)) return unit.state === "confirming" ? {} : resting(unit, {});
  const changes = {...CLEAR, checks: [], text, isUnsent: true, others: without(unit.others, text)};
  return unit.state === "confirming" ? changes : resting(unit, changes);
}

const press = (unit, {text, ticket}) => ({state: "confirming", sent: text, ticket, text: text === base(unit) ? null : text});

function accept(unit, {ticket, record}) {
  if (ticket !== unit.ticket) return null;
  const now = textOf(unit), isSame = now === unit.sent, changes = {...known(unit, record), ...CLEAR, sent: null};
  return resting(unit, isSame ? {...changes, text: null, isUnsent: false} : {...changes, text: now, isUnsent: true});
}

function refuse(unit, {ticket, reason, checks = null}) {
  if (ticket !== unit.ticket) return null;
  return resting(unit, {text: textOf(unit), reason, checks: checks ?? unit.checks, checked: checks && unit.sent, sent: null});
}

/** A request to keep the draft is on its way. */
const fly = (unit) => ({flight: textOf(unit)});

/** The server has taken the draft that was on its way. */
function land(unit, {record}) {
  const isSame = textOf(unit) === unit.flight;
  const changes = {...known(unit, record), flight: null, isUnsent: unit.isUnsent && !isSame};
  if (!isSame) delete changes.checks;  // they are of another text
  return unit.state === "confirming" ? changes : resting(unit, {...changes, text: textOf(unit)});
}

/** The server has not taken it: somebody has changed the segment meanwhile. */
const conflict = (unit, {record}) => ({...beside(unit, record), flight: null});

/** No answer came. */
const drop = () => ({flight: null});

/** The server tells how the segment is. `isBusy`: somebody has it before their eyes, so that their text stays. */
function adopt(unit, {record, isBusy = false}) {
  if (record.version <= unit.version) return null;
  const isWritten = unit.isUnsent || unit.flight !== null || unit.state === "confirming";
  return isWritten || (isBusy && unit.text !== null) ? beside(unit, record) : told(unit, record);
}

/** A person goes elsewhere: a text of theirs that another one has taken the place of gives way, and stands beside it. */
function leave(unit) {
  if (unit.isUnsent || unit.flight !== null || unit.text === null || unit.text === unit.stored) return null;
  const others = withOther(unit.others, {by: "", text: unit.text});
  const {stored} = unit, text = stored ?? base(unit);
  return resting(unit, {others: without(others, text), text: stored});
}

/** Taken back: the server has what stands there then, unless something else was written here since. */
function revert(unit, {record}) {
  if (record.version <= unit.version) return null;
  if (!unit.isUnsent && unit.flight === null) return told(unit, record);
  return resting(unit, {...known(unit, record), ...CLEAR, text: textOf(unit)});
}

const dropOther = (unit, {text}) => ({others: without(unit.others, text)});

/** What the browser has kept of it. Where the server has another text by now, or another tab wrote, too, both are there. */
function restore(unit, {text, version, others = []}) {
  const every = others.reduce(withOther, unit.others), theirs = textOf(unit);
  const now = text === undefined ? theirs : text ?? base(unit);
  if (now === theirs) return {others: without(every, theirs)};
  if (unit.isUnsent) return {others: without(withOther(every, {by: "", text: now}), theirs)};
  const isBeside = version !== unit.version && theirs !== "";
  const all = isBeside ? withOther(every, {by: unit.by, text: theirs}) : every;
  return resting(unit, {others: without(all, now), text: now, isUnsent: true});
}

const RESTING = {write, press, fly, land, conflict, drop, adopt, leave, revert, dropOther, restore};
const CONFIRMING = {write, accept, refuse, fly, land, conflict, drop, adopt, dropOther};
const MACHINE = {
  locked: {adopt: (unit, {record}) => (record.version > unit.version ? known(unit, record) : null)},
  untouched: RESTING, draft: RESTING, confirming: CONFIRMING,
  ...Object.fromEntries(LEVELS.map((level) => [level, RESTING])),
};

/** What an event makes of a segment; false where it means nothing in its state, and nothing is changed. */
export function happen(unit, event, detail = {}) {
  const changes = MACHINE[unit.state][event]?.(unit, detail);
  if (changes) Object.assign(unit, changes);
  return Boolean(changes);
}

/** What the browser has to keep of a segment: what the server has not taken or has no more, and what others wrote beside
    it. null where the server has all. */
export function unsent({text, isUnsent, stored, version, others}) {
  const isReplaced = !isUnsent && text !== null && text !== stored;
  const all = isReplaced ? withOther(others, {by: "", text}) : others;
  return isUnsent || all.length ? {...(isUnsent ? {text} : {}), version, others: all} : null;
}
