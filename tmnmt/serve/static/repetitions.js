// Segments with the same source: confirmed together, and shown where they differ.

import {chipsOf} from "./chips.js";
import {el, text as paragraph} from "./elements.js";
import {drawnTags} from "./marks.js";
import {panel} from "./panels.js";
import {phrase} from "./phrases.js";
import {isConfirmed, textOf} from "./segments.js";

const $ = (id) => document.getElementById(id);
const MOST = 5;  // other translations that are shown

/** The places of the segments with the same source, by that of each that has any: Map of [at, …]. */
export function groupsOf(units) {
  const groups = new Map();
  units.forEach(({repeats, number}, at) => {
    const first = (repeats ?? number) - 1;
    if (!groups.has(first)) groups.set(first, []);
    groups.get(first).push(at);
  });
  return new Map([...groups.values()].filter((group) => group.length > 1).flatMap((group) => group.map((at) => [at, group])));
}

/** Other confirmed texts of a segment's repetitions: [{text, places}], those of most places first. */
export function differing(units, group, at) {
  const texts = new Map();
  for (const place of group) {
    const unit = units[place], text = textOf(unit);
    if (place !== at && isConfirmed(unit) && text !== textOf(units[at])) texts.set(text, (texts.get(text) ?? []).concat(place));
  }
  return [...texts].map(([text, places]) => ({text, places})).sort((one, other) => other.places.length - one.places.length);
}

panel((desk) => {
  let groups = new Map();
  const draw = () => {
    const {at, units} = desk.open, group = groups.get(at);
    $("repeats").hidden = !group;
    $("differs").hidden = true;
    if (!group) return;
    $("repeat-count").textContent = phrase("its {count} repetitions", {count: group.length - 1});
    const found = isConfirmed(units[at]) ? differing(units, group, at) : [];
    $("differs").hidden = !found.length;
    $("differs").replaceChildren(...found.slice(0, MOST).map((other) => line(other)));
  };
  const line = ({text, places}) => {
    const use = el("button", "", phrase("Use")), go = el("button", "", phrase("Segment {number}", {number: places[0] + 1}));
    use.type = go.type = "button";
    use.addEventListener("click", () => desk.editor.replace(text));
    go.addEventListener("click", () => desk.go(places[0]));
    return el("li", "", el("span", "quiet", phrase("Differs here:")), paragraph("span", desk.open.session.target, ...drawnTags(text, chipsOf(desk.unit))), go, use);
  };
  const dirty = new Set();  // groups in which something was confirmed or taken back
  const mark = () => {
    for (const group of dirty) {
      const confirmed = group.filter((at) => isConfirmed(desk.open.units[at]));
      const isMixed = new Set(confirmed.map((at) => textOf(desk.open.units[at]))).size > 1;
      for (const at of group) desk.mark(at, "differs", isMixed && isConfirmed(desk.open.units[at]));
    }
    dirty.clear();
  };
  const known = new Map();  // what was confirmed, by place
  const note = (at) => {
    const group = groups.get(at), {state} = desk.open.units[at], confirmed = isConfirmed(desk.open.units[at]) ? desk.open.units[at].confirmed : null;
    if (!group || state === "confirming" || known.get(at) === confirmed) return;
    known.set(at, confirmed);
    if (!dirty.size) queueMicrotask(mark);  // once for all that came together
    dirty.add(group);
  };
  desk.on("opened", () => {
    groups = groupsOf(desk.open.units);
    for (const at of groups.keys()) if (isConfirmed(desk.open.units[at])) note(at);
  });
  desk.on("at", draw);
  desk.on("unit", ({at}) => {
    note(at);
    if (desk.unit && groups.get(desk.open.at)?.includes(at)) draw();
  });
});
