// Where a phrase stands in the memories that the session reads.

import {post} from "./api.js";
import {el, text} from "./elements.js";
import {panel} from "./panels.js";
import {phrase} from "./phrases.js";

const $ = (id) => document.getElementById(id);

panel((desk) => {
  const dialog = $("finder");
  dialog.querySelector(".close").addEventListener("click", () => dialog.close());
  $("seek").addEventListener("submit", async (event) => {
    event.preventDefault();
    const words = $("phrase").value.trim();
    if (!words) return;
    try {
      show(await found(words, $("side").value, desk.open.session.memories), desk.open);
    } catch (error) {
      dialog.close();
      desk.failed("find", error);
    }
  });
  $("found").addEventListener("click", (event) => {
    const chosen = event.target.closest("button");
    if (!chosen) return;
    dialog.close();
    desk.insert(chosen.closest("li").querySelector(".tgt").textContent);
  });
  const find = (words) => {
    if (words) $("phrase").value = words;
    dialog.showModal();
    $("phrase").select();
    if (words) $("seek").requestSubmit();
  };
  desk.action({id: "find", work: () => find(desk.selected)});
  desk.action({keys: ["ctrl k"], work: () => find(String(getSelection()).trim() || desk.selected)});
});

async function found(words, side, memories) {
  const answers = await Promise.all(memories.map((name) =>
    post(`v1/memories/${encodeURIComponent(name)}/concordance`, {text: words, in: side})));
  return answers.flatMap(({matches}, at) => matches.map((match) => ({...match, memory: memories[at], side})));
}

function show(pairs, {session}) {
  $("found-count").textContent = pairs.length ? phrase("{count} found", {count: pairs.length}) : phrase("Not in these memories.");
  $("found").replaceChildren(...pairs.map((pair) => {
    const use = el("button", "", phrase("Insert"));
    use.type = "button";
    use.setAttribute("aria-label", phrase("Insert this translation"));
    const about = el("p", "head", el("span", "quiet", [pair.memory, pair.document, pair.user, pair.changed?.slice(0, 10)].filter(Boolean).join(" · ")), use);
    const src = text("p", session.source, ...(pair.side === "source" ? marked(pair.src, pair.places) : [pair.src]));
    const tgt = text("p", session.target, ...(pair.side === "target" ? marked(pair.tgt, pair.places) : [pair.tgt]));
    tgt.classList.add("tgt");
    return el("li", "match", about, src, tgt);
  }));
}

/** Places count characters as Python does: code points. */
function marked(line, places) {
  const signs = [...line], parts = [];
  let at = 0;
  for (const [begin, end] of places) {
    parts.push(signs.slice(at, begin).join(""), el("mark", "", signs.slice(begin, end).join("")));
    at = end;
  }
  return [...parts, signs.slice(at).join("")];
}
