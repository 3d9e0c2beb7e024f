// Elements of the page.

/** An element of this name and class. */
export function el(name, kind, ...children) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  made.append(...children);
  return made;
}

/** One with a text of this language. */
export function text(name, language, ...children) {
  const made = el(name, "text", ...children);
  made.lang = language;
  made.dir = "auto";
  return made;
}
