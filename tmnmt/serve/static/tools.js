// Beside the field: signs that nobody sees, quotes as the language sets them, and the limit of length.

import {get} from "./api.js";
import {choice} from "./choices.js";
import {el} from "./elements.js";
import {INSERTED} from "./invisible.js";
import {panel} from "./panels.js";
import {phrase} from "./phrases.js";

const $ = (id) => document.getElementById(id);

/** Signs that nobody sees: shown or not, and inserted from a list or by keys. */
panel((desk) => {
  const {editor} = desk;
  const insert = ({sign, around}) => {
    if (!desk.unit || desk.isLocked) return;
    if (around) editor.surround(sign, around);
    else editor.insert(sign, 1);
  };
  choice("invisible", false, (areShown) => {
    editor.areShown = areShown;
    editor.draw();
    desk.tell("invisible", {areShown});
  });
  const dialog = $("signs");
  const pick = (one) => {
    dialog.close();
    insert(one);
  };
  const items = INSERTED.map((one) => {
    const button = el("button", "", el("kbd", "", one.letter.toUpperCase()), ` ${one.name}`);
    button.type = "button";
    button.addEventListener("click", () => pick(one));
    return el("li", "", button);
  });
  $("signs-list").replaceChildren(...items);
  dialog.addEventListener("keydown", (event) => {
    const one = !event.ctrlKey && !event.altKey && !event.metaKey && INSERTED.find(({letter}) => letter === event.key.toLowerCase());
    if (!one) return;
    event.preventDefault();
    pick(one);
  });
  desk.action({id: "sign", keys: ["F9"], work: () => { if (desk.unit && !desk.isLocked) dialog.showModal(); }});
  desk.action({keys: ["ctrl shift  "], within: editor.field, work: () => insert({sign: "\u00a0"})});
  desk.on("field", () => { $("sign").disabled = desk.isLocked; });
});

/** Quotes and apostrophes as the language sets them. */
panel((desk) => {
  const {editor} = desk;
  let quotes = null, isOn = false;
  const apply = () => { editor.typography = isOn ? {quotes} : null; };
  choice("typographic", false, (isTicked) => {
    isOn = isTicked;
    apply();
  });
  desk.on("opened", desk.trying("typography", async () => {
    ({quotes} = await get(`page/typography/${encodeURIComponent(desk.open.session.target)}`));
    apply();
  }));
});

/** How long the translation may be, where the file says so. */
panel((desk) => {
  desk.on("field", () => {
    const limit = desk.unit.max_length ?? null;
    $("length").hidden = limit === null;
    if (limit === null) return;
    const length = [...desk.editor.words].length, over = length - limit;
    $("length").textContent = over > 0
      ? phrase("{length} of {limit} characters, {over} too many", {length, limit, over})
      : phrase("{length} of {limit} characters", {length, limit});
    $("length").classList.toggle("over", over > 0);
  });
});
