// Beside and below the field: the matches of the memories, what the file says of the segment, and terms that are added.

import {post} from "./api.js";
import {drawMatches, pointOut} from "./offer.js";
import {panel} from "./panels.js";
import {plain} from "./texts.js";

const $ = (id) => document.getElementById(id);

panel((desk) => {
  let offer = null;
  desk.on("opened", () => { $("add-term").hidden = desk.open.session.model === null; });
  desk.on("at", ({at}) => {
    const unit = desk.open.units[at];
    $("notes").textContent = [unit.problem, unit.context, unit.plural, ...unit.notes].filter(Boolean).join(" · ");
    $("notes").hidden = !$("notes").textContent;
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
  for (const number of [1, 2, 3, 4, 5]) desk.action({keys: [`ctrl ${number}`], work: () => take(number)});

  /** Adds a term to the session; the segment at work is suggested anew, with it. What was typed stays. */
  const addTerm = desk.trying("term", async () => {
    const [source, target] = [$("term-source").value.trim(), $("term-target").value.trim()];
    await post(`v1/sessions/${desk.open.session.id}/terms`, {source, target});
    $("add-term").reset();
    desk.tell("again");
  });
  $("add-term").addEventListener("submit", (event) => {
    event.preventDefault();
    addTerm();
  });
});
