// A segment of the document at work as a small machine: its states, and what each event makes of them. It knows no page,
// no server and no clock, so that it can be tried without them.
//
//     untouched ──write──► draft ──press──► confirming ──accept──► confirmed ──write──► draft …
//                                               └──refuse──► draft
//
// `confirmed` is what the server has taken, as XML; `text` is what was written beside it, as it is shown. Writing on while
// a request is under way leaves the text a draft, whatever comes of the request.

import {shown} from "./texts.js";

/** A segment as the server tells it, before anybody has touched it. */
export function segment({source, target, state, ...more}) {
  return {
    ...more, source, file: {target, state}, state: state === "locked" ? "locked" : "untouched",
    confirmed: null, confirmedAt: 0, text: null,
    sent: null, ticket: 0, reason: "", checks: [], checked: null,
    version: 0, others: {},
  };
}

/** What the segment holds beside what is being written: what was confirmed, or what the file has. */
export const base = (unit) => shown(unit.confirmed ?? unit.file.target ?? "");

/** What stands in its field. */
export const textOf = (unit) => unit.text ?? base(unit);

/** Its state as the list has it: of an untouched one that which the file tells. */
export const stateOf = (unit) => (unit.state === "untouched" ? unit.file.state : unit.state);

/** Whether a person has still to see to it. */
export const isOpen = (unit) => ["new", "draft"].includes(stateOf(unit));

/** Whether a press would confirm this text although the checks found something in it: they were shown for it. */
export const isSeen = (unit, text) => unit.checked !== null && unit.checked === text;

const CLEAR = {reason: "", checks: [], checked: null};

/** These changes, with the state that follows from them where no request is under way. */
function resting(unit, changes) {
  const now = {...unit, ...changes};
  const text = now.text === base(now) ? null : now.text;
  const state = text !== null ? "draft" : now.confirmed !== null ? "confirmed" : "untouched";
  return {...changes, text, state};
}

function write(unit, {text}) {
  const changes = text === textOf(unit) ? {} : {...CLEAR, text};
  return unit.state === "confirming" ? changes : resting(unit, changes);
}

const press = (unit, {text, ticket}) => ({state: "confirming", sent: text, ticket, text: text === base(unit) ? null : text});

function accept(unit, {ticket, target, checks = [], at}) {
  if (ticket !== unit.ticket) return null;
  const text = textOf(unit) === unit.sent ? null : textOf(unit);
  return resting(unit, {...CLEAR, confirmed: target, confirmedAt: at, text, sent: null, checks});
}

function refuse(unit, {ticket, reason, checks = null}) {
  if (ticket !== unit.ticket) return null;
  return resting(unit, {text: textOf(unit), reason, checks: checks ?? [], checked: checks && unit.sent, sent: null});
}

const discard = (unit) => resting(unit, {...CLEAR, text: null});

/** Taken back: what was confirmed becomes a draft, unless something else is being written. */
const revert = (unit, {confirmed, at}) => resting(unit, {...CLEAR, confirmed, confirmedAt: at, text: textOf(unit)});

/** What another tab has kept of the segment. `busy`: this tab's own text must stay as it is; then the other's stands
    beside it. */
function adopt(unit, {record, busy}) {
  const newer = record.confirmedAt > unit.confirmedAt ? record : unit;
  const {confirmed, confirmedAt} = newer;
  if (!busy) {
    const {text, checks, others, version} = record;
    return resting(unit, {...CLEAR, confirmed, confirmedAt, text, checks, others, version});
  }
  const others = distinct({...unit.others, [record.tab]: record.text}, textOf(unit));
  const changes = {confirmed, confirmedAt, others, version: record.version};
  return unit.state === "confirming" ? changes : resting(unit, changes);
}

/** This tab's own record is kept: it has what another tab kept meanwhile. */
function settle(unit, {record}) {
  const {confirmed, confirmedAt} = record.confirmedAt > unit.confirmedAt ? record : unit;
  const others = distinct(record.others, textOf(unit));
  const changes = {confirmed, confirmedAt, others, version: Math.max(unit.version, record.version)};
  return unit.state === "confirming" ? changes : resting(unit, changes);
}

const MACHINE = {
  locked: {},
  untouched: {write, press, adopt, settle},
  draft: {write, press, discard, revert, adopt, settle},
  confirming: {write, accept, refuse, adopt, settle},
  confirmed: {write, revert, adopt, settle},
};

/** What an event makes of a segment; false where it means nothing in its state, and nothing is changed. */
export function happen(unit, event, detail = {}) {
  const changes = MACHINE[unit.state][event]?.(unit, detail);
  if (changes) Object.assign(unit, changes);
  return Boolean(changes);
}

// What is kept of it

/** The texts of other tabs that are some, and are not this one. */
function distinct(others, own) {
  return Object.fromEntries(Object.entries(others).filter(([, text]) => text != null && text !== own));
}

/** What the browser keeps of a segment. */
export function record({confirmed, confirmedAt, text, checks, others, version}, tab) {
  return {confirmed, confirmedAt, text, checks, others, version, tab};
}

/** The record to be kept where there is one already. What a tab has not seen is neither overwritten nor lost: another
    text stands beside its own, and of two confirmed ones the later counts. */
export function merge(own, found) {
  if (!found) return {...own, version: own.version + 1};
  const version = Math.max(own.version, found.version ?? 0) + 1;
  if (found.tab === own.tab || (found.version ?? 0) <= own.version) return {...own, version};
  const newer = found.confirmedAt > own.confirmedAt ? found : own;
  const {confirmed, confirmedAt} = newer;
  const older = newer === own ? found : own;
  const replaced = older.confirmed !== null && older.confirmed !== confirmed ? shown(older.confirmed) : null;
  const others = {...found.others, ...own.others, [found.tab]: found.text ?? replaced, [own.tab]: null};
  return {...own, confirmed, confirmedAt, others: distinct(others, own.text), version};
}

/** A segment as it was when the browser kept it. A request that was under way then is none any more. */
export function restore(unit, kept) {
  const confirmed = kept.confirmed ?? (kept.state === "confirmed" ? kept.target : null);  // as pages before kept it
  const text = kept.text ?? kept.draft ?? null;
  const {confirmedAt = 0, checks = [], others = {}, version = 0} = kept;
  Object.assign(unit, resting(unit, {confirmed, confirmedAt, text, checks, others, version}));
}
