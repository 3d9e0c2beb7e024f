// All that stood in a segment, from the newest to the first: any of it can be put back.

import {chipsOf} from "./chips.js";
import {history} from "./document.js";
import {el, text as paragraph} from "./elements.js";
import {STATES} from "./list.js";
import {drawnTags} from "./marks.js";
import {panel} from "./panels.js";
import {moment, phrase} from "./phrases.js";
import {shown} from "./texts.js";

const $ = (id) => document.getElementById(id);

panel((desk) => {
  const show = desk.trying("versions", async () => {
    const {unit} = desk;
    if (!unit) return;
    await desk.sync.flush();
    const versions = await history(desk.open.about.id, unit.number);
    $("versions-list").replaceChildren(...versions.map((version) => line(unit, version)));
    $("no-versions").hidden = versions.length > 0;
    if (!$("versions").open) $("versions").showModal();
  });
  const line = (unit, {text, confirmed, state, by, time}) => {
    const written = shown(text ?? confirmed ?? unit.file.target ?? ""), back = el("button", "", phrase("Put it back"));
    back.type = "button";
    back.disabled = unit.state === "locked" || written === desk.editor.text;
    back.addEventListener("click", () => {
      $("versions").close();
      desk.editor.replace(written);
    });
    const about = [moment(time), by === "you" ? "" : by, STATES[state] ?? state].filter(Boolean).join(", ");
    return el("li", "match", el("p", "head", el("span", "quiet", about), back), paragraph("p", desk.open.session.target, ...drawnTags(written, chipsOf(unit))));
  };
  desk.action({id: "history", keys: ["F7"], work: show});
});
