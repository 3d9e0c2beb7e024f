// The start page: documents to go on with, and files to begin with, of which model and with which memories.

import {get} from "./api.js";
import {create} from "./document.js";
import {el} from "./elements.js";
import {bring, forget, formerDocuments} from "./former.js";
import {showDocuments} from "./library.js";
import {LANGUAGE, phrase} from "./phrases.js";

const $ = (id) => document.getElementById(id);
const names = new Intl.DisplayNames([LANGUAGE], {type: "language"});
const HERE = "";  // pairs stay in the document: no name of a memory
const FILL = "tmnmt-fill";  // the rule that was chosen last

export function named(code) {
  try {
    return names.of(code) ?? code;
  } catch {
    return code;
  }
}

/** Fills the page; `opened`: called with what is known of a document that was begun; `failed`: with an error. */
export async function prepare(opened, failed) {
  $("start").hidden = false;
  await Promise.all([showDocuments(failed), showFormer(opened, failed)]);
  const [{models}, {memories}, {terms}] = await Promise.all(["models", "memories", "terms"].map((what) => get(`v1/${what}`)));
  if (!models.length) models.push(...withoutModel((await get("v1/languages")).pairs));
  for (const model of models) {
    $("pair").append(new Option(phrase("{source} to {target} ({model})", {source: named(model.source), target: named(model.target), model: model.name}), model.name));
  }
  const chosen = () => models.find((model) => model.name === $("pair").value);
  const choose = () => {
    const model = chosen();
    showMemories(memories.filter((memory) => fits(memory, model)));
    const lists = terms.filter((list) => fits(list, model));
    $("terms").replaceChildren(...lists.map((list) => tick(list.name, phrase("{count} terms", {count: list.terms}))));
    $("terms-set").hidden = !lists.length;
  };
  $("pair").addEventListener("change", choose);
  choose();
  rememberFill();
  $("start").addEventListener("submit", async (event) => {
    event.preventDefault();
    if ($("go").ariaDisabled === "true") return;  // one request, however often it is pressed
    $("go").ariaDisabled = "true";
    try {
      await begin(chosen(), opened, failed);
    } catch (error) {
      failed(error);
    } finally {
      $("go").ariaDisabled = "false";
    }
  });
  takeDrops();
}

function rememberFill() {
  try {
    $("fill").value = localStorage.getItem(FILL) ?? "none";
    $("fill").addEventListener("change", () => localStorage.setItem(FILL, $("fill").value));
  } catch {}  // not allowed: then the page does not remember it
}

// Documents that the browser has kept

async function showFormer(opened, failed) {
  const found = await formerDocuments();
  $("former").hidden = !found.length;
  $("former-list").replaceChildren(...found.map((entry) => formerLine(entry, opened, failed)));
}

function formerLine(entry, opened, failed) {
  const take = el("button", "main", phrase("Bring it to the server")), drop = el("button", "", phrase("Forget"));
  take.type = drop.type = "button";
  take.ariaLabel = phrase("Bring {name} to the server", {name: entry.name});
  drop.ariaLabel = phrase("Forget {name}", {name: entry.name});
  take.addEventListener("click", async () => {
    take.disabled = true;
    try {
      const {about} = await bring(entry);
      await forget(entry);
      opened(about);
    } catch (error) {
      failed(error);
    } finally {
      take.disabled = false;
    }
  });
  drop.addEventListener("click", () => {
    if (drop.textContent === phrase("Forget")) {  // the first press asks
      drop.textContent = phrase("Forget it for good");
      drop.ariaLabel = `${drop.textContent}: ${entry.name}`;
      return;
    }
    forget(entry).then(() => showFormer(opened, failed)).catch(failed);
  });
  return el("li", "", el("span", "", entry.name), el("small", "quiet", phrase("{count} segments", {count: entry.segments.length})), take, drop);
}

// What is chosen

/** The pairs of languages of the memories, where no model is served. */
const withoutModel = (pairs) => pairs.map(({source, target}) => ({source, target, name: phrase("no model, {source}-{target}", {source, target}), isModelless: true}));

const main = (code) => code.split("-")[0];
const fits = (entry, model) => main(entry.source) === main(model.source) && main(entry.target) === main(model.target);

function showMemories(memories) {
  const ticks = memories.map((memory) => tick(memory.name, memory.segments === null ? "" : phrase("{count} segments", {count: memory.segments})));
  $("memories").replaceChildren(...(ticks.length ? ticks : [el("p", "quiet", phrase("None is served for these languages."))]));
  const writable = memories.filter((memory) => memory.writable);
  $("write").replaceChildren(...writable.map((memory) => new Option(memory.name)), new Option(phrase("this document alone"), HERE));
}

function tick(name, about) {
  const box = el("input");
  box.type = "checkbox";
  box.checked = true;
  box.value = name;
  return el("label", "tick", box, ` ${name}`, el("small", "quiet", ` ${about}`));
}

const ticked = (id) => [...$(id).querySelectorAll("input:checked")].map((box) => box.value);

function takeDrops() {
  const drop = $("drop");
  const showNames = () => {
    const files = [...$("file").files];
    const text = files.length > 3 ? phrase("{count} files", {count: files.length}) : files.map(({name}) => name).join(", ");
    drop.firstElementChild.textContent = text || phrase("Choose files or drop them here");
  };
  $("file").addEventListener("change", showNames);
  for (const kind of ["dragover", "drop"]) {
    document.addEventListener(kind, (event) => event.preventDefault());
  }
  drop.addEventListener("dragover", () => drop.classList.add("over"));
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    drop.classList.remove("over");
    if (event.dataTransfer.files.length) $("file").files = event.dataTransfer.files;
    showNames();
  });
}

// Documents that are begun

/** Makes a document of every file, or of the text. One that was made alone is opened; of several the list tells. A file that
    cannot be opened keeps no other one from it. */
async function begin(model, opened, failed) {
  const files = [...$("file").files], text = $("pasted").value;
  if (!files.length && !text.trim()) throw new Error(phrase("Choose a file, or paste a text."));
  const wanted = files.length ? files.map((file) => [file.name, file]) : [["text.txt", new Blob([text])]];
  const begun = [];
  for (const [name, content] of wanted) {
    if (wanted.length > 1) $("going").textContent = phrase("{number} of {files}: {name}", {number: begun.length + 1, files: wanted.length, name});
    try {
      begun.push(await create(await fields(name, content, model)));
    } catch (error) {
      const told = onPage(error.message, files.length ? name : phrase("the text")), isClear = wanted.length === 1 || told.includes(name);
      failed(Object.assign(error, {message: isClear ? told : phrase("{file}: {reason}", {file: name, reason: told})}), `begin ${name}`);
    }
  }
  $("going").textContent = "";
  if (wanted.length === 1 && begun.length) return opened(begun[0]);
  if (!begun.length) return undefined;
  $("going").textContent = phrase("{begun} documents of {count} files can be translated now.", {begun: begun.length, count: wanted.length});
  $("file").value = "";
  $("file").dispatchEvent(new Event("change"));
  await showDocuments(failed);
  return $("document-list").querySelector("a").focus();
}

const fields = async (name, content, model) => ({
  name, content: await base64(content), project: $("project").value.trim(), fill: $("fill").value,
  source: model.source, target: model.target, model: model.isModelless ? "" : model.name,
  memories: ticked("memories"), terms: ticked("terms"), terms_domain: ticked("terms").length ? $("domain").value.trim() : "", write_to: $("write").value,
  ...($("sentences").checked ? {} : {sentences: false}),  // ticked: where it is running text
  ...($("plain").checked ? {format: "text"} : {}),
});

/** A reason of the server in the words of the page. */
function onPage(reason, name) {
  return reason.replace(/\bthe document\b/g, () => name)
    .replace('"format": "text"', phrase("the box “Read the file as plain text” ticked"));
}

async function base64(blob) {
  const data = new Uint8Array(await blob.arrayBuffer());
  let binary = "";
  for (let at = 0; at < data.length; at += 0x8000) binary += String.fromCharCode(...data.subarray(at, at + 0x8000));
  return btoa(binary);
}
