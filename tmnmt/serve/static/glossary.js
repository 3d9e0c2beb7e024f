// The terms of the segment at work: those that stand in its source, what is to stand for each, and a term that is added.

import {post} from "./api.js";
import {el, text as paragraph} from "./elements.js";
import {panel} from "./panels.js";
import {phrase} from "./phrases.js";
import {plain} from "./texts.js";

const $ = (id) => document.getElementById(id);
const KEYS = 9;  // of terms that a key inserts

class Glossary {
  constructor(desk) {
    this._desk = desk;
    this._request = null;
    this._targets = [];  // what is inserted, by the number of its key
    this._marked = "";  // in the field when it was left; a browser forgets it when something else is marked
    desk.editor.field.addEventListener("blur", () => { this._marked = desk.selected; });
    desk.editor.field.addEventListener("focus", () => { this._marked = ""; });
    const find = desk.trying("terms", () => this._find());
    desk.on("at", find);
    desk.on("again", find);
    desk.on("leave", () => this._request?.abort());
    for (let number = 1; number <= KEYS; number++) {
      desk.action({keys: [`ctrl shift ${number}`], work: () => this._insert(this._targets[number - 1])});
    }
    desk.action({keys: ["ctrl shift g"], work: () => this._begin()});
    const add = desk.trying("term", () => this._add($("term-source").value.trim(), $("term-target").value.trim()));
    this._remove = desk.trying("term", (source) => this._change(source, ""));
    $("add-term").addEventListener("submit", (event) => {
      event.preventDefault();
      add();
    });
  }

  async _find() {
    this._request?.abort();
    if (!this._desk.unit) return;
    this._request = new AbortController();
    const {signal} = this._request, {session} = this._desk.open;
    const {terms} = await post(`v1/sessions/${session.id}/terms/find`, {text: plain(this._desk.unit.source)}, signal);
    if (!signal.aborted) this._draw(terms);
  }

  _draw(terms) {
    this._targets = [];
    const unique = [...new Map(terms.map((term) => [term.source, term])).values()];
    $("terms-here").replaceChildren(...unique.map((term) => this._row(term)));
    $("no-terms").hidden = unique.length > 0;
  }

  _row(term) {
    const {source, target} = this._desk.open.session;
    const targets = term.targets.map((one) => this._button(one, target));
    const forbidden = term.forbidden.map((one) => el("del", "", paragraph("span", target, one)));
    const more = [term.in_session ? phrase(phrase("of this document")) : "", term.context, term.note].filter(Boolean).join(" · ");
    const row = el("li", "term-here", paragraph("span", source, term.source), ...targets, ...forbidden);
    if (more) row.append(el("span", "quiet", more));
    if (term.in_session) row.append(this._remover(term.source));
    return row;
  }

  _button(target, language) {
    const number = this._targets.push(target);
    const button = el("button", "term", paragraph("span", language, target));
    button.type = "button";
    button.title = phrase(phrase("Put it where the caret is"));
    if (number <= KEYS) button.append(" ", el("kbd", "", `Ctrl ${phrase("Shift")} ${number}`));
    button.addEventListener("click", () => this._insert(target));
    return button;
  }

  _remover(source) {
    const button = el("button", "", phrase("Remove"));
    button.type = "button";
    button.ariaLabel = phrase("Remove the term {source}", {source});
    button.addEventListener("click", () => this._remove(source));
    return button;
  }

  _insert(target) {
    if (target !== undefined) this._desk.insert(target);
  }

  /** Begins to add a term with what is marked in the source and in the field. */
  _begin() {
    const selection = getSelection(), inSource = $("source").contains(selection.anchorNode);
    const target = this._desk.selected || this._marked;
    if (inSource) $("term-source").value = plain(String(selection)).trim();
    if (target) $("term-target").value = target;
    const fields = [$("term-source"), $("term-target")];
    (fields.find((field) => !field.value) ?? $("add-term").querySelector("button")).focus();
  }

  /** The next translations have the term. What was typed stays. */
  async _add(source, target) {
    await this._change(source, target);
    $("add-term").reset();
    this._desk.editor.field.focus();
  }

  /** The session has another target for a term, or "" for none; the segment at work is suggested anew. */
  async _change(source, target) {
    await post(`v1/sessions/${this._desk.open.session.id}/terms`, {source, target});
    this._desk.say(target ? phrase("The term {source} is added.", {source}) : phrase("The term {source} is removed.", {source}));
    this._desk.tell("again");
  }
}

panel((desk) => { new Glossary(desk); });
