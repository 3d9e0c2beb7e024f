// Going to the segment of a number.

import {panel} from "./panels.js";

const $ = (id) => document.getElementById(id);

panel((desk) => {
  desk.action({keys: ["ctrl g"], work: () => {
    $("which").max = desk.open.units.length;
    $("which").value = $("jump").returnValue = "";
    $("jump").showModal();
  }});
  $("jump").addEventListener("close", () => { if ($("jump").returnValue && $("which").value) desk.go($("which").value - 1); });
});
