// Which segments a person wants to see, and what becomes of words that are replaced: run by test_segments.py, with the
// folder of the page's scripts.

import assert from "node:assert/strict";
import {test} from "node:test";
import {pathToFileURL} from "node:url";

const folder = pathToFileURL(process.env.TMNMT_PAGE + "/").href;
const {NOTHING, conditionOf, isEmpty, replacementIn} = await import(`${folder}conditions.js`);
const {finderOf} = await import(`${folder}pattern.js`);
const {segment} = await import(`${folder}segments.js`);
const {sliced} = await import(`${folder}slices.js`);

const given = (more = {}) => segment({
  number: 1, source: "The permit is void.", file: {target: null, state: "new"}, state: "untouched", version: 1, ...more,
});
const units = [
  given(), given({confirmed: "Le permis est nul.", state: "translated", origin: "person"}),
  given({text: "Permis &amp; 3", state: "draft", origin: "memory", match: 83}),
  given({source: "All 3.", confirmed: "Tous", state: "approved", origin: "model", checks: [{name: "numbers", what: "3", ignored: null}]}),
  given({source: "Yes.", confirmed: "Oui.", state: "reviewed", origin: "adapted", match: 100, checks: [{name: "ends", what: ".", ignored: "as wanted"}]}),
  given({source: "No.", file: {target: "Non.", state: "locked"}, state: "locked"}),
];
const shown = (conditions) => {
  const isWanted = conditionOf(conditions);
  return units.flatMap((unit, at) => (isWanted(unit) ? [at] : []));
};

test("segments are shown of which all conditions are true", () => {
  assert.deepEqual(shown({text: "permit"}), [0, 1, 2]);
  assert.deepEqual(shown({text: "permis"}), [1, 2]);
  assert.deepEqual(shown({text: "permis", side: "source"}), []);
  assert.deepEqual(shown({text: "permi", side: "target", hasCase: true}), [1]);
  assert.deepEqual(shown({text: "& \\d$", isPattern: true}), [2]);
  assert.deepEqual(shown({state: "unready"}), [0, 2]);
  assert.deepEqual(shown({state: "approved"}), [3]);
  assert.deepEqual(shown({state: "locked"}), [5]);
  assert.deepEqual(shown({issue: "any"}), [3]);
  assert.deepEqual(shown({issue: "numbers"}), [3]);
  assert.deepEqual(shown({issue: "ends"}), []);
  assert.deepEqual(shown({issue: "none"}), [0, 1, 2, 4, 5]);
  assert.deepEqual(shown({least: 75}), [2, 4]);
  assert.deepEqual(shown({least: 75, most: 99}), [2]);
  assert.deepEqual(shown({most: 50}), [0, 1, 3, 5]);
  assert.deepEqual(shown({origin: "model"}), [3]);
  assert.deepEqual(shown({origin: "memory", text: "permis", state: "draft"}), [2]);
  assert.deepEqual(shown({}), [0, 1, 2, 3, 4, 5]);
  assert.throws(() => conditionOf({text: "(", isPattern: true}), /not closed/);
});

test("conditions that ask nothing are empty", () => {
  assert.ok(isEmpty(NOTHING) && isEmpty({...NOTHING, side: "target", hasCase: true}));
  assert.ok(!isEmpty({...NOTHING, least: 0}) && !isEmpty({...NOTHING, state: "draft"}));
});

test("words are replaced, and tags, locked segments and those under way stay", () => {
  const finder = finderOf("g1");
  const tagged = given({source: "<g1>g1</g1>", confirmed: "<g1>g1</g1> g1", state: "translated"});
  assert.deepEqual(replacementIn(tagged, finder, "x2"), {before: "<g1>g1</g1> g1", after: "<g1>x2</g1> x2", count: 2});
  assert.equal(replacementIn(given({file: {target: "g1", state: "locked"}, state: "locked"}), finder, "x"), null);
  assert.equal(replacementIn({...tagged, state: "confirming"}, finder, "x"), null);
  assert.equal(replacementIn(tagged, finderOf("nothing"), "x"), null);
  assert.equal(replacementIn(tagged, finder, "g1"), null);
  const across = finderOf("(\\w+) (\\w+)", {isPattern: true});
  assert.equal(replacementIn(given({text: "a b, c d", state: "draft"}), across, "$2 $1").after, "b a, d c");
  assert.equal(replacementIn(tagged, finderOf("g1</g1>"), "x"), null);
  assert.equal(replacementIn(given({text: "a &amp; b", state: "draft"}), finderOf("&"), "<").after, "a < b");
  assert.equal(replacementIn(given({text: "ab", state: "draft"}), finderOf("x*", {isPattern: true}), "-"), null);
});

test("long work is done in slices and given up where nobody wants it any more", async () => {
  assert.deepEqual(await sliced(3, (at) => 2 * at), [0, 2, 4]);
  const end = new AbortController();
  let count = 0;
  const slow = () => {
    const until = performance.now() + 1;
    while (performance.now() < until);
    if (++count === 30) end.abort();
  };
  assert.equal(await sliced(1000, slow, end.signal), null);
  assert.ok(count < 1000);
});
