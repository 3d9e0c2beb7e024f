// What a reviewer reads, without a page: run by test_segments.py, with the folder of the page's scripts.

import assert from "node:assert/strict";
import {test} from "node:test";
import {pathToFileURL} from "node:url";

const folder = pathToFileURL(process.env.TMNMT_PAGE + "/").href;
const {formerOf, ordered, presentOf, rates, rowsOf, wanted} = await import(`${folder}reading.js`);

const segment = (number, more = {}) => ({
  number, source: `Text ${number}.`, file: {target: null, state: "new"}, text: null, confirmed: `Texte ${number}.`, state: "translated",
  quality: null, checks: [], by: "anna", ...more,
});
const numbers = (rows) => rows.map((row) => row.segment.number);

test("a row has what was suggested last for its segment", () => {
  const reviews = [
    {segment: "2", suggested: "Un.", edits: 1, tokens: 2, by: "anna"}, {segment: "2", suggested: "Deux.", edits: 0, tokens: 2, by: "ben"},
    {segment: null, suggested: "Rien.", edits: 9, tokens: 9, by: ""},
  ];
  const rows = rowsOf([segment(1), segment(2), segment(3, {source: "<x1/>"})], reviews);
  assert.deepEqual(numbers(rows), [1, 2]);
  assert.deepEqual([rows[0].suggested, rows[1].suggested, rows[1].edits, rows[1].by], [null, "Deux.", 0, "ben"]);
});

test("what needs to be read most comes first", () => {
  const found = [{name: "numbers", what: "3", ignored: null}], aside = [{...found[0], ignored: "as the client wants it"}];
  const rows = rowsOf([
    segment(1, {quality: 0.9}), segment(2), segment(3, {quality: 0.2}), segment(4, {checks: found}), segment(5, {checks: aside, quality: 0.5}),
  ], []);
  assert.deepEqual(numbers(ordered(rows, "need")), [4, 3, 5, 1, 2]);
  assert.deepEqual(numbers(ordered(rows, "place")), [1, 2, 3, 4, 5]);
  assert.deepEqual(numbers(wanted(rows, "issues", "place")), [4]);
  assert.deepEqual(numbers(rows), [1, 2, 3, 4, 5]);
});

test("rows are those that a person wants to see", () => {
  const rows = rowsOf([
    segment(1), segment(2, {state: "reviewed"}), segment(3, {state: "draft", text: "Texte"}), segment(4, {state: "locked"}),
  ], [{segment: "2", suggested: "Mot.", edits: 2, tokens: 3, by: "anna"}]);
  assert.deepEqual(numbers(wanted(rows, "unread", "place")), [1]);
  assert.deepEqual(numbers(wanted(rows, "changed", "place")), [2]);
  assert.deepEqual(numbers(wanted(rows, "open", "place")), [3]);
  assert.equal(presentOf(rows[2].segment), "Texte");
});

test("the former version is another text than the present one", () => {
  const history = [{text: null, confirmed: "Texte 1."}, {text: "Mot 1.", confirmed: null}, {text: null, confirmed: "Un."}];
  assert.equal(formerOf(segment(1), history), "Mot 1.");
  assert.equal(formerOf(segment(1, {file: {target: "Du fichier.", state: "new"}}), []), "Du fichier.");
  assert.equal(formerOf(segment(1), history.slice(0, 1)), null);
});

test("edit rates are of all that one person or file has", () => {
  const entries = [
    {by: "anna", suggested: "a", edits: 1, tokens: 4}, {by: "ben", suggested: "b", edits: 3, tokens: 3}, {by: "anna", suggested: "c", edits: 1, tokens: 4},
    {by: "anna", suggested: null, edits: 5, tokens: 5},
  ];
  assert.deepEqual(rates(entries, ({by}) => by), [{key: "ben", segments: 1, rate: 1}, {key: "anna", segments: 2, rate: 0.25}]);
});
