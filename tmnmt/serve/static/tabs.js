// Tabs of this browser that have the same document open: each tells the others what it has kept.

export const TAB = crypto.randomUUID?.() ?? [...crypto.getRandomValues(new Uint32Array(4))].join("-");

export class Tabs {
  /** `document`: the id of its session. `told`: called with what another tab tells, {kind, …}. */
  constructor(document, told) {
    this._document = document;
    this._channel = new BroadcastChannel("tmnmt");
    this._channel.addEventListener("message", ({data}) => {
      if (data.document !== document) return;
      if (data.kind === "hello") this.tell("here");
      told(data);
    });
  }

  tell(kind, more = {}) {
    this._channel.postMessage({...more, kind, document: this._document});
  }
}
