// Changes of links without a page: run by test_alignment.py, with the folder of the page's scripts.

import assert from "node:assert/strict";
import {test} from "node:test";
import {pathToFileURL} from "node:url";

const folder = pathToFileURL(process.env.TMNMT_PAGE + "/").href;
const {boundaryDown, boundaryUp, changed, decide, isDoubtful, merge, split, stretches} = await import(`${folder}links.js`);

const link = (sources, targets, probability = 0.5) => ({sources, targets, probability, decision: ""});
const sides = (links) => links.map(({sources, targets}) => [sources, targets]);
const after = (links, edit) => sides(changed(links, edit)[0]);

test("two links become one, in the order of the sentences, and are accepted", () => {
  const crossed = [link([0], [1]), link([1], [0]), link([2], [2])];
  const [links] = changed(crossed, merge(crossed, 0));
  assert.deepEqual(sides(links), [[[0, 1], [0, 1]], [[2], [2]]]);
  assert.deepEqual([links[0].decision, links[0].probability], ["accepted", 1]);
  assert.equal(merge(crossed, 2), null);
});

test("a link is split at its last sentences", () => {
  assert.deepEqual(after([link([0, 1], [0])], split([link([0, 1], [0])], 0)), [[[0], [0]], [[1], []]]);
  assert.deepEqual(after([link([0], [0, 1])], split([link([0], [0, 1])], 0)), [[[0], [0]], [[], [1]]]);
  assert.deepEqual(after([link([0, 1], [0, 1])], split([link([0, 1], [0, 1])], 0)), [[[0], [0]], [[1], [1]]]);
  assert.deepEqual(after([link([0], [0])], split([link([0], [0])], 0)), [[[0], []], [[], [0]]]);
  assert.equal(split([link([0], [])], 0), null);
});

test("a boundary moves by one sentence of one side", () => {
  const links = [link([0, 1], [0]), link([2], [1])];
  assert.deepEqual(after(links, boundaryUp(links, 0, "sources")), [[[0], [0]], [[1, 2], [1]]]);
  assert.deepEqual(after(links, boundaryDown(links, 0, "sources")), [[[0, 1, 2], [0]], [[], [1]]]);
  assert.deepEqual(after(links, boundaryDown(links, 0, "targets")), [[[0, 1], [0, 1]], [[2], []]]);
  assert.equal(boundaryDown(links, 1, "sources"), null);
  assert.deepEqual(after(links, boundaryUp(links, 1, "targets")), [[[0, 1], [0]], [[2], []], [[], [1]]]);
  const lone = [link([], [0]), link([0], [])];
  assert.deepEqual(after(lone, boundaryDown(lone, 0, "sources")), [[[0], [0]]]);
});

test("every change is taken back exactly", () => {
  const links = [link([0, 1], [0], 0.4), link([2], [1], 0.95), link([], [2], 0.7)];
  for (const edit of [
    merge(links, 0), split(links, 0), boundaryUp(links, 0, "sources"), boundaryDown(links, 0, "targets"),
    decide(links, 1, "dropped"), boundaryUp(links, 2, "targets"),
  ]) {
    if (!edit) continue;
    const [others, back] = changed(links, edit);
    assert.deepEqual(changed(others, back)[0], links);
  }
});

test("what was decided once more is undecided", () => {
  const dropped = changed([link([0], [0])], decide([link([0], [0])], 0, "dropped"))[0];
  assert.equal(dropped[0].decision, "dropped");
  assert.equal(isDoubtful(dropped[0], 0.9), false);
  assert.equal(changed(dropped, decide(dropped, 0, "dropped"))[0][0].decision, "");
});

test("doubtful stretches have their neighbours, and the most doubtful comes first", () => {
  const of = (...probabilities) => probabilities.map((probability, at) => link([at], [at], probability));
  assert.deepEqual(stretches(of(1, 0.8, 1, 1, 1, 1, 0.2, 1), 0.9), [[5, 8], [0, 3]]);
  assert.deepEqual(stretches(of(0.8, 1, 0.3, 1, 1), 0.9), [[0, 4]]);
  assert.deepEqual(stretches(of(1, 1), 0.9), []);
});
