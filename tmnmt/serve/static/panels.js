// Parts of the page that register themselves. Each is started once, with the desk (desk.js), before a document is open:
//
//     panel((desk) => { desk.on("at", ({at}) => draw(desk.open.units[at])); });
//
// What they are told, in the order in which they were registered:
//
//     opened {}            a document is open
//     at {at}              another segment is at work
//     leave {at}           no segment is at work any more
//     typed {at}           the text in the field has changed, by whatever
//     unit {at}            a segment has changed: its text, state, checks or what others say of it
//     offer {offer, goesOn}  a suggestion came; null where there is none any more; goesOn: with what was typed
//     word {word}          a word of the suggestion is pointed at; null where none is any more
//     sending {at}         a request to confirm it is on its way
//     confirmed {at}, refused {at}  what came of that
//     again {}             the segment at work is to be suggested anew: terms have changed, or the server answers again
//     about {}             what is known of the document has changed
//     people {people}      who else has the document open: [{name, number}]
//     field {}             something has changed on which buttons beside the field depend

const starters = [];

/** Registers a part; `start` is called with the desk. */
export const panel = (start) => { starters.push(start); };

export function startPanels(desk) {
  for (const start of starters) start(desk);
}

/** Listeners by the event that they wait for. */
export class Listeners {
  constructor() {
    this._of = new Map();
  }

  on(event, listener) {
    if (!this._of.has(event)) this._of.set(event, []);
    this._of.get(event).push(listener);
  }

  tell(event, detail = {}) {
    for (const listener of this._of.get(event) ?? []) listener(detail);
  }
}
