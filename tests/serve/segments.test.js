// The machine of a segment without a page: run by test_segments.py, with the folder of the page's scripts.

import assert from "node:assert/strict";
import {test} from "node:test";
import {pathToFileURL} from "node:url";

const folder = pathToFileURL(process.env.TMNMT_PAGE + "/").href;
const {happen, isSeen, merge, record, restore, segment, stateOf, textOf} = await import(`${folder}segments.js`);
const {sentence, tagProblem} = await import(`${folder}texts.js`);
const {keyOf} = await import(`${folder}keys.js`);

const given = (more = {}) => segment({source: "All is void.", target: null, state: "new", notes: [], ...more});
const write = (unit, text) => happen(unit, "write", {text});
const press = (unit, ticket = 1) => happen(unit, "press", {text: textOf(unit), ticket});

test("a segment goes from untouched to confirmed", () => {
  const unit = given();
  assert.equal(stateOf(unit), "new");
  write(unit, "Nul.");
  assert.equal(stateOf(unit), "draft");
  assert.ok(press(unit));
  assert.equal(stateOf(unit), "confirming");
  assert.ok(happen(unit, "accept", {ticket: 1, target: "Nul.", at: 1}));
  assert.deepEqual([stateOf(unit), textOf(unit), unit.text, unit.confirmed], ["confirmed", "Nul.", null, "Nul."]);
});

test("one request is under way, and a second press means nothing", () => {
  const unit = given();
  write(unit, "Nul.");
  press(unit, 1);
  assert.equal(press(unit, 2), false);
  assert.equal(unit.ticket, 1);
});

test("a late answer is dropped", () => {
  const unit = given();
  write(unit, "Nul.");
  press(unit, 1);
  happen(unit, "refuse", {ticket: 1, reason: "no"});
  assert.equal(happen(unit, "accept", {ticket: 1, target: "Nul.", at: 1}), false);
  press(unit, 2);
  assert.equal(happen(unit, "accept", {ticket: 1, target: "Nul.", at: 1}), false);
  assert.equal(happen(unit, "refuse", {ticket: 1, reason: "no"}), false);
  assert.equal(stateOf(unit), "confirming");
});

test("what is written while a request is under way stays a draft", () => {
  const unit = given();
  write(unit, "Nul.");
  press(unit);
  write(unit, "Nul. Et plus.");
  assert.equal(stateOf(unit), "confirming");
  happen(unit, "accept", {ticket: 1, target: "Nul.", at: 1});
  assert.deepEqual([stateOf(unit), unit.confirmed, textOf(unit)], ["draft", "Nul.", "Nul. Et plus."]);
});

test("a reason stays until the text changes", () => {
  const unit = given();
  write(unit, "Nul.");
  press(unit);
  happen(unit, "refuse", {ticket: 1, reason: "no", checks: [{name: "numbers", what: "3"}]});
  write(unit, "Nul.");
  assert.deepEqual([unit.reason, unit.checks.length, isSeen(unit, "Nul.")], ["no", 1, true]);
  write(unit, "Nul !");
  assert.deepEqual([unit.reason, unit.checks.length, isSeen(unit, "Nul !"), isSeen(unit, "Nul.")], ["", 0, false, false]);
});

test("checks of a text that was changed meanwhile do not count for the new one", () => {
  const unit = given();
  write(unit, "Nul.");
  press(unit);
  write(unit, "Nul 3.");
  happen(unit, "refuse", {ticket: 1, reason: "no", checks: [{name: "numbers", what: "3"}]});
  assert.equal(isSeen(unit, "Nul 3."), false);
});

test("what is taken back is a draft, and a draft over it stays", () => {
  const unit = given();
  write(unit, "Nul.");
  press(unit);
  happen(unit, "accept", {ticket: 1, target: "Nul.", at: 1});
  write(unit, "Autre.");
  happen(unit, "revert", {confirmed: null, at: 2});
  assert.deepEqual([stateOf(unit), textOf(unit), unit.confirmed], ["draft", "Autre.", null]);
  const other = given();
  write(other, "Nul.");
  press(other);
  happen(other, "accept", {ticket: 1, target: "Nul.", at: 1});
  happen(other, "revert", {confirmed: null, at: 2});
  assert.deepEqual([stateOf(other), textOf(other)], ["draft", "Nul."]);
});

test("a locked segment takes nothing", () => {
  const unit = given({state: "locked", target: "Nul."});
  for (const event of ["write", "press", "discard", "revert", "adopt"]) assert.equal(happen(unit, event, {text: "x", ticket: 1}), false);
  assert.equal(textOf(unit), "Nul.");
});

test("only a discard takes a draft away", () => {
  const unit = given({state: "translated", target: "Nul."});
  write(unit, "Autre.");
  happen(unit, "discard");
  assert.deepEqual([stateOf(unit), textOf(unit)], ["translated", "Nul."]);
});

test("what is kept comes back, and as pages before kept it", () => {
  const unit = given();
  write(unit, "Nul.");
  press(unit);
  happen(unit, "accept", {ticket: 1, target: "Nul.", at: 1});
  write(unit, "Autre.");
  const again = given();
  restore(again, structuredClone(record(unit, "a")));
  assert.deepEqual([stateOf(again), textOf(again), again.confirmed], ["draft", "Autre.", "Nul."]);
  const old = given();
  restore(old, {at: 0, state: "confirmed", target: "a &amp; b", draft: undefined});
  assert.deepEqual([stateOf(old), textOf(old)], ["confirmed", "a & b"]);
  const draft = given();
  restore(draft, {at: 0, state: "new", target: null, draft: "Nul"});
  assert.deepEqual([stateOf(draft), textOf(draft)], ["draft", "Nul"]);
});

/** A tab: its segment, and the store that all tabs share. */
function tab(name, store) {
  const unit = given();
  return {
    unit,
    write(text, busy) {
      write(unit, text);
      store.kept = merge(record(unit, name), store.kept);
      happen(unit, "settle", {record: store.kept});
      return store.kept;
    },
    hear: (kept, busy) => happen(unit, "adopt", {record: structuredClone(kept), busy}),
  };
}

test("two tabs that write one segment lose neither text, whether they hear each other or not", () => {
  for (const hears of [true, false]) {
    const store = {}, a = tab("a", store), b = tab("b", store);
    const first = a.write("de A");
    if (hears) b.hear(first, true);
    const second = b.write("de B");
    if (hears) a.hear(second, true);
    a.write("de A, et plus");
    const all = [store.kept.text, ...Object.values(store.kept.others)];
    assert.deepEqual(all.sort(), ["de A, et plus", "de B"], `hears: ${hears}`);
    assert.deepEqual([textOf(a.unit), textOf(b.unit)], ["de A, et plus", "de B"]);
  }
});

test("a tab that is elsewhere takes what the other has kept", () => {
  const store = {}, a = tab("a", store), b = tab("b", store);
  b.hear(a.write("de A"), false);
  assert.equal(textOf(b.unit), "de A");
  a.hear(b.write("de A et B"), false);
  assert.deepEqual([textOf(a.unit), Object.keys(store.kept.others)], ["de A et B", []]);
});

test("of two confirmed texts the later counts, and the other is not lost", () => {
  const own = {at: 0, ...record({...given(), confirmed: "A", confirmedAt: 1, version: 1}, "a")};
  const found = {at: 0, ...record({...given(), confirmed: "B", confirmedAt: 2, version: 2}, "b")};
  const kept = merge(own, found);
  assert.equal(kept.confirmed, "B");
  assert.ok([kept.text, ...Object.values(kept.others)].includes("A"));
});

test("what looks like a tag of the segment and is none is named, and other text is text", () => {
  const tags = ["<g1>", "</g1>", "<x2/>"], problem = (text, ofSegment = tags, words = "The vessel.") => tagProblem(text, ofSegment, words);
  for (const text of ["Le <g1>navire</g1><x2/>.", "a < b, c > d", "<stdio.h>", "<g>", "<b1>", "<tg1>", "<<g1>>", "&lt;g7>"]) {
    assert.equal(problem(text), "", text);
  }
  for (const tag of ["<g7>", "</g7>", "<x9/>", "<g1/>", "<x2>", "<g12>"]) {
    assert.equal(problem(`Le <g1>navire</g1> ${tag}.`), `${tag} is no tag of this segment; its tags: <g1>, </g1>, <x2/>.`);
  }
  assert.equal(problem("Nul <g9/>.", []), "<g9/> is no tag of this segment; its tags: none.");
  assert.equal(problem("Écrivez <g1>.", [], "Write <g1>."), "");
  assert.equal(problem("Écrivez <g1> <tg7>.", ["<tg1>", "</tg1>"], "Write <g1>."), "<tg7> is no tag of this segment; its tags: <tg1>, </tg1>.");
});

test("a sentence ends once", () => {
  assert.deepEqual(["30 days.", "numbers: 30", "Quoi ?"].map(sentence), ["30 days.", "numbers: 30.", "Quoi ?"]);
});

/** Numbers from 0 to 1 that a seed gives. */
function draws(seed) {
  let state = seed;
  return () => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return state / 2147483648;
  };
}

test("whatever happens in whatever order, the text last written is in the segment", () => {
  for (let seed = 1; seed <= 3000; seed++) {
    const draw = draws(seed), unit = given(), waiting = [];
    let last = "", ticket = 0;
    const events = {
      write: () => { if (write(unit, `${seed}.${draw()}`)) last = textOf(unit); },
      press: () => { if (happen(unit, "press", {text: textOf(unit), ticket: ++ticket})) waiting.push([ticket, textOf(unit)]); },
      accept: () => {
        const [number, target] = waiting.splice(Math.floor(draw() * waiting.length), 1)[0] ?? [0, ""];
        happen(unit, "accept", {ticket: number, target, at: ticket});
      },
      refuse: () => happen(unit, "refuse", {ticket: Math.ceil(draw() * ticket), reason: "no"}),
      revert: () => happen(unit, "revert", {confirmed: null, at: ticket}),
      again: () => { const kept = record(unit, "a"); restore(unit, kept); },
    };
    for (let step = 0; step < 30; step++) {
      const names = Object.keys(events);
      events[names[Math.floor(draw() * names.length)]]();
      assert.equal(textOf(unit), last, `seed ${seed}, step ${step}`);
    }
  }
});

test("keys are known by what they are, whatever the layout and Caps Lock", () => {
  const ctrl = (key, code) => keyOf({key, code, ctrlKey: true});
  assert.equal(ctrl("&", "Digit1"), "ctrl 1");  // French
  assert.equal(ctrl("+", "Digit1"), "ctrl 1");  // Czech
  assert.equal(ctrl("1", "Numpad1"), "ctrl 1");
  assert.equal(ctrl("End", "Numpad1"), "ctrl End");
  assert.equal(ctrl("K", "KeyK"), "ctrl k");  // Caps Lock
  assert.equal(ctrl("л", "KeyK"), "ctrl k");  // Russian
  assert.equal(ctrl("k", "KeyV"), "ctrl k");  // Dvorak
  assert.equal(ctrl("Enter", "NumpadEnter"), "ctrl Enter");
  assert.equal(keyOf({key: "Enter", code: "Enter", metaKey: true}), "ctrl Enter");
  assert.equal(keyOf({key: "Tab", code: "Tab", shiftKey: true}), "shift Tab");
});
