// Names of what is pressed, whatever the layout of the keyboard and Caps Lock.

const HELD = [["ctrl", "ctrlKey"], ["ctrl", "metaKey"], ["shift", "shiftKey"], ["alt", "altKey"]];

/** "ctrl Enter", "ctrl k", "ctrl 1". A digit is its key, also where it needs Shift, as on French keyboards. A letter is
    what it types, and its key where that types no Latin letter, as on Greek or Russian ones. */
export function keyOf(event) {
  const held = HELD.filter(([, is]) => event[is]).map(([name]) => name);
  return [...new Set(held), sign(event)].join(" ");
}

function sign({key, code = ""}) {
  const [, digit] = /^Digit(\d)$/.exec(code) ?? [];
  if (digit) return digit;
  if (/^[a-z]$/i.test(key)) return key.toLowerCase();
  const [, letter] = /^Key([A-Z])$/.exec(code) ?? [];
  return letter ? letter.toLowerCase() : key;
}
