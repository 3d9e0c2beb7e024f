// What a person ticks on the page. The browser remembers it.

const $ = (id) => document.getElementById(id);
const KEPT = "tmnmt.field";  // where the browser keeps what was chosen

/** What a person has chosen; where the browser keeps nothing, as the page begins. */
function chosen() {
  try {
    return JSON.parse(localStorage.getItem(KEPT)) ?? {};
  } catch {
    return {};
  }
}

function keep(choice) {
  try {
    localStorage.setItem(KEPT, JSON.stringify({...chosen(), ...choice}));
  } catch {
    // it is as chosen until the page is closed
  }
}

/** A box that is ticked or not, as it was the last time; `apply` is called with that, now and at every change. */
export function choice(id, initial, apply) {
  const box = $(id);
  box.checked = chosen()[id] ?? initial;
  const change = () => apply(box.checked);
  box.addEventListener("change", () => {
    keep({[id]: box.checked});
    change();
  });
  change();
}
