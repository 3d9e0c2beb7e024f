// The machine of a segment without a page: run by test_segments.py, with the folder of the page's scripts.

import assert from "node:assert/strict";
import {test} from "node:test";
import {pathToFileURL} from "node:url";

const folder = pathToFileURL(process.env.TMNMT_PAGE + "/").href;
const {happen, isConfirmed, isSeen, segment, stateOf, textOf, unsent} = await import(`${folder}segments.js`);
const {sentence, tagProblem} = await import(`${folder}texts.js`);
const {keyOf} = await import(`${folder}keys.js`);

/** A record of the server, as of a segment that nobody has touched. */
const record = (more = {}) => ({
  number: 1, source: "All is void.", file: {target: null, state: "new"}, text: null, confirmed: null, state: "untouched",
  version: 1, by: "", checks: [], comments: [], ...more,
});
const given = (more = {}) => segment(record(more));
const confirmed = (text, version, more = {}) => record({confirmed: text, state: "translated", version, by: "you", ...more});
const draft = (text, version, more = {}) => record({text, state: "draft", version, by: "you", ...more});
const write = (unit, text) => happen(unit, "write", {text});
const press = (unit, ticket = 1) => happen(unit, "press", {text: textOf(unit), ticket});
const accept = (unit, ticket, text, version = unit.version + 1) => happen(unit, "accept", {ticket, record: confirmed(text, version)});

test("a segment goes from untouched to translated", () => {
  const unit = given();
  assert.equal(stateOf(unit), "new");
  write(unit, "Nul.");
  assert.equal(stateOf(unit), "draft");
  assert.ok(press(unit));
  assert.equal(stateOf(unit), "confirming");
  assert.ok(accept(unit, 1, "Nul."));
  assert.deepEqual([stateOf(unit), textOf(unit), unit.text, unit.confirmed, unit.isUnsent], ["translated", "Nul.", null, "Nul.", false]);
});

test("a segment is as the server has it", () => {
  assert.deepEqual([stateOf(given({text: "a &amp; b"})), textOf(given({text: "a &amp; b"}))], ["draft", "a & b"]);
  for (const state of ["translated", "reviewed", "approved"]) assert.equal(stateOf(given({confirmed: "Nul.", state})), state);
  assert.equal(stateOf(given({file: {target: "Nul.", state: "translated"}})), "translated");
  assert.equal(isConfirmed(given({file: {target: "Nul.", state: "translated"}})), false);
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
  assert.equal(accept(unit, 1, "Nul."), false);
  press(unit, 2);
  assert.equal(accept(unit, 1, "Nul."), false);
  assert.equal(happen(unit, "refuse", {ticket: 1, reason: "no"}), false);
  assert.equal(stateOf(unit), "confirming");
});

test("what is written while a request is under way stays a draft", () => {
  const unit = given();
  write(unit, "Nul.");
  press(unit);
  write(unit, "Nul. Et plus.");
  assert.equal(stateOf(unit), "confirming");
  accept(unit, 1, "Nul.");
  assert.deepEqual([stateOf(unit), unit.confirmed, textOf(unit), unit.isUnsent], ["draft", "Nul.", "Nul. Et plus.", true]);
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
  const other = given();
  write(other, "Nul.");
  happen(other, "fly");
  write(other, "Nul 3.");
  happen(other, "land", {record: draft("Nul.", 2, {checks: [{name: "numbers", what: "3"}]})});
  assert.deepEqual(other.checks, []);
});

test("what is taken back is a draft, and a draft over it stays", () => {
  const taken = given();
  write(taken, "Nul.");
  press(taken);
  accept(taken, 1, "Nul.", 2);
  happen(taken, "revert", {record: draft("Nul.", 3)});
  assert.deepEqual([stateOf(taken), textOf(taken), taken.confirmed, taken.isUnsent], ["draft", "Nul.", null, false]);
  const unit = given();
  write(unit, "Nul.");
  press(unit);
  accept(unit, 1, "Nul.", 2);
  write(unit, "Autre.");
  happen(unit, "revert", {record: draft("Nul.", 3)});
  assert.deepEqual([stateOf(unit), textOf(unit), unit.confirmed, unit.isUnsent], ["draft", "Autre.", null, true]);
});

test("a locked segment takes nothing", () => {
  const unit = given({state: "locked", file: {target: "Nul.", state: "locked"}});
  for (const event of ["write", "press", "revert", "conflict", "restore", "leave"]) {
    assert.equal(happen(unit, event, {text: "x", ticket: 1, record: draft("x", 2), version: 1}), false);
  }
  assert.equal(textOf(unit), "Nul.");
});

test("only a person takes a draft away, and the server is told so", () => {
  const unit = given({file: {target: "Nul.", state: "translated"}});
  write(unit, "Autre.");
  write(unit, "Nul.");
  assert.deepEqual([stateOf(unit), textOf(unit), unsent(unit)], ["translated", "Nul.", {text: null, version: 1, others: []}]);
});

test("a draft that the server has taken need not be kept here", () => {
  const unit = given();
  write(unit, "Nul.");
  assert.deepEqual(unsent(unit), {text: "Nul.", version: 1, others: []});
  happen(unit, "fly");
  write(unit, "Nul. Et");
  happen(unit, "land", {record: draft("Nul.", 2)});
  assert.deepEqual([textOf(unit), unsent(unit)], ["Nul. Et", {text: "Nul. Et", version: 2, others: []}]);
  happen(unit, "fly");
  happen(unit, "land", {record: draft("Nul. Et", 3)});
  assert.deepEqual([textOf(unit), unsent(unit), unit.version], ["Nul. Et", null, 3]);
});

test("what the browser has kept comes back, beside what others wrote since", () => {
  const same = given({version: 4});
  happen(same, "restore", {text: "Nul.", version: 4, others: []});
  assert.deepEqual([textOf(same), same.isUnsent, same.others], ["Nul.", true, []]);
  const other = given({version: 5, text: "de B", by: "B"});
  happen(other, "restore", {text: "de A", version: 4, others: []});
  assert.deepEqual([textOf(other), other.isUnsent, other.others], ["de A", true, [{by: "B", text: "de B"}]]);
  const gone = given({text: "Nul."});
  happen(gone, "restore", {text: null, version: 1, others: []});
  assert.deepEqual([textOf(gone), gone.isUnsent], ["", true]);
});

test("a draft that somebody was quicker with stays, and the other's stands beside it", () => {
  const unit = given();
  write(unit, "de A");
  happen(unit, "fly");
  happen(unit, "conflict", {record: draft("de B", 2, {by: "B"})});
  assert.deepEqual([textOf(unit), unit.isUnsent, unit.version, unit.others], ["de A", true, 2, [{by: "B", text: "de B"}]]);
  write(unit, "de B");
  assert.deepEqual(unit.others, []);
});

test("who writes nothing sees what others write, and who has a text before their eyes keeps it", () => {
  const reader = given();
  happen(reader, "adopt", {record: draft("de B", 2, {by: "B"}), isBusy: true});
  assert.deepEqual([textOf(reader), reader.others], ["de B", []]);
  const writer = given({text: "de A", state: "draft"});
  happen(writer, "adopt", {record: draft("de B", 2, {by: "B"}), isBusy: true});
  assert.deepEqual([textOf(writer), writer.others], ["de A", [{by: "B", text: "de B"}]]);
  happen(writer, "leave");
  assert.deepEqual([textOf(writer), writer.others], ["de B", [{by: "B", text: "de B"}, {by: "", text: "de A"}].slice(1)]);
});

test("one's own change that the server tells of is nobody else's", () => {
  const unit = given();
  write(unit, "de A");
  happen(unit, "fly");
  write(unit, "de A, et plus");
  happen(unit, "adopt", {record: draft("de A", 2), isBusy: true});
  assert.deepEqual([textOf(unit), unit.others, unit.isUnsent], ["de A, et plus", [], true]);
  press(unit);
  happen(unit, "adopt", {record: confirmed("de A, et plus", 3), isBusy: true});
  assert.deepEqual([textOf(unit), unit.others], ["de A, et plus", []]);
});

test("an older record than the one that is known changes nothing", () => {
  const unit = given({version: 3, text: "neuf"});
  assert.equal(happen(unit, "adopt", {record: draft("vieux", 2)}), false);
  assert.equal(textOf(unit), "neuf");
});

test("a confirmation whose answer was lost is known from the changes", () => {
  const unit = given();
  write(unit, "Nul.");
  press(unit);
  happen(unit, "refuse", {ticket: 1, reason: "no answer"});
  happen(unit, "adopt", {record: confirmed("Nul.", 2), isBusy: true});
  assert.deepEqual([stateOf(unit), textOf(unit), unsent(unit)], ["translated", "Nul.", null]);
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

test("whatever happens in whatever order, the text last written here is in the segment, or beside it once it was left", () => {
  for (let seed = 1; seed <= 3000; seed++) {
    const draw = draws(seed), waiting = [];
    let unit = given(), last = "", ticket = 0, version = 1, server = {text: null, confirmed: null}, flight = null;
    const now = () => record({...server, state: server.text !== null ? "draft" : server.confirmed !== null ? "translated" : "untouched", version, by: "B"});
    const events = {
      write: () => { if (write(unit, `${seed}.${draw()}`)) last = textOf(unit); },
      press: () => { if (happen(unit, "press", {text: textOf(unit), ticket: ++ticket})) waiting.push([ticket, textOf(unit)]); },
      accept: () => {
        const [number, target] = waiting.splice(Math.floor(draw() * waiting.length), 1)[0] ?? [0, ""];
        if (number && number === unit.ticket && unit.state === "confirming") {
          version++;
          server = {text: null, confirmed: target};
        }
        happen(unit, "accept", {ticket: number, record: {...now(), by: "you"}});
      },
      refuse: () => happen(unit, "refuse", {ticket: Math.ceil(draw() * ticket), reason: "no"}),
      fly: () => { if (flight === null && unit.isUnsent && happen(unit, "fly")) flight = {text: unit.text, version: unit.version}; },
      arrive: () => {
        if (flight === null) return;
        if (flight.version === version) {
          version++;
          server = {...server, text: flight.text};
          happen(unit, "land", {record: {...now(), by: "you"}});
        } else happen(unit, "conflict", {record: now()});
        flight = null;
      },
      lose: () => { if (flight !== null) { happen(unit, "drop"); flight = null; } },
      other: () => {
        version++;
        server = draw() < 0.5 ? {...server, text: `B ${draw()}`} : {text: null, confirmed: `B ${draw()}`};
      },
      hear: () => happen(unit, "adopt", {record: now(), isBusy: true}),
      again: () => {  // the page is opened anew
        if (unit.state === "confirming") return;
        const kept = unsent(unit);
        const stays = kept !== null && kept.text !== undefined;
        unit = segment(now());
        flight = null;
        waiting.length = 0;
        if (kept) happen(unit, "restore", structuredClone(kept));
        if (!stays) last = textOf(unit);  // the server had it, and its history has it
      },
    };
    for (let step = 0; step < 40; step++) {
      const names = Object.keys(events), name = names[Math.floor(draw() * names.length)];
      events[name]();
      if (isConfirmed(unit)) last = "";  // the server has it
      else if (!last.startsWith(`${seed}.`)) last = textOf(unit);
      else assert.equal(textOf(unit), last, `seed ${seed}, step ${step}, ${name}`);
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
