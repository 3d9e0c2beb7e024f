// What stands in the field without a page: run by test_field.py, with the folder of the page's scripts.

import assert from "node:assert/strict";
import {test} from "node:test";
import {pathToFileURL} from "node:url";

const folder = pathToFileURL(process.env.TMNMT_PAGE + "/").href;
const {Chips} = await import(`${folder}chips.js`);
const {INVISIBLE, INSERTED, invisible} = await import(`${folder}invisible.js`);
const {parts} = await import(`${folder}marks.js`);
const {typeset} = await import(`${folder}typing.js`);

const SOURCE = "A <g1>b</g1> <x2/> <g3>c</g3>";
const FRENCH = ["«\u00a0", "\u00a0»"], GERMAN = ["„", "“"];

test("a text comes back with its tags, and each is one sign", () => {
  const chips = new Chips(SOURCE);
  for (const text of [SOURCE, "", "x", "<g1>", "</g1></g1><x2/>", "<g9> <b>", "𝒳<x2/>𝒳", "<<g1>>"]) {
    assert.equal(chips.tags(chips.signs(text)), text);
  }
  assert.equal([...chips.signs("<g1>b</g1><x2/>")].length, 4);
  assert.equal(chips.words(chips.signs(SOURCE)), "A b  c");
});

test("a sign that a text has stands for no tag", () => {
  const first = [...new Chips(SOURCE).signs("<g1>")][0];
  const chips = new Chips(`${SOURCE} ${first}`);
  assert.notEqual(chips.signs("<g1>"), first);
  assert.equal(chips.tags(first), first);
});

test("more tags than there are signs stay text, and none is lost", () => {
  const source = Array.from({length: 300}, (_, at) => `<x${at + 1}/>`).join(" ");
  const chips = new Chips(source);
  assert.equal(chips.tags(chips.signs(source)), source);
  assert.ok(chips.signs(source).includes("<x300/>") && !chips.signs(source).includes("<x1/>"));
});

test("what is missing comes in the order of the source", () => {
  const chips = new Chips("<x1/> <x2/> <x1/>");
  const named = (text) => chips.missing(chips.signs(text)).map((sign) => chips.of(sign).tag);
  assert.deepEqual(named(""), ["<x1/>", "<x2/>", "<x1/>"]);
  assert.deepEqual(named("<x1/>"), ["<x2/>", "<x1/>"]);
  assert.deepEqual(named("<x1/><x1/><x1/>"), ["<x2/>"]);
});

test("a pair is both halves, and none that is begun", () => {
  const chips = new Chips(SOURCE);
  const pair = (text) => chips.pair(chips.signs(text))?.map((sign) => chips.of(sign).tag) ?? null;
  assert.deepEqual(pair(""), ["<g1>", "</g1>"]);
  assert.deepEqual(pair("<g1>"), ["<g3>", "</g3>"]);
  assert.equal(pair("<g1></g1><g3></g3>"), null);
});

test("a tag that stands too often, or ends before it begins, is wrong", () => {
  const chips = new Chips(SOURCE);
  const wrong = (text) => {
    const signs = chips.signs(text);
    return [...chips.wrong(signs)].map((at) => `${at}${chips.of(String.fromCodePoint(signs.codePointAt(at))).tag}`);
  };
  assert.deepEqual(wrong("a <g1>b</g1> <x2/>"), []);
  assert.deepEqual(wrong("<g1>"), []);  // its end may come
  assert.deepEqual(wrong("</g1><g1>"), ["0</g1>"]);
  assert.deepEqual(wrong("<x2/><x2/>"), ["2<x2/>"]);
});

test("a chip says what it is in the file", () => {
  const chips = new Chips(SOURCE, "<x4/>", {"<g1>": "<b>", "<x4/>": "<br/>"});
  const told = (tag) => chips.of(chips.signs(tag)).told;
  assert.equal(told("<g1>"), "start of tag 1: <b>");
  assert.equal(told("</g1>"), "end of tag 1");
  assert.equal(told("<x4/>"), "tag 4: <br/>");
  assert.equal(chips.spoken(chips.signs("a <g1>b")), "a  (start of tag 1: <b>) b");
});

test("a tag that is written out is found, the first one first", () => {
  const chips = new Chips(SOURCE);
  assert.deepEqual(chips.written("a </g1> <g1>"), {at: 2, tag: "</g1>", sign: chips.signs("</g1>")});
  assert.equal(chips.written("a <g9> <g1"), null);
  assert.equal(new Chips("").written("<g1>"), null);
});

test("the parts of a text are the text", () => {
  const chips = new Chips(SOURCE), text = chips.signs(`a\u00a0${SOURCE} 𝒳\u200eb`);
  for (const areShown of [false, true]) {
    const found = parts(text, chips, areShown);
    assert.equal(found.map((part) => part.text).join(""), text);
    for (const part of found) assert.ok(text.startsWith(part.text, part.at));
    assert.equal(found.some((part) => part.invisible?.name === "no-break space"), areShown);
  }
});

test("each invisible sign stands in the list once, and is one character", () => {
  assert.equal(new Set(INVISIBLE.map((one) => one.sign)).size, INVISIBLE.length);
  assert.equal(new Set(INSERTED.map((one) => one.letter)).size, INSERTED.length);
  for (const one of INVISIBLE) assert.ok(one.sign.length === 1 && one.name && one.mark && invisible(one.sign) === one);
});

test("quotes open and close as the language has them", () => {
  const typed = (text, quotes) => [...text].reduce((before, sign) => before + typeset(sign, before, quotes), "");
  assert.equal(typed('Il dit "oui" et "non".', FRENCH), "Il dit «\u00a0oui\u00a0» et «\u00a0non\u00a0».");
  assert.equal(typed('Er sagt ("ja"), "nein".', GERMAN), "Er sagt („ja“), „nein“.");
  assert.equal(typed('"Yes," he said', ["“", "”"]), "“Yes,” he said");
  assert.equal(typed('"Ja"', ["”", "”"]), "”Ja”");  // as in Swedish
  assert.equal(typed('"Ja"', null), '"Ja"');
});

test("what is no quotation stays straight", () => {
  const typed = (text) => [...text].reduce((before, sign) => before + typeset(sign, before, FRENCH), "");
  assert.equal(typed('un écran de 5"'), 'un écran de 5"');
  assert.equal(typed(`<a href="x" title='y'>`), `<a href="x" title='y'>`);
  assert.equal(typed("3 < 4 \"x\""), "3 < 4 «\u00a0x\u00a0»");
});

test("an apostrophe stands behind a letter", () => {
  const typed = (text) => [...text].reduce((before, sign) => before + typeset(sign, before, FRENCH), "");
  assert.equal(typed("l'État d'une, '90, 5' e\u0301'a"), "l’État d’une, '90, 5' e\u0301’a");
});
