// Texts with their tags as chips, and with signs that nobody sees, as elements.

import {invisible, isThin} from "./invisible.js";
import {phrase} from "./phrases.js";

/** The parts of a text with signs of tags, in order: {text, chip}, {text, invisible} or {text}, each with its place. */
export function parts(text, chips, areShown) {
  const found = [];
  let at = 0;
  for (const sign of text) {
    const chip = chips.of(sign), hidden = areShown ? invisible(sign) : undefined;
    const last = found.at(-1);
    if (chip || hidden) found.push({at, text: sign, chip, invisible: hidden});
    else if (last && !last.chip && !last.invisible) last.text += sign;
    else found.push({at, text: sign});
    at += sign.length;
  }
  return found;
}

/** The elements of a text. as: "signs" where they have to be as wide as in a field, "tags" where the text is to be read,
    heard and copied. */
export function drawn(text, chips, {areShown = false, as = "tags", wrong = new Set()} = {}) {
  return parts(text, chips, areShown).map(({at, text, chip, invisible}) => {
    if (chip) return drawnChip(chip, as, wrong.has(at));
    return invisible ? drawnSign(invisible) : text;
  });
}

/** The elements of a text that has its tags written out. */
export function drawnTags(text, chips, areShown = false) {
  return chips.isNone && !areShown ? [text] : drawn(chips.signs(text), chips, {areShown});
}

function drawnChip(chip, as, isWrong) {
  const made = document.createElement("span");
  made.className = `chip ${chip.kind} ${as}${isWrong ? " wrong" : ""}`;
  made.textContent = chip[{signs: "sign", tags: "tag"}[as]];
  made.dataset.label = chip.label;
  made.dataset.told = isWrong ? phrase("{tag} (too often, or before its start)", {tag: chip.told}) : chip.told;
  if (as === "tags") {
    made.role = "img";
    made.ariaLabel = made.title = chip.told;
  }
  return made;
}

function drawnSign(one) {
  const {sign, mark, name} = one, made = document.createElement("span");
  made.className = isThin(one) ? "sign thin" : "sign";
  made.textContent = sign;
  made.dataset.mark = mark;
  if (name) made.dataset.told = name;
  return made;
}
