// How far the document is, in words.

import {panel} from "./panels.js";
import {phrase} from "./phrases.js";
import {stateOf} from "./segments.js";

const $ = (id) => document.getElementById(id);
const READY = new Set(["translated", "reviewed", "approved"]);

/** {segments, words: {all, ready, draft}, ready}: of what is not locked. */
export function progressOf(units) {
  const sum = {segments: 0, ready: 0, words: {all: 0, ready: 0, draft: 0}};
  for (const unit of units) {
    const state = stateOf(unit);
    if (state === "locked") continue;
    const isReady = READY.has(state);
    sum.segments++;
    sum.ready += isReady;
    sum.words.all += unit.words;
    if (isReady) sum.words.ready += unit.words;
    else if (state === "draft" || state === "confirming") sum.words.draft += unit.words;
  }
  return sum;
}

panel((desk) => {
  let isPlanned = false;
  const draw = () => {
    isPlanned = false;
    const {segments, ready, words} = progressOf(desk.open.units);
    $("progress").max = words.all || 1;
    $("progress").value = words.ready;
    $("words").textContent = phrase("{ready} of {count} words", {ready: words.ready, count: words.all});
    $("words").title = words.draft ? phrase("{count} words stand in drafts", {count: words.draft}) : "";
    $("count").textContent = phrase("{ready} of {segments}", {ready, segments});
    $("undo").disabled = !desk.open.units.some((unit) => unit.confirmed !== null);
    $("save").classList.toggle("main", ready === segments);
  };
  desk.on("opened", draw);
  desk.on("unit", () => {
    if (isPlanned) return;
    isPlanned = true;
    queueMicrotask(draw);  // once for all that came together
  });
});
