// Tags of the segment at work: the next one by a key or a button, or by a click on the source.

import {chipsOf} from "./chips.js";
import {drawnTags} from "./marks.js";
import {panel} from "./panels.js";
import {phrase} from "./phrases.js";
import {shown} from "./texts.js";

const $ = (id) => document.getElementById(id);

panel((desk) => {
  const {editor} = desk;
  const draw = () => $("source").replaceChildren(...drawnTags(shown(desk.unit.source), chipsOf(desk.unit), editor.areShown));
  desk.on("at", draw);
  desk.on("invisible", () => { if (desk.unit) draw(); });
  desk.on("field", () => {
    $("tag").hidden = !desk.unit.tags.length || desk.isLocked;
    $("tag").disabled = !editor.missing.length;
    $("reading").textContent = editor.spoken;
  });
  desk.action({id: "tag", keys: ["F8"], work: () => { if (desk.unit && !editor.insertTag()) desk.say(phrase("No tag is missing.")); }});
  $("source").addEventListener("click", ({target}) => {
    const tag = target.closest(".chip")?.textContent;
    if (tag) desk.insert(tag);
  });
});
