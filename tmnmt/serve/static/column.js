// The right column: the matches of the memories with where each is from, and what the file says of the segment.

import {chipsOf} from "./chips.js";
import {el, text as paragraph} from "./elements.js";
import {drawnTags} from "./marks.js";
import {drawMatches, pointOut} from "./offer.js";
import {panel} from "./panels.js";
import {phrase} from "./phrases.js";
import {plain, shown} from "./texts.js";

const $ = (id) => document.getElementById(id);
const TAKEN = [1, 2, 3, 4, 5];  // matches that a key takes

/** What is said of a segment beside its text: [name, text, language]; the language where it is a text of the document, which is then its elements. */
function factsOf(units, at, {source}) {
  const unit = units[at], beside = (other) => (other ? drawnTags(shown(other.source), chipsOf(other)) : []);
  const length = unit.max_length ? phrase("at most {limit} characters", {limit: unit.max_length}) : "";
  const facts = [
    [phrase("Not to be changed"), unit.problem], [phrase("Context"), unit.context],
    [phrase("Plural form"), unit.plural?.replace(/^plural form /, "")], ...unit.notes.map((note) => [phrase("Note"), note]),
    [phrase("Id"), unit.id], [phrase("Length"), length], [phrase("Before it"), beside(units[at - 1]), source],
    [phrase("Behind it"), beside(units[at + 1]), source],
  ];
  return facts.filter(([, text]) => text?.length);
}

panel((desk) => {
  let offer = null;

  desk.on("at", ({at}) => {
    const {units, session} = desk.open;
    $("facts").replaceChildren(...factsOf(units, at, session).flatMap(([name, text, language]) => [
      el("dt", "", name), language ? paragraph("dd", language, ...text) : el("dd", "", text),
    ]));
  });
  desk.on("offer", (told) => {
    offer = told.offer;
    if (offer) drawMatches($("matches"), offer, plain(desk.unit.source), desk.open.session, (text) => desk.editor.replace(text));
    else $("matches").replaceChildren();
  });
  desk.on("word", ({word}) => pointOut($("matches"), offer, word));
  const take = (number) => {
    const match = offer?.matches[number - 1];
    if (match && desk.unit && !desk.isLocked) desk.editor.replace(match.tgt);
  };
  for (const number of TAKEN) desk.action({keys: [`ctrl ${number}`], work: () => take(number)});
});
