// The words of the page in the language of the person. English stands in the scripts and pages, and is the key of its
// translation in phrases.LANGUAGE.json; a phrase with a count has its forms there, in English too.

const LANGUAGES = {en: "English", fr: "français"};
const KEPT = "tmnmt.language";  // where the browser keeps what was chosen
const NAMED = ["aria-label", "title", "placeholder"];  // attributes that are read
const isPage = typeof document !== "undefined";  // else a test without a page, in English

export const LANGUAGE = isPage ? chosen() ?? preferred() : "en";
const table = isPage ? await (await fetch(new URL(`phrases.${LANGUAGE}.json`, import.meta.url))).json() : {};
const forms = new Intl.PluralRules(LANGUAGE), numbers = new Intl.NumberFormat(LANGUAGE);
const shares = new Intl.NumberFormat(LANGUAGE, {style: "percent", maximumFractionDigits: 0});
const times = new Intl.DateTimeFormat(LANGUAGE, {dateStyle: "medium", timeStyle: "short"});

function chosen() {
  try {
    const kept = localStorage.getItem(KEPT);
    return kept in LANGUAGES ? kept : null;
  } catch {
    return null;  // this browser keeps nothing
  }
}

function preferred() {
  return navigator.languages.map((code) => code.split("-")[0]).find((code) => code in LANGUAGES) ?? "en";
}

/** A phrase in the language of the page. values: what stands for {name} in it; numbers are written as the language has
    them, and `count` decides the form. */
export function phrase(english, values = {}) {
  const entry = table[english] ?? english;
  const form = typeof entry === "string" ? entry : entry[forms.select(values.count)] ?? entry.other;
  return form.replace(/\{(\w+)\}/g, (place, name) => (name in values ? number(values[name]) : place));
}

/** A number as the language writes it; any other value as it is. */
export const number = (value) => (typeof value === "number" ? numbers.format(value) : value);

/** A share of 1 in percent. */
export const percent = (share) => (LANGUAGE === "en" ? `${Math.round(100 * share)} %` : shares.format(share));

/** A date with its time; "" where there is none. */
export const moment = (date) => (date ? times.format(new Date(date)) : "");

/** Puts the phrases of the language in place of the English ones of a page. */
function translate(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const {currentNode: node} = walker, english = node.data.replace(/\s+/g, " ").trim();
    if (node.parentElement.matches("kbd")) node.data = english.split(" ").map((key) => phrase(key)).join(" ");
    else if (english in table) node.data = node.data.replace(/\S[^]*\S|\S/, () => phrase(english));
  }
  for (const name of NAMED) {
    for (const element of root.querySelectorAll(`[${name}]`)) element.setAttribute(name, phrase(element.getAttribute(name)));
  }
}

/** Lets a person choose the language in a list; the page is then loaded anew. */
function chooseLanguage(list) {
  list.replaceChildren(...Object.entries(LANGUAGES).map(([code, name]) => new Option(name, code, false, code === LANGUAGE)));
  list.addEventListener("change", () => {
    localStorage.setItem(KEPT, list.value);
    location.reload();
  });
}

if (isPage) {
  document.documentElement.lang = LANGUAGE;
  translate(document.documentElement);
  const list = document.getElementById("language");
  if (list) chooseLanguage(list);
}
