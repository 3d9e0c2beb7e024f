// Words and regular expressions that are looked for in texts. A regular expression is searched for in all its ways at once,
// so that the time goes with the length of the text, whatever the expression is (Thompson 1968, Pike's machine): the page
// never hangs on one that a person has typed. What this cannot do, to look ahead or back and to refer to a group, is refused.

import {phrase} from "./phrases.js";

const MOST = 2000;  // steps of an expression
const MOST_TIMES = 200;  // of {least,most}
const LETTER = "\\p{L}\\p{N}\\p{M}_";  // of a word, in every script
const PART = /\\(?:u\{[0-9a-f]+\}|u[0-9a-f]{4}|x[0-9a-f]{2}|[pP]\{[^}]*\}|c[a-z]|.)|\[(?:\\.|[^\]\\])*\]|[^\\[]/isuy;
const isLetter = (sign) => sign !== undefined && new RegExp(`[${LETTER}]`, "u").test(sign);

/** What finds a text or an expression in texts. source: what was typed. isPattern: whether it is a regular expression.
    hasCase: whether capitals count. Raises an Error, in words, for an expression that cannot be searched for. */
export function finderOf(source, {isPattern = false, hasCase = false} = {}) {
  return isPattern ? new Pattern(source, hasCase) : new Words(source, hasCase);
}

/** A text that is found as it stands. */
class Words {
  constructor(source, hasCase) {
    this._source = new RegExp(source.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), hasCase ? "gu" : "giu");
  }

  /** Where it stands in a text: [{start, end, groups}], none of which overlaps another. */
  find(text) {
    return [...text.matchAll(this._source)].map((match) => ({start: match.index, end: match.index + match[0].length, groups: [match[0]]}));
  }

  has(text) { return text.search(this._source) >= 0; }

  /** What takes the place of an occurrence. */
  replace(_, replacement) { return replacement; }
}

/** A regular expression, as JavaScript writes them; \w and \b know the letters of every script. */
class Pattern {
  constructor(source, hasCase) {
    const parser = new Parser(source, hasCase);
    this._steps = [];
    this._emit(parser.all());
    this._steps.push({kind: "end"});
    this._slots = 2 * (parser.groups + 1);
  }

  find(text) {
    const found = [];
    for (let at = 0; at <= text.length;) {
      const slots = this._search(text, at);
      if (!slots) break;
      const [start, end] = slots;
      const groups = Array.from({length: this._slots / 2}, (_, n) => text.slice(slots[2 * n] ?? 0, slots[2 * n + 1] ?? 0));
      found.push({start, end, groups});
      at = end > start ? end : end + (signAt(text, end).length || 1);
    }
    return found;
  }

  has(text) { return this._search(text, 0) !== null; }

  /** What takes the place of an occurrence: $1 … $9 stand for its groups, $& for all of it, $$ for a dollar. */
  replace({groups}, replacement) {
    return replacement.replace(/\$([$&1-9])/g, (_, name) => (name === "$" ? "$" : groups[name === "&" ? 0 : Number(name)] ?? ""));
  }

  /** The first occurrence from `from` on, as the places of its groups; null where there is none. */
  _search(text, from) {
    let threads = [], found = null;
    for (let at = from; ; ) {
      const sign = signAt(text, at), seen = new Set(), next = [];
      if (!found) threads.push({step: 0, slots: []});
      for (const thread of threads) {
        const end = this._advance(thread, text, at, sign, seen, next);
        if (end) {
          found = end;
          break;  // those behind it would be a worse choice
        }
      }
      if (!sign || (found && !next.length)) return found;
      threads = next;
      at += sign.length;
    }
  }

  /** Follows a thread up to the next sign; its places where it has come to the end. */
  _advance(thread, text, at, sign, seen, next) {
    const waiting = [thread];
    while (waiting.length) {
      const {step, slots} = waiting.pop();
      if (seen.has(step)) continue;
      seen.add(step);
      const {kind, ...told} = this._steps[step];
      if (kind === "end") {
        // what was begun later in this thread is worse than this end
        return Object.assign([...slots], {1: at, 0: slots[0] ?? at});
      } else if (kind === "sign") {
        if (sign && told.test(sign)) next.push({step: step + 1, slots: slots[0] === undefined ? Object.assign([...slots], {0: at}) : slots});
      } else if (kind === "split") waiting.push({step: told.second, slots}, {step: told.first, slots});
      else if (kind === "go") waiting.push({step: told.to, slots});
      else if (kind === "place") waiting.push({step: step + 1, slots: Object.assign([...slots], {0: slots[0] ?? at, [told.slot]: at})});
      else if (told.holds(text, at)) waiting.push({step: step + 1, slots});
    }
    return null;
  }

  _add(step) {
    if (this._steps.length >= MOST) throw new Error(phrase(phrase("The expression is too long.")));
    return this._steps.push(step) - 1;
  }

  _emit(node) {
    EMITTED[node.kind].call(this, node);
  }
}

const EMITTED = {
  sign(node) { this._add(node); },
  holds(node) { this._add(node); },
  sequence({parts}) { parts.forEach((part) => this._emit(part)); },
  group({number, inside}) {
    if (number) this._add({kind: "place", slot: 2 * number});
    this._emit(inside);
    if (number) this._add({kind: "place", slot: 2 * number + 1});
  },
  choice({first, second}) {
    const split = this._steps[this._add({kind: "split"})];
    split.first = this._steps.length;
    this._emit(first);
    const go = this._steps[this._add({kind: "go"})];
    split.second = this._steps.length;
    this._emit(second);
    go.to = this._steps.length;
  },
  repeat({inside, least, most, isGreedy}) {
    for (let n = 0; n < least; n++) this._emit(inside);
    const optional = () => {
      const split = this._steps[this._add({kind: "split"})], begin = this._steps.length;
      this._emit(inside);
      return (to) => Object.assign(split, isGreedy ? {first: begin, second: to} : {first: to, second: begin});
    };
    if (most === Infinity) {
      const again = this._steps.length, close = optional();
      this._add({kind: "go", to: again});
      close(this._steps.length);
    } else {
      const closing = Array.from({length: most - least}, optional);
      closing.forEach((close) => close(this._steps.length));
    }
  },
};

/** Reads an expression. */
class Parser {
  constructor(source, hasCase) {
    this._source = source;
    this._at = 0;
    this._flags = hasCase ? "u" : "iu";
    this.groups = 0;
  }

  all() {
    const node = this._choice();
    if (this._at < this._source.length) throw new Error(phrase(phrase("A ) closes nothing.")));
    return node;
  }

  _choice() {
    const first = this._sequence();
    if (!this._takes("|")) return first;
    return {kind: "choice", first, second: this._choice()};
  }

  _sequence() {
    const parts = [];
    while (this._at < this._source.length && !"|)".includes(this._source[this._at])) parts.push(this._repeated(this._atom()));
    return {kind: "sequence", parts};
  }

  _atom() {
    if (this._takes("(")) return this._group();
    if (this._takes("^")) return {kind: "holds", holds: (_, at) => at === 0};
    if (this._takes("$")) return {kind: "holds", holds: (text, at) => at === text.length};
    if (this._takes("\\b")) return {kind: "holds", holds: isBorder};
    if (this._takes("\\B")) return {kind: "holds", holds: (text, at) => !isBorder(text, at)};
    if ("*+?{".includes(this._source[this._at])) throw new Error(phrase("{sign} repeats nothing.", {sign: this._source[this._at]}));
    return {kind: "sign", test: this._sign()};
  }

  _group() {
    const isUnnamed = this._takes("?:");
    if (!isUnnamed && this._source[this._at] === "?") throw new Error(phrase(phrase("Only ( ) and (?: ) are groups here; to look ahead or back is not possible.")));
    const number = isUnnamed ? 0 : ++this.groups;
    const inside = this._choice();
    if (!this._takes(")")) throw new Error(phrase(phrase("A ( is not closed.")));
    return {kind: "group", number, inside};
  }

  /** What says of one sign whether it fits. */
  _sign() {
    PART.lastIndex = this._at;
    const [part] = PART.exec(this._source) ?? [];
    if (!part) throw new Error(this._source[this._at] === "[" ? phrase("A [ is not closed.") : phrase("A \\ stands at the end."));
    if (/^\\[1-9k]/.test(part)) throw new Error(phrase("{sign} refers to a group, which is not possible here.", {sign: part}));
    this._at += part.length;
    let one;
    try {
      one = new RegExp(`^(?:${wide(part)})$`, `${this._flags}s`);
    } catch {
      throw new Error(phrase("{sign} is not understood.", {sign: part}));
    }
    const answers = new Map();
    return (sign) => {
      if (!answers.has(sign)) answers.set(sign, one.test(sign));
      return answers.get(sign);
    };
  }

  _repeated(atom) {
    let [least, most] = [1, 1];
    const [braces, low, comma, high] = /^\{(\d+)(,?)(\d*)\}/.exec(this._source.slice(this._at)) ?? [];
    if (braces) {
      [least, most] = [Number(low), high ? Number(high) : comma ? Infinity : Number(low)];
      this._at += braces.length;
    } else if (this._takes("*")) [least, most] = [0, Infinity];
    else if (this._takes("+")) most = Infinity;
    else if (this._takes("?")) least = 0;
    else return atom;
    if (least > most || least > MOST_TIMES || (most !== Infinity && most > MOST_TIMES)) throw new Error(phrase("At most {most} times, and the smaller number first.", {most: MOST_TIMES}));
    return {kind: "repeat", inside: atom, least, most, isGreedy: !this._takes("?")};
  }

  _takes(sign) {
    if (!this._source.startsWith(sign, this._at)) return false;
    this._at += sign.length;
    return true;
  }
}

/** \w for the letters of every script. */
function wide(part) {
  if (part === "\\w") return `[${LETTER}]`;
  if (part === "\\W") return `[^${LETTER}]`;
  return part[0] === "[" ? part.replace(/\\(.)/gs, (mark, sign) => (sign === "w" ? LETTER : mark)) : part.replace(/^[\]}]$/, "\\$&");
}

const signAt = (text, at) => (at < text.length ? String.fromCodePoint(text.codePointAt(at)) : "");

/** Whether a word begins or ends at a place. */
function isBorder(text, at) {
  const before = at > 0 ? [...text.slice(Math.max(0, at - 2), at)].at(-1) : undefined;
  return isLetter(before) !== isLetter(signAt(text, at) || undefined);
}
