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
const called = (name) => (name === "you" ? phrase("another tab") : name);

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
    for (const {name, number} of people) if (number !== null) at.set(number - 1, [...at.get(number - 1) ?? [], called(name)]);
    for (const place of new Set([...marked, ...at.keys()])) desk.mark(place, "people", at.get(place)?.join(", ") ?? "");
    marked = new Set(at.keys());
  };
  desk.on("people", ({people}) => {
    mark(people);
    const elsewhere = people.map(({name, number}) => (number === null ? called(name) : phrase("{person} in segment {number}", {person: called(name), number})));
    $("people").textContent = people.length ? phrase("Also here: {people}", {people: elsewhere.join(", ")}) : "";
    $("people").hidden = !people.length;
  });
  const tellHere = () => {
    const here = desk.unit ? desk.people.filter(({number}) => number === desk.open.at + 1) : [];
    $("here").textContent = here.length ? phrase("{people} are at work in this segment, too.", {count: here.length, people: here.map(({name}) => called(name)).join(", ")}) : "";
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
