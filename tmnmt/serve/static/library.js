// The documents of the server on the start page, by project.

import {address} from "./api.js";
import {change, discard, documents} from "./document.js";
import {el} from "./elements.js";
import {Kept} from "./kept.js";
import {moment, phrase} from "./phrases.js";

const $ = (id) => document.getElementById(id);


/** How far a document is, in words: {words: {all, confirmed, draft}, …}. */
export function standing({words, issues, changed, by}) {
  const when = moment(changed);
  return [
    phrase("{confirmed} of {count} words confirmed", {confirmed: words.confirmed, count: words.all}),
    ...(words.draft ? [phrase("{count} words in drafts", {count: words.draft})] : []),
    ...(issues ? [phrase("{count} issues", {count: issues})] : []),
    by && by !== "you" ? phrase("{when} by {person}", {when, person: by}) : when,
  ].join(", ");
}

/** By the names of their projects, in order; those of none at the end: [[project, documents]]. */
export function byProject(all) {
  const projects = new Map();
  for (const entry of all) projects.set(entry.project, [...projects.get(entry.project) ?? [], entry]);
  const isLast = (name) => Number(name === "");
  return [...projects].sort(([one], [other]) => isLast(one) - isLast(other) || one.localeCompare(other));
}

/** Shows them; `failed`: called with an error. */
export async function showDocuments(failed) {
  const all = await documents(), projects = byProject(all);
  $("documents").hidden = !all.length;
  $("projects").replaceChildren(...projects.map(([name]) => new Option(name)).filter(({value}) => value));
  $("document-list").replaceChildren(...projects.flatMap(([name, entries]) => {
    const list = el("ul", "", ...entries.map((entry) => line(entry, failed)));
    if (!name && projects.length === 1) return [list];
    const {all: total, confirmed} = sum(entries);
    const title = el("h3", "", name || phrase("Without a project"), " ", el("small", "quiet", phrase("{confirmed} of {count} words confirmed", {confirmed, count: total})));
    return [title, list];
  }));
}

function sum(entries) {
  const total = (name) => entries.reduce((count, {words}) => count + words[name], 0);
  return {all: total("all"), confirmed: total("confirmed")};
}

function line(entry, failed) {
  const link = el("a", "", entry.name), bar = el("progress", ""), remove = el("button", "", phrase("Delete"));
  link.href = address(`d/${encodeURIComponent(entry.id)}`);
  Object.assign(bar, {max: entry.words.all || 1, value: entry.words.confirmed, ariaLabel: phrase("Confirmed words of {name}", {name: entry.name})});
  remove.type = "button";
  remove.ariaLabel = phrase("Delete {name}", {name: entry.name});
  remove.addEventListener("click", async () => {
    if (remove.textContent === phrase("Delete")) {  // the first press asks
      remove.textContent = phrase("Delete it for good, for everybody");
      remove.ariaLabel = `${remove.textContent}: ${entry.name}`;
      return;
    }
    try {
      await discard(entry.id);
      new Kept(entry.id, "").forget();
      await showDocuments(failed);
    } catch (error) {
      failed(error);
    }
  });
  const rename = projectButton(entry, failed);
  return el("li", "", el("span", "", link), bar, el("small", "quiet", standing(entry)), rename, remove);
}

/** A button that asks for the project of a document. */
function projectButton(entry, failed) {
  const button = el("button", "", phrase("Project"));
  button.type = "button";
  button.ariaLabel = phrase("Project of {name}", {name: entry.name});
  button.addEventListener("click", () => {
    const field = el("input"), save = el("button", "main", phrase("Save")), form = el("form", "", field, save);
    Object.assign(field, {value: entry.project, maxLength: 200, ariaLabel: phrase("Project of {name}", {name: entry.name})});
    field.setAttribute("list", "projects");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      change(entry.id, {project: field.value.trim()}).then(() => showDocuments(failed)).catch(failed);
    });
    button.replaceWith(form);
    field.select();
  });
  return button;
}
