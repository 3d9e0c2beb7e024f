// What is opened, with which model and memories: answers a document and a session of the server.

import {get, post} from "./api.js";
import {el} from "./elements.js";
import {Kept, documents} from "./kept.js";
import {shown} from "./texts.js";

const $ = (id) => document.getElementById(id);
const names = new Intl.DisplayNames(["en"], {type: "language"});
const MOST_BACKGROUND = 10_000;  // pairs of the file that a session knows from the beginning
const HERE = "";  // pairs stay in the session: no name of a memory

export function named(code) {
  try {
    return names.of(code) ?? code;
  } catch {
    return code;
  }
}

/** Fills the form; `opened`: called with {name, content, source, target, sentences, format, segments, kind, session}, where the
    browser keeps it, and what was done with it. */
export async function prepare(opened, failed) {
  await showKept(await documents(), opened, failed);
  const asked = ["models", "memories", "terms"].map((what) => get(`v1/${what}`));
  const [{models}, {memories}, {terms}] = await Promise.all(asked);
  if (!models.length) models.push(...withoutModel((await get("v1/languages")).pairs));
  for (const model of models) {
    $("pair").append(new Option(`${named(model.source)} to ${named(model.target)} (${model.name})`, model.name));
  }
  const chosen = () => models.find((model) => model.name === $("pair").value);
  const choose = () => {
    const model = chosen();
    showMemories(memories.filter((one) => fits(one, model)));
    const lists = terms.filter((one) => fits(one, model));
    $("terms").replaceChildren(...lists.map((one) => tick(one.name, counted(one.terms, "term"))));
    $("terms-set").hidden = !lists.length;
  };
  $("pair").addEventListener("change", choose);
  choose();
  $("start").addEventListener("submit", async (event) => {
    event.preventDefault();
    if ($("go").ariaDisabled === "true") return;  // one request, however often it is pressed
    $("go").ariaDisabled = "true";
    try {
      const document_ = await begun(chosen());
      opened(document_, new Kept(document_.session.id), {units: [], done: []});
    } catch (error) {
      failed(error);
    } finally {
      $("go").ariaDisabled = "false";
    }
  });
  takeDrops();
}

// Documents of before

async function showKept(found, opened, failed) {
  $("kept").hidden = !found.length;
  $("kept-list").replaceChildren(...await Promise.all(found.map((one) => documentLine(one, opened, failed))));
}

async function documentLine(document_, opened, failed) {
  const {name, session, segments} = document_, kept = new Kept(session.id), line = el("li", "");
  const {confirmed, drafts, saved, at = document_.at} = await kept.standing();
  const go = el("button", "main", "Go on"), forget = el("button", "", "Forget");
  go.type = forget.type = "button";
  go.setAttribute("aria-label", `Go on with ${name}`);
  forget.setAttribute("aria-label", `Forget ${name}`);
  go.addEventListener("click", () => {
    go.disabled = true;
    goOn(document_, opened).catch(failed).finally(() => { go.disabled = false; });
  });
  forget.addEventListener("click", () => {
    if (forget.textContent === "Forget") {  // the first press asks
      forget.textContent = drafts ? `Forget it with ${counted(drafts, "draft")}` : "Forget it for good";
      forget.setAttribute("aria-label", `${forget.textContent}: ${name}`);
      return;
    }
    kept.forget().then(() => {
      line.remove();
      $("kept").hidden = !$("kept-list").children.length;
    }).catch(failed);
  });
  const day = new Date(at).toLocaleString("en", {dateStyle: "medium", timeStyle: "short"});
  const done = `${confirmed.toLocaleString("en")} of ${counted(segments.length, "segment")} confirmed`;
  const about = [done, ...(drafts ? [counted(drafts, "draft")] : []), saved ? "saved" : "not saved yet", day].join(", ");
  line.append(el("span", "", name), el("small", "quiet", about), go, forget);
  return line;
}

/** A document that is kept, in its session, or in a new one where the server has forgotten that. */
async function goOn(document_, opened) {
  const before = new Kept(document_.session.id), {saved} = await before.standing();
  const work = {...await before.work(), saved};
  const session = await get(`v1/sessions/${before.id}`).catch((error) => {
    if (error.status !== 404) throw error;
    return null;
  });
  if (session) return opened({...document_, session}, before, work);
  const again = await begunAgain(document_, work);
  const isKept = await opened({...document_, session: again}, new Kept(again.id), {...work, isNew: true});
  return isKept ? before.forget() : undefined;
}

async function begunAgain({name, session, segments}, work) {
  const {source, target, memories, terms, write_to, model} = session;
  const begin = {
    source, target, model: model ?? "", memories, terms, name, write_to: write_to ?? HERE, ...confirmedBefore(segments),
  };
  const again = await post("v1/sessions", begin);
  work.done = await confirmedAgain(again.id, work);
  return again;
}

/** What the file has translated already, for a session that is to know it: at most as many pairs as one takes. */
function confirmedBefore(segments) {
  const isConfirmed = ({confirmation = "none", target}) => confirmation !== "none" && target?.trim();
  const background = segments.filter(isConfirmed).map(({source, target}) => ({src: source, tgt: target}));
  return {background: background.slice(-MOST_BACKGROUND), format: "xml"};
}

/** The pairs that the new session takes. The segment of another one is a draft again. */
async function confirmedAgain(id, {done, units}) {
  const taken = [];
  for (const entry of done) {
    try {
      entry.sent.segment ??= String(entry.at);  // pages before told none
      await post(`v1/sessions/${id}/confirm`, {...entry.sent, format: "xml", resumed: true});
      taken.push(entry);
    } catch (error) {
      if (error.status !== 400) throw error;
      const unit = units.find((one) => one.at === entry.at && one.confirmed === entry.sent.tgt && (one.text ?? null) === null);
      if (unit) Object.assign(unit, {text: shown(unit.confirmed), confirmed: null});
    }
  }
  return taken;
}

/** The pairs of languages of the memories, where no model is served. */
const withoutModel = (pairs) => pairs.map(({source, target}) => ({source, target, name: `no model, ${source}-${target}`, isModelless: true}));

/** The name of a model, for the server. */
const requested = (model) => (model.isModelless ? "" : model.name);

const main = (code) => code.split("-")[0];
const fits = (one, model) => main(one.source) === main(model.source) && main(one.target) === main(model.target);

function showMemories(memories) {
  const ticks = memories.map((one) => tick(one.name, one.segments === null ? "" : counted(one.segments, "segment")));
  $("memories").replaceChildren(...(ticks.length ? ticks : [el("p", "quiet", "None is served for these languages.")]));
  const writable = memories.filter((memory) => memory.writable);
  $("write").replaceChildren(...writable.map((memory) => new Option(memory.name)), new Option("this document alone", HERE));
}

function tick(name, about) {
  const box = el("input");
  box.type = "checkbox";
  box.checked = true;
  box.value = name;
  return el("label", "tick", box, ` ${name}`, el("small", "quiet", ` ${about}`));
}

const ticked = (id) => [...$(id).querySelectorAll("input:checked")].map((box) => box.value);
const counted = (many, what) => `${many.toLocaleString("en")} ${what}${many === 1 ? "" : "s"}`;

function takeDrops() {
  const drop = $("drop");
  const shownName = () => { drop.firstElementChild.textContent = $("file").files[0]?.name ?? "Choose a file or drop it here"; };
  $("file").addEventListener("change", shownName);
  for (const kind of ["dragover", "drop"]) {
    document.addEventListener(kind, (event) => event.preventDefault());
  }
  drop.addEventListener("dragover", () => drop.classList.add("over"));
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    drop.classList.remove("over");
    if (event.dataTransfer.files.length) $("file").files = event.dataTransfer.files;
    shownName();
  });
}

async function begun(model) {
  const file = $("file").files[0], text = $("pasted").value;
  if (!file && !text.trim()) throw new Error("Choose a file, or paste a text.");
  const sent = {
    name: file ? file.name : "text.txt",
    content: await base64(file ?? new Blob([text])),
    source: model.source, target: model.target,
    ...($("sentences").checked ? {} : {sentences: false}),  // ticked: where it is running text
    ...($("plain").checked ? {format: "text"} : {}),
  };
  const {kind, sentences, segments} = await post("v1/documents/segments", {...sent, model: requested(model)})
    .catch((error) => { throw Object.assign(error, {message: onPage(error.message, file ? file.name : "the text")}); });
  if (!segments.length) throw new Error("There is nothing to translate in it.");
  const session = await post("v1/sessions", {
    source: model.source, target: model.target, memories: ticked("memories"), terms: ticked("terms"), name: sent.name,
    model: requested(model), write_to: $("write").value, ...confirmedBefore(segments),
  });
  return {...sent, kind, sentences, segments, session};
}

/** A reason of the server in the words of the page. */
function onPage(reason, name) {
  return reason.replace(/\bthe document\b/g, () => name)
    .replace('is given with "format": "text"', "is opened with the box “Read the file as plain text” ticked");
}

async function base64(blob) {
  const data = new Uint8Array(await blob.arrayBuffer());
  let binary = "";
  for (let at = 0; at < data.length; at += 0x8000) binary += String.fromCharCode(...data.subarray(at, at + 0x8000));
  return btoa(binary);
}
