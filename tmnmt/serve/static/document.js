// Documents of the server: the calls of their routes.

import {bytes, get, patch, post, put, remove} from "./api.js";

const PAGE = 500;  // segments of an answer
const LONG = 25;  // seconds that the server waits for a change

const path = (id, ...parts) => ["v1/desk", ...[id, ...parts].map(encodeURIComponent)].join("/");

/** Those that this person may see, the latest first. */
export const documents = async () => (await get("v1/desk")).documents;

/** Makes one of a file: {name, content, source, target, …}. Answers what is known of it. */
export const create = (fields) => post("v1/desk", fields);

export const about = (id) => get(path(id));

/** Changes its name or project. */
export const change = (id, fields) => patch(path(id), fields);

export const discard = (id) => remove(path(id));

/** All segments of a document of so many, and the version from which changes are to be asked for: {version, segments}. */
export async function segments(id, count) {
  const firsts = Array.from({length: Math.ceil(count / PAGE)}, (_, page) => 1 + page * PAGE);
  const pages = await Promise.all(firsts.map((first) => get(`${path(id, "segments")}?first=${first}&count=${PAGE}`)));
  return {version: Math.min(...pages.map(({version}) => version)), segments: pages.flatMap((page) => page.segments)};
}

/** What has changed since a version, or who is there, as soon as anything has: {version, segments, people, stamp}. stamp:
    of the people that the caller knows of. */
export const changes = (id, since, stamp, signal) => get(`${path(id, "changes")}?since=${since}&stamp=${stamp}&wait=${LONG}`, signal);

/** Tells where this page is at work; number: null where nowhere. tab: names the page. */
export const tellPresence = (id, tab, number) => put(path(id, "presence"), {tab, number});

/** Many drafts at once, [{number, version, text}]: {segments, conflicts}. */
export const writeDrafts = (id, drafts) => post(path(id, "segments"), {changes: drafts});

/** Changes the state of a segment, or sets a check aside: {version, state, ignore}. */
export const changeSegment = (id, number, fields) => patch(path(id, "segments", number), fields);

export const confirmSegment = (id, number, fields) => post(path(id, "segments", number, "confirm"), fields);

/** Takes back what was confirmed last, or last in a segment: {segments}. */
export const undo = (id, number = null) => post(path(id, "undo"), number === null ? {} : {number});

/** What stood in a segment, the newest first: [{text, confirmed, state, by, time, origin}]. */
export const history = async (id, number) => (await get(path(id, "segments", number, "history"))).versions;

export const addComment = (id, number, text) => post(path(id, "segments", number, "comments"), {text});

export const removeComment = (id, number, comment) => remove(path(id, "segments", number, "comments", comment));

/** The file with what is confirmed, and which segments it does not take: {content, refused: [{segment, reason}], issues}.
    These stay as they were. rule: "refuse" where none is to be had while checks find something; what they find is among the
    issues then, [{segment, name, what}], and there is no content. */
export async function file(id) {
  const address = path(id, "file");
  try {
    return {content: await bytes(address), refused: [], issues: []};
  } catch (error) {
    if (error.issues) return {content: null, refused: [], issues: error.issues};
    if (!error.refused) throw error;
    return {content: await bytes(`${address}?refused=leave`), refused: error.refused, issues: []};
  }
}
