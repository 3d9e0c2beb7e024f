// The document as a file, and what was confirmed as a memory.

import {bytes, said} from "./api.js";
import {file} from "./document.js";
import {el} from "./elements.js";
import {maySave, tellIssues} from "./issues.js";
import {panel} from "./panels.js";
import {phrase} from "./phrases.js";
import {sentence} from "./texts.js";

const MOST_REASONS = 10;  // segments whose reasons are told after a file was saved

panel((desk) => {
  desk.action({id: "save", keys: ["ctrl s"], work: desk.trying("save", () => save(desk))});
  desk.action({id: "tmx", work: desk.trying("save", () => saveTmx(desk))});
});

async function save(desk) {
  const {open, problems} = desk, {about} = open;
  await Promise.allSettled(open.sending);
  await desk.sync.flush();
  if (!(await maySave(desk))) return;
  const {content, refused, issues} = await file(about.id);
  tellIssues(desk, issues);
  if (issues.length) return;
  tellRefused(problems, refused);
  const isText = about.kind === "text" || about.kind === "paragraphs";
  download(desk, content, isText ? about.name.replace(/(\.[^.]*)?$/, `.${about.target}$1`) : about.name);
  const drafts = open.units.filter((unit) => unit.text !== null).length;
  if (drafts) problems.show("drafts", phrase("The saved file has what is confirmed. {count} drafts are not in it, and kept in the document.", {count: drafts}));
  else problems.clear("drafts");
}

function tellRefused(problems, refused) {
  if (!refused.length) return problems.clear("refused");
  const reasons = refused.slice(0, MOST_REASONS).map(({segment: number, reason, ...more}) => phrase("segment {number}: {reason}", {number, reason: said({message: reason, ...more})})).join("; ");
  const more = refused.length > MOST_REASONS ? ` ${phrase("And {count} more.", {count: refused.length - MOST_REASONS})}` : "";
  problems.show("refused", [
    phrase("The saved file does not have all that is confirmed. These segments stand in it as they were:"),
    sentence(reasons) + more, phrase("Change the translation, and confirm it again."),
  ].join(" "));
}

async function saveTmx(desk) {
  const {about, session} = desk.open;
  download(desk, await bytes(`v1/sessions/${session.id}/tmx`), `${about.name}.${about.source}-${about.target}.tmx`);
}

function download(desk, content, name) {
  const link = el("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  desk.say(phrase("{name} is saved.", {name}));
}
