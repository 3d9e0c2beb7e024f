// Tells others where this page is at work.

const EVERY = 20_000;  // milliseconds; the server forgets a page that says nothing for twice as long
const SOON = 500;  // milliseconds in a segment before others are told

export class Presence {
  constructor(desk, server) {
    this._tab = crypto.randomUUID?.() ?? [...crypto.getRandomValues(new Uint32Array(4))].join("-");
    this._tell = () => {
      const {about, at} = desk.open;
      server.tellPresence(about.id, this._tab, at < 0 ? null : at + 1).catch(() => {});  // whoever is there is told later
    };
    let timer = 0;
    desk.on("at", () => {
      clearTimeout(timer);
      timer = setTimeout(this._tell, SOON);
    });
    setInterval(this._tell, EVERY);
  }

  /** Names this page among those of all people. */
  get tab() { return this._tab; }
}
