// The document here and on the server: drafts go there, what others do comes here. Whatever happens on the way, what was
// written stays, and the browser keeps it until the server has it.

import {WAITS, follow, isPassing} from "./follow.js";
import {happen, unsent, xmlOf} from "./segments.js";

const PAUSE = 400;  // milliseconds from the first letter to the request that takes it, with all that was written by then
const MOST = 200;  // drafts of one request

export class Sync {
  /** open: the document, with `about`, `units` and the `version` up to which changes are known. server: the calls
      (document.js). kept: what the browser keeps (kept.js). hooks: {drawn(at), about(document), people(list), state(what),
      refused(error)}: called when a segment has changed by what came, with what is known of the document by then, when others
      came or went, with "sent", "waiting" or "lost" (nothing can be kept here), and with what the server says to drafts that it
      does not take. */
  constructor(open, server, kept, hooks, isBusy = () => false) {
    Object.assign(this, {_open: open, _server: server, _kept: kept, _hooks: hooks, _isBusy: isBusy});
    this._dirty = new Set();
    this._sending = null;
    this._timer = 0;
    this._failures = 0;
    this._isAway = false;  // whether it was told that the server does not answer
    this._canKeep = true;
    this._stamp = "";  // of the people who are there
    this._end = new AbortController();
  }

  /** How many segments the server has not taken yet. */
  get waiting() { return this._open.units.reduce((count, unit) => count + unit.isUnsent, 0); }

  /** Whether something would be lost if the page were closed now. */
  get isAtRisk() { return !this._canKeep && this.waiting > 0; }

  /** What the browser has kept comes into the segments; then drafts are sent, and changes are listened for. A draft beside
      which somebody else has written waits until a person decides. */
  start() {
    for (const [number, record] of this._kept.all()) {
      const at = number - 1, unit = this._open.units[at];
      if (!unit) continue;
      const isCurrent = record.version === unit.version;
      happen(unit, "restore", record);
      if (isCurrent) this.written(at);
      else this._keep(at);
    }
    if (this._canKeep) this._kept.takeOver();
    this._listen();
  }

  stop() {
    this._end.abort();
    clearTimeout(this._timer);
  }

  /** A segment was written here. */
  written(at) {
    this._keep(at);
    if (!this._open.units[at].isUnsent) return;
    this._dirty.add(at);
    this._plan(PAUSE);
  }

  _keep(at) {
    const unit = this._open.units[at];
    const canKeep = this._kept.put(unit.number, unsent(unit));
    if (!canKeep && this._canKeep) this._hooks.state("lost");
    this._canKeep = canKeep;
  }

  /** Sends at once what waits, where the server can be reached. */
  async flush() {
    await this.landed;
    await this._send();
  }

  /** A record that the server has answered with comes into its segment. */
  take(record, event = "adopt", more = {}) {
    const at = record.number - 1, unit = this._open.units[at];
    const isBusy = this._isBusy(at);
    if (!happen(unit, event, {record, isBusy, ...more})) return;
    if (event === "revert") this.written(at);
    else this._keep(at);
    this._hooks.drawn(at);
  }

  _plan(milliseconds) {
    if (!this._timer) this._timer = setTimeout(() => this._send(), milliseconds);
  }

  /** Once what is on its way to the server has arrived, or not. */
  get landed() { return this._sending ?? Promise.resolve(); }

  async _send() {
    clearTimeout(this._timer);
    this._timer = 0;
    if (this._sending) {
      await this._sending;
      if (this._dirty.size) this._plan(PAUSE);
      return;
    }
    const {units} = this._open;
    const numbers = [...this._dirty].filter((at) => units[at].isUnsent && units[at].state !== "confirming").slice(0, MOST);
    for (const at of numbers) this._dirty.delete(at);
    if (!numbers.length) return;
    this._sending = this._post(numbers).finally(() => { this._sending = null; });
    await this._sending;
    if (this._dirty.size && !this._end.signal.aborted) this._plan(PAUSE);
  }

  async _post(numbers) {
    const {about, units} = this._open;
    for (const at of numbers) happen(units[at], "fly");
    const drafts = numbers.map((at) => ({number: at + 1, version: units[at].version, text: xmlOf(units[at], units[at].text)}));
    try {
      const answer = await this._server.writeDrafts(about.id, drafts);
      for (const record of answer.segments) this.take(record, "land");
      for (const record of answer.conflicts) this.take(record, "conflict");
      this._failures = 0;
      this._arrived();
    } catch (error) {
      for (const at of numbers) happen(units[at], "drop");
      if (isPassing(error)) this._retry(numbers);
      else this._hooks.refused(error, numbers);
    }
  }

  _retry(numbers) {
    for (const at of numbers) this._dirty.add(at);
    const seconds = WAITS[Math.min(this._failures, WAITS.length - 1)];
    this._failures++;
    this.missed();
    clearTimeout(this._timer);
    this._timer = setTimeout(() => this._send(), 1000 * seconds);
  }

  /** The server did not answer something. */
  missed() {
    if (!this._isAway) this._hooks.state("waiting");
    this._isAway = true;
  }

  _arrived() {
    if (this._isAway) this._hooks.state("sent");
    this._isAway = false;
  }

  /** Listens for changes, as long as the document is open. */
  _listen() {
    const {signal} = this._end, {about, version} = this._open;
    const take = ({segments, people, stamp, ...answer}) => {
      for (const record of segments) this.take(record);
      this._open.version = answer.version;
      this._hooks.about(answer.about);
      if (stamp !== this._stamp) this._hooks.people(people);
      this._stamp = stamp;
      if (this._failures) this.flush();  // the server is there again
      else this._arrived();
    };
    const changes = async (since, stamp) => {
      try {
        return await this._server.changes(about.id, since, stamp, signal);
      } catch (error) {
        if (isPassing(error) && !signal.aborted) this.missed();
        throw error;
      }
    };
    follow(changes, version, take, signal).catch((error) => this._hooks.refused(error, []));
  }
}
