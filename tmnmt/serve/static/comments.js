// What people say of a segment to each other.

import {addComment, removeComment} from "./document.js";
import {el} from "./elements.js";
import {panel} from "./panels.js";
import {moment, phrase} from "./phrases.js";

const $ = (id) => document.getElementById(id);

panel((desk) => {
  const draw = () => {
    const {comments} = desk.unit;
    $("comments").hidden = !comments.length;
    $("comments").replaceChildren(...comments.map((comment) => line(comment)));
  };
  const send = (work) => desk.trying("comment", async () => desk.sync.take(await work()));
  const line = ({id, by, time, text}) => {
    const drop = el("button", "", phrase("Delete")), {about, at} = desk.open;
    drop.type = "button";
    drop.ariaLabel = phrase("Delete the comment: {text}", {text});
    drop.addEventListener("click", send(() => removeComment(about.id, at + 1, id)));
    const written = [by === "you" ? "" : by, moment(time)].filter(Boolean).join(", ");
    const isOfFile = id.startsWith("file-");  // there it stays
    const head = isOfFile && !written ? phrase("in the file") : written;
    return el("li", "", el("span", "quiet", phrase("{head}:", {head})), el("span", "text", text), ...(isOfFile ? [] : [drop]));
  };
  desk.on("at", () => {
    draw();
    $("add-comment").hidden = true;
    $("comment-text").value = "";
  });
  desk.on("unit", ({at}) => { if (at === desk.open.at) draw(); });
  desk.action({id: "comment", keys: ["ctrl m"], work: () => {
    if (!desk.unit) return;
    $("add-comment").hidden = false;
    $("comment-text").focus();
  }});
  $("add-comment").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = $("comment-text").value.trim(), {about, at} = desk.open;
    if (!text) return;
    send(() => addComment(about.id, at + 1, text))().then(() => {
      $("comment-text").value = "";
      $("add-comment").hidden = true;
      desk.editor.field.focus();
    });
  });
  $("add-comment").addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    $("add-comment").hidden = true;
    desk.editor.field.focus();
  });
});
