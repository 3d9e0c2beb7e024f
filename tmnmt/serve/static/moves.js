// Ways to other segments: by number, to the next that is not confirmed, to the next in which a check found something.

import {panel} from "./panels.js";
import {phrase} from "./phrases.js";
import {issuesOf} from "./segments.js";

const $ = (id) => document.getElementById(id);

panel((desk) => {
  desk.action({keys: ["alt ArrowDown"], held: true, work: () => desk.step(1)});
  desk.action({keys: ["alt ArrowUp"], held: true, work: () => desk.step(-1)});
  desk.action({keys: ["ctrl u"], work: () => desk.go(desk.next(desk.open.at))});
  desk.action({keys: ["ctrl i"], work: () => {
    const to = desk.next(desk.open.at, (unit) => issuesOf(unit).length > 0);
    if (to >= 0) desk.go(to);
    else desk.say(phrase("No check has found anything."));
  }});
  desk.action({keys: ["ctrl g"], work: () => {
    $("which").max = desk.open.units.length;
    $("which").value = $("jump").returnValue = "";
    $("jump").showModal();
  }});
  $("jump").addEventListener("close", () => { if ($("jump").returnValue && $("which").value) desk.go($("which").value - 1); });
});
