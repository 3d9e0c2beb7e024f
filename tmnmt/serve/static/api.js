// Requests to the server, with the key where it wants one. The key lives as long as the tab.

import {el} from "./elements.js";
import {phrase} from "./phrases.js";

const KEPT = "tmnmt-key";
const ROOT = new URL("../", import.meta.url);  // this file lies in page/

/** The address of something of the server, whatever the address of the page. */
export const address = (path) => new URL(path, ROOT).href;

async function sent(method, path, body, signal) {
  const headers = {};
  const key = sessionStorage.getItem(KEPT);
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const content = body === undefined ? undefined : JSON.stringify(body);
  try {
    return await fetch(address(path), {method, headers, body: content, signal});
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw Object.assign(new Error(phrase("The server does not answer. Your text is still here; try again.")), {isAway: true});
  }
}

function asked() {
  const field = el("input"), wrong = el("p", "quiet", phrase("The server does not know that key."));
  const go = el("button", "main", phrase("Go on"));
  const form = el("form", "", el("label", "", phrase("Key"), " ", field), " ", go);
  const dialog = el("dialog", "", el("h2", "", phrase("This server needs a key")), form, wrong,
    el("p", "quiet", phrase("It is kept until this tab is closed.")));
  dialog.id = "locked";
  dialog.ariaLabel = phrase("This server needs a key");
  Object.assign(field, {id: "key", type: "password", autocomplete: "off"});
  Object.assign(wrong, {id: "wrong-key", role: "alert", hidden: !sessionStorage.getItem(KEPT)});
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((done) => {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      sessionStorage.setItem(KEPT, field.value.trim());
      dialog.remove();
      done();
    });
    dialog.addEventListener("cancel", (event) => event.preventDefault());
  });
}

let asking = null;  // one dialog, however many requests wait for it

/** What the server says, in the language of the page where the table has it. */
export const said = ({message, template = message, values = {}}) => phrase(template, Object.fromEntries(Object.entries(values).map(([name, value]) => [name, typeof value === "string" ? phrase(value) : value])));

async function answered(method, path, body, signal) {
  for (;;) {
    const reply = await sent(method, path, body, signal);
    if (reply.ok) return reply;
    if (reply.status === 401) {
      asking ??= asked().finally(() => { asking = null; });
      await asking;
      continue;
    }
    const told = await reply.json().catch(() => null);
    const error = new Error(told?.error ? said(told.error) : phrase("The server answers with status {status}.", {status: String(reply.status)}));
    throw Object.assign(error, {status: reply.status, checks: told?.checks, refused: told?.refused, segment: told?.segment, issues: told?.issues});
  }
}

export const get = async (path, signal) => (await answered("GET", path, undefined, signal)).json();
export const post = async (path, body, signal) => (await answered("POST", path, body, signal)).json();
export const put = async (path, body) => (await answered("PUT", path, body)).json();
export const patch = async (path, body) => (await answered("PATCH", path, body)).json();
export const remove = (path) => answered("DELETE", path);
export const bytes = async (path, body) => (await answered(body ? "POST" : "GET", path, body)).blob();
