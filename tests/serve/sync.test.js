// The way of drafts to the server and back, without a page and without a server: run by test_segments.py.

import assert from "node:assert/strict";
import {mock, test} from "node:test";
import {pathToFileURL} from "node:url";

const folder = pathToFileURL(process.env.TMNMT_PAGE + "/").href;
const {happen, segment, textOf} = await import(`${folder}segments.js`);
const {Sync} = await import(`${folder}sync.js`);
const {Kept} = await import(`${folder}kept.js`);

/** As localStorage is. */
class Storage {
  #items = new Map();
  get length() { return this.#items.size; }
  key(at) { return [...this.#items.keys()][at]; }
  getItem(name) { return this.#items.get(name) ?? null; }
  setItem(name, value) { this.#items.set(name, value); }
  removeItem(name) { this.#items.delete(name); }
}

class Full extends Storage {
  setItem() { throw new Error("full"); }
}

/** A server of one document, which may be away, and tells of nothing by itself. */
class Server {
  isAway = false;
  version = 1;
  requests = [];
  listening = [];

  constructor(count) {
    this.records = Array.from({length: count}, (_, at) => (
      {number: at + 1, source: `Line ${at}.`, file: {target: null, state: "new"}, text: null, confirmed: null, state: "untouched", version: 1, by: "", checks: [], comments: []}));
  }

  write(number, text, by) {
    this.version++;
    Object.assign(this.records[number - 1], {text, by, state: "draft", version: this.version});
    return {...this.records[number - 1]};
  }

  async writeDrafts(id, drafts) {
    this.requests.push(drafts);
    if (this.isAway) throw new Error("away");
    const answer = {segments: [], conflicts: []};
    for (const {number, version, text} of drafts) {
      if (this.records[number - 1].version > version) answer.conflicts.push({...this.records[number - 1]});
      else answer.segments.push(this.write(number, text, "you"));
    }
    return answer;
  }

  changes(id, since, stamp, signal) {
    return new Promise((done, failed) => {
      signal.addEventListener("abort", () => failed(new Error("ended")));
      this.listening.push(() => done({version: this.version, segments: this.records.filter((record) => record.version > since).map((record) => ({...record})), people: [], stamp: ""}));
    });
  }

  tell() { this.listening.splice(0).forEach((answer) => answer()); }
}

let tabs = 0;

/** A page that has the document open. */
function page(server, storage, isBusy = () => false) {
  const open = {about: {id: "d"}, units: server.records.map((record) => segment({...record})), version: server.version};
  const told = [];
  const hooks = {drawn: () => {}, about: () => {}, people: () => {}, state: (what) => told.push(what), refused: (error) => told.push(error.message)};
  const sync = new Sync(open, server, new Kept("d", `tab${tabs++}`, storage), hooks, isBusy);
  const write = (at, text) => {
    happen(open.units[at], "write", {text});
    sync.written(at);
  };
  sync.start();
  return {open, sync, told, write, text: (at) => textOf(open.units[at])};
}

const rest = async (milliseconds = 0) => {
  mock.timers.tick(milliseconds);
  for (let turn = 0; turn < 30; turn++) await Promise.resolve();
};

async function timed(work) {
  mock.timers.enable({apis: ["setTimeout"]});
  try {
    await work();
  } finally {
    mock.timers.reset();
  }
}

test("a draft goes to the server when somebody pauses, and is not kept here any more", () => timed(async () => {
  const server = new Server(3), storage = new Storage(), a = page(server, storage);
  for (const text of ["N", "Nu", "Nul."]) a.write(1, text);
  assert.equal(storage.length, 1);
  await rest(400);
  assert.deepEqual([server.requests.length, server.records[1].text, storage.length], [1, "Nul.", 0]);
}));

test("while the server is away nothing is lost, and it is sent in one request when the server is there again", () => timed(async () => {
  const server = new Server(500), storage = new Storage(), a = page(server, storage);
  server.isAway = true;
  for (let at = 0; at < 150; at++) {
    a.write(at, `Ligne ${at}.`);
    await rest(100);
  }
  assert.deepEqual([storage.length, a.told[0], a.sync.waiting], [150, "waiting", 150]);
  server.isAway = false;
  const before = server.requests.length;
  await rest(30_000);
  assert.equal(server.requests.length, before + 1);
  assert.deepEqual([storage.length, a.told.at(-1), a.sync.waiting], [0, "sent", 0]);
  assert.deepEqual(server.records.slice(0, 150).map(({text}) => text), Array.from({length: 150}, (_, at) => `Ligne ${at}.`));
}));

test("a tab that is closed while the server is away loses nothing", () => timed(async () => {
  const server = new Server(3), storage = new Storage(), a = page(server, storage);
  server.isAway = true;
  a.write(1, "Nul.");
  await rest(400);
  a.sync.stop();
  server.isAway = false;
  const b = page(server, storage);
  assert.equal(b.text(1), "Nul.");
  await rest(400);
  assert.deepEqual([server.records[1].text, storage.length], ["Nul.", 0]);
}));

test("two tabs that are closed while the server is away lose neither text of one segment", () => timed(async () => {
  const server = new Server(3), storage = new Storage(), a = page(server, storage), b = page(server, storage);
  server.isAway = true;
  a.write(1, "de A");
  b.write(1, "de B");
  a.sync.stop();
  b.sync.stop();
  server.isAway = false;
  const c = page(server, storage);
  const {others} = c.open.units[1];
  assert.deepEqual([c.text(1), ...others.map(({text}) => text)].sort(), ["de A", "de B"]);
  c.sync.stop();
  const d = page(server, storage);
  assert.deepEqual([d.text(1), ...d.open.units[1].others.map(({text}) => text)].sort(), ["de A", "de B"]);
}));

test("of two who write one segment none loses a text, and the server keeps the first until the second goes on", () => timed(async () => {
  const server = new Server(3), busy = () => true, a = page(server, new Storage(), busy), b = page(server, new Storage(), busy);
  a.write(0, "de A");
  b.write(0, "de B");
  await rest(400);
  assert.equal(server.records[0].text, "de A");
  assert.deepEqual([b.text(0), b.open.units[0].others.map(({text}) => text)], ["de B", ["de A"]]);
  await rest(60_000);
  assert.equal(server.records[0].text, "de A");
  b.write(0, "de B, et plus");
  await rest(400);
  server.tell();
  await rest();
  assert.equal(server.records[0].text, "de B, et plus");
  assert.deepEqual([a.text(0), a.open.units[0].others.map(({text}) => text)], ["de A", ["de B, et plus"]]);
}));

test("what is typed while a draft is on its way is sent after it", () => timed(async () => {
  const server = new Server(1), a = page(server, new Storage());
  const write = server.writeDrafts.bind(server);
  let arrive;
  server.writeDrafts = async (...given) => { await new Promise((done) => { arrive = done; }); return write(...given); };
  a.write(0, "Nul");
  await rest(400);
  a.write(0, "Nul.");
  await rest(400);
  arrive();
  await rest();
  await rest(400);
  arrive();
  await rest();
  assert.deepEqual([server.records[0].text, a.text(0), a.sync.waiting], ["Nul.", "Nul.", 0]);
}));

test("a browser that can keep nothing says so, and asks before the tab is closed while something waits", () => timed(async () => {
  const server = new Server(1), a = page(server, new Full());
  server.isAway = true;
  a.write(0, "Nul.");
  assert.deepEqual([a.told, a.sync.isAtRisk], [["lost"], true]);
  await rest(400);
  server.isAway = false;
  await rest(1000);
  assert.equal(a.sync.isAtRisk, false);
}));

test("a draft that the server will never take is not sent for ever", () => timed(async () => {
  const server = new Server(1), a = page(server, new Storage());
  server.writeDrafts = async () => {
    server.requests.push(1);
    throw Object.assign(new Error("too long"), {status: 413});
  };
  a.write(0, "Nul.");
  await rest(400);
  await rest(600_000);
  assert.deepEqual([server.requests.length, a.told, a.text(0)], [1, ["too long"], "Nul."]);
}));
