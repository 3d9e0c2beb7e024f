// Who else is in the document, and what others have written where this person writes, too.

import {chipsOf} from "./chips.js";
import {el, text as paragraph} from "./elements.js";
import {drawnTags} from "./marks.js";
import {panel} from "./panels.js";
import {phrase} from "./phrases.js";
import {happen} from "./segments.js";

const $ = (id) => document.getElementById(id);

/** Who a record tells of, to a person. */
const writer = (by) => (by === "" ? phrase("You wrote, before somebody else changed it:") : by === "you" ? phrase("In another tab or browser:") : phrase("{person} has written:", {person: by}));
const isTab = ({name}) => name === "you";
const called = ({name}) => (isTab({name}) ? phrase("another tab") : name);
/** The names of people, other tabs of this person together. */
const namesOf = (people) => {
  const tabs = people.filter(isTab).length, others = people.filter((one) => !isTab(one)).map(called);
  return [...others, ...(tabs ? [tabs > 1 ? phrase("{count} other tabs", {count: tabs}) : phrase("another tab")] : [])].join(", ");
};

panel((desk) => {
  const draw = () => {
    const {unit} = desk;
    $("others").hidden = !unit.others.length;
    $("others").replaceChildren(...unit.others.map((other) => line(desk, unit, other)));
  };
  desk.on("at", draw);
  desk.on("unit", ({at}) => { if (at === desk.open.at) draw(); });
  let marked = new Set();
  const mark = (people) => {
    const at = new Map();
    for (const one of people) if (one.number !== null) at.set(one.number - 1, [...at.get(one.number - 1) ?? [], one]);
    for (const place of new Set([...marked, ...at.keys()])) desk.mark(place, "people", namesOf(at.get(place) ?? []));
    marked = new Set(at.keys());
  };
  desk.on("people", ({people}) => {
    mark(people);
    const elsewhere = people.map((one) => (one.number === null ? called(one) : phrase("{person} in segment {number}", {person: called(one), number: one.number})));
    $("people").textContent = people.length ? phrase("Also here: {people}", {people: elsewhere.join(", ")}) : "";
    $("people").hidden = !people.length;
  });
  const tellHere = () => {
    const here = desk.unit ? desk.people.filter(({number}) => number === desk.open.at + 1) : [];
    $("here").textContent = here.length ? phrase("Also in this segment: {people}", {people: namesOf(here)}) : "";
    $("here").hidden = !here.length;
  };
  desk.on("at", tellHere);
  desk.on("people", tellHere);
});

function line(desk, unit, {by, text}) {
  const use = el("button", "", phrase("Use")), drop = el("button", "", phrase("Drop"));
  use.type = drop.type = "button";
  use.addEventListener("click", () => desk.editor.replace(text));
  drop.addEventListener("click", () => {
    happen(unit, "dropOther", {text});
    desk.changed(desk.open.at);
  });
  return el("li", "", el("span", "quiet", writer(by)), paragraph("span", desk.open.session.target, ...drawnTags(text, chipsOf(unit))), use, drop);
}
