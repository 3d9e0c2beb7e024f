// The document as a file, and what was confirmed as a memory.

import {bytes} from "./api.js";
import {el} from "./elements.js";
import {panel} from "./panels.js";
import {sentence} from "./texts.js";

const MOST_REASONS = 10;  // segments whose reasons are told after a file was saved

panel((desk) => {
  desk.action({id: "save", keys: ["ctrl s"], work: desk.trying("save", () => save(desk))});
  desk.action({id: "tmx", work: desk.trying("save", () => saveTmx(desk))});
});

async function save(desk) {
  const {open, problems} = desk;
  await Promise.allSettled(open.sending);
  const {name, session} = open;
  open.changed = false;
  try {
    const {file, refused} = await filled(open);
    if (refused.length) open.changed = true;
    tellRefused(problems, refused);
    const isText = open.kind === "text" || open.kind === "paragraphs";
    download(desk, file, isText ? name.replace(/(\.[^.]*)?$/, `.${session.target}$1`) : name);
  } catch (error) {
    open.changed = true;
    throw error;
  }
  const drafts = open.units.filter((unit) => unit.text !== null).length;
  if (drafts) problems.show("drafts", `The saved file has what you confirmed. ${drafts === 1 ? "One draft is" : `${drafts} drafts are`} not in it, and kept here.`);
  else problems.clear("drafts");
  await desk.copy.about();
}

/** The file with what was confirmed, and which segments it does not take: [{segment, reason}]. These stay as they were. */
async function filled({units, name, content, sentences, format, session: {source, target}}) {
  const targets = units.map((unit) => unit.confirmed ?? "");
  const fill = () => bytes("v1/documents/fill", {name, content, source, target, sentences, format, targets});
  try {
    return {file: await fill(), refused: []};
  } catch (error) {
    if (!error.refused) throw error;
    for (const {segment: number} of error.refused) targets[number - 1] = "";
    return {file: await fill(), refused: error.refused};
  }
}

function tellRefused(problems, refused) {
  if (!refused.length) return problems.clear("refused");
  const reasons = refused.slice(0, MOST_REASONS).map((entry) => `segment ${entry.segment}: ${entry.reason}`).join("; ");
  const more = refused.length > MOST_REASONS ? ` And ${refused.length - MOST_REASONS} more.` : "";
  problems.show("refused", `The saved file does not have all that you confirmed. These segments stand in it as they were: ${sentence(reasons)}${more} Change the translation, and confirm it again.`);
}

async function saveTmx(desk) {
  const {source, target, id} = desk.open.session;
  download(desk, await bytes(`v1/sessions/${id}/tmx`), `${desk.open.name}.${source}-${target}.tmx`);
}

function download(desk, file, name) {
  const link = el("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  desk.say(`${name} is saved.`);
}
