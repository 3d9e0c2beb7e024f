// How the page is laid out, as a person likes it. The browser keeps it.

import {panel} from "./panels.js";

const $ = (id) => document.getElementById(id);
const NAME = "tmnmt view";
const PRESET = {layout: "above", place: "list", density: "wide", size: "100"};

/** What was chosen before; what is not known any more is as at first. */
function kept() {
  try {
    return {...PRESET, ...JSON.parse(localStorage.getItem(NAME) ?? "{}")};
  } catch {
    return PRESET;
  }
}

/** Lays the page out by these choices, {layout, place, density, size}. */
function apply(choices) {
  const {style, dataset} = document.documentElement;
  for (const name of ["layout", "place", "density"]) dataset[name] = choices[name];
  style.fontSize = choices.size === PRESET.size ? "" : `${choices.size}%`;
}

/** The style of the page knows how high its header is: its buttons may need two lines. */
function measureHeader() {
  const {style} = document.documentElement;
  new ResizeObserver(([{target}]) => style.setProperty("--header", `${target.offsetHeight}px`)).observe(document.querySelector("header"));
}

panel((desk) => {
  measureHeader();
  const form = $("view").querySelector("form"), choices = kept();
  for (const [name, value] of Object.entries(choices)) if (form.elements[name]) form.elements[name].value = value;
  apply(choices);
  form.addEventListener("change", () => {
    const chosen = Object.fromEntries(new FormData(form));
    apply(chosen);
    try {
      localStorage.setItem(NAME, JSON.stringify(chosen));
    } catch {}  // full, or not allowed: then it holds for this time
  });
  $("view-open").addEventListener("click", () => $("view").showModal());
  desk.on("opened", () => { $("view-open").hidden = false; });
});
