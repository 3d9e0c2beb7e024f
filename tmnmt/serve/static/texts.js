// Texts as they are shown, and as the server has them: words escaped, codes as short tags.

import {phrase} from "./phrases.js";

const MARKUP = /<[^<>]*>|&(?:amp|lt|gt|quot|apos|#\d+|#x[0-9a-fA-F]+);/g;
const NAMED = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'"};
const TOKEN = /<\/?[a-z]+\d+\/?>|[\p{L}\p{N}\p{M}]+|\s+|[^\s]/gu;

function unescaped(entity) {
  if (NAMED[entity]) return NAMED[entity];
  const hex = entity[2] === "x";
  return String.fromCodePoint(parseInt(entity.slice(hex ? 3 : 2, -1), hex ? 16 : 10));
}

export const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

/** What a person reads and edits. */
export const shown = (xml) => xml.replace(MARKUP, (mark) => (mark[0] === "<" ? mark : unescaped(mark)));

/** The tags of a text of the server. */
export const tagsOf = (xml) => xml.match(/<[^<>]*>/g) ?? [];

/** What a person has written, for the server: these tags are tags, all else is words. */
export function marked(text, tags) {
  if (!tags.length) return escaped(text);
  const parts = text.split(new RegExp(`(${[...new Set(tags)].join("|")})`));
  return parts.map((part, at) => (at % 2 ? part : escaped(part))).join("");
}

/** What tags look like in a segment, whether it has them or not. Where its words look like tags, the server writes the tags
    with more letters. */
function tagForm(tags, words) {
  let letters = tags.length ? /^<\/?(t*)/.exec(tags[0])[1] : "";
  if (!tags.length) while (words.includes(`<${letters}g`) || words.includes(`<${letters}x`)) letters += "t";
  return new RegExp(`</?${letters}[gx]\\d+/?>`, "g");
}

/** Why a text cannot be the translation of a segment with these tags and words, in words: a tag that the segment does not
    have. "" where it can. */
export function tagProblem(text, tags, words) {
  const unknown = text.match(tagForm(tags, words))?.find((tag) => !tags.includes(tag));
  if (!unknown) return "";
  const allowed = [...new Set(tags)].join(", ") || phrase("none");
  return phrase("{tag} is no tag of this segment; its tags: {allowed}.", {tag: unknown, allowed});
}

/** With a full stop, unless it ends in a mark of its own. */
export const sentence = (text) => (/[.!?…。！？]$/u.test(text) ? text : `${text}.`);

/** What was typed of a translation, with its tags, and what a whole one adds that begins with its words: the words that
    follow, and the tags that were not typed, where it has them. */
export function continued(typed, xml, tags) {
  const begun = marked(typed, tags), left = tagsOf(begun);
  let made = "", skipped = plain(begun).length;
  for (const part of xml.split(/(<[^<>]*>)/)) {
    if (part[0] === "<") {
      const had = left.indexOf(part);
      if (had < 0) made += part;
      else left.splice(had, 1);
    } else {
      const words = shown(part);
      made += words.slice(skipped);
      skipped = Math.max(0, skipped - words.length);
    }
  }
  return typed + made;
}

/** Without its tags. */
export const plain = (xml) => shown(xml.replace(/<[^<>]*>/g, ""));

/** Pairs [at in some, at in others] of a longest common subsequence. */
export function common(some, others) {
  const n = some.length, m = others.length;
  const size = Array.from({length: n + 1}, () => new Uint16Array(m + 1));
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      size[i][j] = some[i] === others[j] ? size[i + 1][j + 1] + 1 : Math.max(size[i + 1][j], size[i][j + 1]);
    }
  }
  const found = [];
  for (let i = 0, j = 0; i < n && j < m;) {
    if (some[i] === others[j]) found.push([i++, j++]);
    else if (size[i + 1][j] >= size[i][j + 1]) i++;
    else j++;
  }
  return found;
}

/** What becomes of one text on the way to another: [{kind: "same" | "out" | "in", text}]. */
export function diff(before, after) {
  const some = before.match(TOKEN) ?? [], others = after.match(TOKEN) ?? [];
  const parts = [];
  const add = (kind, text) => {
    if (!text) return;
    if (parts.at(-1)?.kind === kind) parts.at(-1).text += text;
    else parts.push({kind, text});
  };
  let i = 0, j = 0;
  for (const [at, of] of [...common(some, others), [some.length, others.length]]) {
    add("out", some.slice(i, at).join(""));
    add("in", others.slice(j, of).join(""));
    add("same", some[at] ?? "");
    [i, j] = [at + 1, of + 1];
  }
  return parts;
}

const BYTE = /^<0x([0-9A-Fa-f]{2})>$/;

/** Subwords joined to words: [{text, tokens}]. */
export function words(tokens) {
  const found = [];
  for (const token of tokens) {
    if (!found.length || token.text.startsWith("\u2581")) found.push({pieces: [], tokens: []});
    found.at(-1).pieces.push(token.text);
    found.at(-1).tokens.push(token);
  }
  return found.map(({pieces, tokens}) => ({text: spelt(pieces), tokens}));
}

function spelt(pieces) {
  const encoder = new TextEncoder();
  const parts = pieces.map((piece) => {
    const byte = BYTE.exec(piece);
    return byte ? [parseInt(byte[1], 16)] : [...encoder.encode(piece.replaceAll("\u2581", " "))];
  });
  return new TextDecoder().decode(new Uint8Array(parts.flat())).trim();
}

/** The words of a shown text, with the blanks before them, the tokens of each where it has some, and how likely it is
    right, where `rated` tells. */
export function traced(text, tokens, rated = []) {
  const chunks = [...text.matchAll(/(\s*)(\S+)/g)].map(([, blank, word]) => ({blank, text: word, tokens: []}));
  const known = words(tokens);
  const bare = chunks.map((chunk) => chunk.text.replace(/<\/?[a-z]+\d+\/?>/g, ""));
  for (const [at, of] of common(bare, known.map((word) => word.text))) {
    Object.assign(chunks[at], {tokens: known[of].tokens, confidence: rated[of]?.confidence});
  }
  return chunks;
}
