// The suggestion word by word, where each comes from, and the matches.

import {el, text} from "./elements.js";
import {percent, phrase} from "./phrases.js";
import {drawnTags} from "./marks.js";
import {diff, plain, shown, traced} from "./texts.js";

const FROM = {
  memory: phrase("from the memory"), cache: phrase("from what you confirmed"), term: phrase("a term of the list"), model: phrase("from the model"),
};
const WHOLE = {
  memory: phrase("An exact match, as it stands."), adapted: phrase("A full match, with the numbers or the case of this text."),
  confirmed: phrase("As you confirmed it before."),
};
const SURE = 0.5;  // a word that is less likely to be right is marked
const PROBABLE = 0.4;  // where that is not known, a word of the model that was less probable

/** {text, segment}: what the server suggests; `isOwn`: whether a match was confirmed in this session. */
export class Offer {
  constructor(answer, isOwn) {
    this.text = shown(answer.text);
    this.plain = plain(answer.text);
    this.segment = answer.segments[0] ?? {matches: [], tokens: [], missing_numbers: [], checks: [], origin: "", low: false};
    this.matches = this.segment.matches.map((match) => ({...match, own: isOwn(match), tgt: match.adapted || match.tgt}));
    this.words = traced(this.text, this.segment.tokens, this.segment.words).map((word) => this._word(word));
  }

  _word(word) {
    const origins = new Map();
    for (const {origin} of word.tokens) origins.set(origin, (origins.get(origin) ?? 0) + 1);
    let [origin] = [...origins].sort((a, b) => b[1] - a[1])[0] ?? [this._whole()];
    const match = this._read(word.tokens);
    if (origin === "memory" && (match ?? this._taken())?.own) origin = "cache";
    const probability = word.tokens.reduce((least, token) => Math.min(least, token.probability), 1);
    const slots = [...new Set(word.tokens.flatMap((token) => token.slots.map((slot) => slot.text.replaceAll("\u2581", " ").trim())))];
    return {...word, origin, match, probability, slots, unsure: isUnsure(word, origin, probability)};
  }

  /** Where all of it came from, as a segment's record has it: {origin, match, quality}. */
  get provenance() {
    const {origin, confidence = null} = this.segment, [best] = this.matches;
    const whole = {memory: "memory", confirmed: "memory", adapted: "adapted"}[origin];
    return whole ? {origin: whole, match: best?.worth ?? null, quality: null} : {origin: "model", match: null, quality: confidence};
  }

  _whole() {
    return {confirmed: "cache", memory: "memory", adapted: "memory"}[this.segment.origin] ?? "model";
  }

  /** The match that the whole was taken from. */
  _taken() {
    return this.whole ? this.matches[0] : undefined;
  }

  /** The match that tokens were read from most. */
  _read(tokens) {
    const weights = new Map();
    for (const token of tokens) {
      for (const {match, weight} of token.sources) weights.set(match, (weights.get(match) ?? 0) + weight);
    }
    const [best] = [...weights].sort((a, b) => b[1] - a[1]);
    return best ? this.matches[best[0]] : undefined;
  }

  /** How likely all of it is right, in words; "" where that is not known. */
  get sure() {
    const {confidence} = this.segment;
    const likely = confidence === undefined ? "" : phrase("likely right: {share}", {share: likelihood(confidence)});
    return [likely, this._contradiction()].filter(Boolean).join(" \u00b7 ");
  }

  /** That the memory has other translations of the same source, in words; "" where it has none. */
  _contradiction() {
    const found = this.matches.find((match) => match.agreement?.rivals)?.agreement;
    return found ? phrase("the memory contradicts itself: {copies} of {total} have this translation", {copies: found.copies, total: found.total}) : "";
  }

  get whole() { return WHOLE[this.segment.origin] ?? ""; }

  /** Where a word comes from, in words. */
  told(word) {
    const parts = [FROM[word.origin]];
    if (word.match && word.origin !== "model") parts.push(phrase("match {number}{place}", {number: this.matches.indexOf(word.match) + 1, place: place(word.match)}));
    else if (word.origin === "cache" && word.slots.length) parts.push(phrase("you wrote {words}", {words: word.slots.slice(0, 3).join(", ")}));
    if (word.confidence !== undefined) parts.push(phrase("likely right: {share}", {share: percent(word.confidence)}));
    else if (word.tokens.length) parts.push(phrase("probability {share}", {share: percent(word.probability)}));
    return `${word.text}: ${parts.join(" · ")}`;
  }
}

function isUnsure({tokens, confidence}, origin, probability) {
  if (confidence !== undefined) return confidence < SURE;
  return origin === "model" && tokens.length > 0 && probability < PROBABLE;
}

const REASONS = {
  numbers: phrase("other numbers"), case: phrase("another case"), punctuation: phrase("other punctuation"),
  codes: phrase("other tags"), placeholders: phrase("other placeholders"), domain: phrase("another domain"),
  machine: phrase("made by a machine"), alignment: phrase("made by alignment"), old: phrase("old"),
  memory: phrase("of this memory"), weight: phrase("the memory's weight"), previous: phrase("the same segment before it"),
  next: phrase("the same segment behind it"), id: phrase("the same id"),
};

/** Where a match is from: memory, document, who changed it and when. */
function provenance({own, memory, document, user, changed}) {
  return [own ? phrase("confirmed here") : memory, document, user, changed?.slice(0, 10)].filter(Boolean).join(" · ");
}

/** Why a match is worth what it is, in words; "" where its differences say it. */
export function whyOf({worth, reasons = {}, adapted}) {
  const parts = Object.entries(reasons).map(([what, points]) => {
    const reason = REASONS[what] ?? what;
    if (points) return `${reason} ${points > 0 ? "+" : "\u2212"}${Math.abs(points)}`;
    return adapted ? phrase("{reason}, put in", {reason}) : phrase("{reason}, and the translation is right for it", {reason});
  });
  return parts.length ? parts.join("; ") : worth === 100 ? phrase("the same text") : "";
}

const likelihood = (share) => (share < 0.01 ? phrase("under {share}", {share: percent(0.01)}) : percent(share));
const place = (match) => (match.own ? `, ${phrase("confirmed here")}` : match.document ? `, ${match.document}` : "");
const worth = (match) => percent(match.worth === undefined ? match.score : match.worth / 100);

/** Draws the words with the tags of a segment as chips; `told`: called with what is said of one that is pointed at, "" of
    none; `take`: with the text up to one that is chosen. */
export function drawWords(to, offer, chips, told, take) {
  let before = "";
  const made = offer.words.flatMap((word, at) => {
    const one = el("span", `word ${word.origin}${word.unsure ? " unsure" : ""}`, ...drawnTags(word.text, chips));
    before += word.blank + word.text;
    const upTo = before;
    one.role = "button";
    one.tabIndex = at ? -1 : 0;
    one.setAttribute("aria-description", offer.told(word));
    const tell = () => told(offer.told(word), word);
    one.addEventListener("pointerenter", tell);
    one.addEventListener("focus", tell);
    one.addEventListener("pointerleave", () => told(""));
    one.addEventListener("blur", () => told(""));
    one.addEventListener("click", () => take(upTo));
    one.addEventListener("keydown", (event) => along(event, one, () => take(upTo)));
    return [word.blank, one];
  });
  to.replaceChildren(...made);
}

function along(event, one, chosen) {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const all = [...one.parentElement.children], at = all.indexOf(one);
  const forth = getComputedStyle(one).direction === "rtl" ? -1 : 1;
  const next = {ArrowRight: all[at + forth], ArrowLeft: all[at - forth], Home: all[0], End: all.at(-1)}[event.key];
  if (next) {
    one.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  } else if (event.key === "Enter" || event.key === " ") chosen();
  else return;
  event.preventDefault();
}

/** Draws the matches; `use`: called with the translation of one. */
export function drawMatches(to, offer, source, languages, use) {
  const made = offer.matches.map((match, at) => {
    const take = el("button", "", phrase("Use"), " ", el("kbd", "", `Ctrl ${at + 1}`));
    take.type = "button";
    take.addEventListener("click", () => use(match.tgt));
    const head = el("p", "head", el("b", match.own ? "cache" : "memory", worth(match)),
      el("span", "quiet", provenance(match)), take);
    const src = text("p", languages.source, ...drawDiff(match.src, source));
    const tgt = text("p", languages.target, match.tgt);
    tgt.classList.add("read");
    const why = whyOf(match);
    return el("li", "match", head, ...(why ? [el("p", "quiet why", why)] : []), src, tgt);
  });
  to.replaceChildren(...(made.length ? made : [el("li", "quiet", phrase(phrase("None of the memories has anything like it.")))]));
}

/** Elements for what has to become of one text to be another. */
export function drawDiff(before, after) {
  return diff(before, after).map(({kind, text}) => (kind === "same" ? text : el(kind === "out" ? "del" : "ins", "", text)));
}

/** Marks a word where the matches have it. */
export function pointOut(matches, offer, word) {
  [...matches.querySelectorAll(".read")].forEach((line, at) => {
    const match = offer.matches[at];
    const bare = word && word.match === match ? word.text.replace(/[.,;:!?()«»"]+/g, "") : "";
    const parts = bare ? match.tgt.split(bare) : [match.tgt];
    line.replaceChildren(...parts.flatMap((part, n) => (n ? [el("mark", word.origin, bare), part] : [part])));
  });
}
