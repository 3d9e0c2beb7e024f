// How far a confirmed text is right: translated, reviewed or approved.

import {changeSegment} from "./document.js";
import {STATES} from "./list.js";
import {panel} from "./panels.js";
import {phrase} from "./phrases.js";
import {isConfirmed} from "./segments.js";

const $ = (id) => document.getElementById(id);

panel((desk) => {
  const set = async (state) => {
    const {unit} = desk, {about} = desk.open;
    if (!unit || !isConfirmed(unit)) return;
    await desk.sync.landed;
    const wanted = unit.state === state ? "translated" : state;  // once more takes it back
    desk.sync.take(await changeSegment(about.id, unit.number, {version: unit.version, state: wanted}));
    desk.say(phrase("Segment {number}: {state}", {number: unit.number, state: STATES[wanted]}));
  };
  for (const [id, key, state] of [["reviewed", "F2", "reviewed"], ["approved", "F4", "approved"]]) {
    desk.action({id, keys: [key], work: desk.trying("state", () => set(state))});
  }
  desk.on("field", () => {
    const {unit} = desk;
    for (const id of ["reviewed", "approved"]) {
      $(id).hidden = !isConfirmed(unit);
      $(id).ariaPressed = String(unit.state === id);
    }
  });
});
