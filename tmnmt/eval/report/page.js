"use strict";
// The segments of a run, unpacked, sorted, filtered and shown a page at a time. What is chosen stands in the address
// behind the #, so that every view has a link. Data becomes text nodes and nothing else.
(async () => {
  const PAGE = 25, CHUNKS_HELD = 60, LONGEST_DIFF = 4e6, TYPING = 250;
  const UNKNOWN = "–";
  const ORDERS = {
    text: "order of the text", loss: "greatest loss first", gain: "greatest gain first",
    worst: "worst score first", best: "best score first",
  };
  const MEASURES = {
    bleu: { name: "sentence BLEU", sign: 1, show: (x) => x.toFixed(1) },
    edit_rate: { name: "edit rate", sign: -1, show: (x) => `${(100 * x).toFixed(0)} %` },
  };
  const ORIGINS = { memory: "from the memory", cache: "from the session cache", model: "from the model" };

  window.addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details.more")) part.open = true;
  });

  const index = JSON.parse(document.getElementById("index").textContent);
  const packed = [...document.querySelectorAll("script.chunk")];
  const browser = document.getElementById("browser");
  if (typeof DecompressionStream === "undefined") {
    browser.setAttribute("aria-busy", "false");
    browser.append(element("p", { class: "warning" },
      "This browser cannot unpack the segments: Chrome 80, Edge 80, Firefox 113 and Safari 16.4 are the first that can."));
    return;
  }
  const columns = await unpacked(document.querySelector("script.columns"));
  const numbers = rowNumbers();
  const held = new Map();
  const searched = { text: "", rows: null };
  let state, drawing = 0;

  // ---- data

  async function unpacked(script) {
    const binary = atob(script.textContent);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  }

  // The chunks used last are held, so that a page back and forth costs nothing and memory stays small.
  async function chunk(number) {
    const rows = held.get(number) ?? (await unpacked(packed[number]));
    held.delete(number);
    held.set(number, rows);
    if (held.size > CHUNKS_HELD) held.delete(held.keys().next().value);
    return rows;
  }

  async function segment(row) {
    return (await chunk(Math.floor(row / index.chunk)))[row % index.chunk];
  }

  function rowNumbers() {
    const count = index.tests.map(() => 0);
    return columns.test.map((test) => ++count[test]);
  }

  // One entry a row: whether the text stands in its source, reference or any output; null when the search was given up.
  async function rowsWith(text, told, current) {
    if (!text) return null;
    if (searched.text === text) return searched.rows;
    const wanted = folded(text);
    const rows = new Uint8Array(index.rows);
    for (let number = 0, row = 0; number < packed.length; number++) {
      for (const one of held.get(number) ?? (await unpacked(packed[number]))) {
        const texts = [one.src, ...one.refs, ...Object.values(one.out).map((output) => output[0])];
        rows[row++] = texts.some((each) => folded(each).includes(wanted)) ? 1 : 0;
      }
      if (!current()) return null;
      told(`Searching: ${Math.round((100 * (number + 1)) / packed.length)} %`);
    }
    searched.text = text;
    searched.rows = rows;
    return rows;
  }

  function folded(text) {
    return text.normalize("NFC").toLowerCase();
  }

  // How much better a row is than what it is compared with; NaN where one of the two is not known.
  function gain(row) {
    const scores = columns[state.measure];
    const [own, other] = [scores[state.system][row], scores[state.against]?.[row]];
    return own == null || other == null ? NaN : MEASURES[state.measure].sign * (own - other);
  }

  function chosenRows(withText) {
    const inDocument = state.document ? new Set(numbersOf(index.documents, state.document)) : null;
    const rows = [];
    for (let row = 0; row < index.rows; row++) {
      if (columns.test[row] !== state.test || (state.band >= 0 && columns.band[row] !== state.band)) continue;
      if ((inDocument && !inDocument.has(columns.document[row])) || (withText && !withText[row])) continue;
      rows.push(row);
    }
    return rows;
  }

  function numbersOf(names, part) {
    const wanted = folded(part);
    return names.flatMap((name, number) => (folded(name).includes(wanted) ? [number] : []));
  }

  function sorted(rows) {
    if (state.order === "text") return rows;
    const { sign } = MEASURES[state.measure];
    const score = (row) => sign * (columns[state.measure][state.system][row] ?? NaN);
    const key = { loss: gain, gain: (row) => -gain(row), worst: score, best: (row) => -score(row) }[state.order];
    const keys = new Map(rows.map((row) => [row, key(row)]));
    const last = (value) => (Number.isNaN(value) ? Infinity : value);
    return rows.sort((a, b) => {
      const [x, y] = [last(keys.get(a)), last(keys.get(b))];
      return x < y ? -1 : x > y ? 1 : a - b;
    });
  }

  // ---- what is chosen, and the address that says it

  function fromAddress() {
    const said = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
    const test = Math.max(0, index.tests.findIndex((one) => one.name === said.get("test")));
    const { systems, baseline, best } = index.tests[test];
    const named = (key) => systems.find((number) => index.systems[number] === said.get(key));
    const system = named("system") ?? best;
    const others = systems.filter((number) => number !== system);
    return {
      test, system, against: named("against") ?? (others.includes(baseline) ? baseline : others[0] ?? system),
      measure: Object.hasOwn(MEASURES, said.get("measure")) ? said.get("measure") : "bleu",
      order: Object.hasOwn(ORDERS, said.get("order")) ? said.get("order") : "text",
      band: index.bands.indexOf(said.get("band")), document: said.get("document") ?? "", text: said.get("text") ?? "",
      page: Math.max(1, Number.parseInt(said.get("page"), 10) || 1), all: said.get("all") === "1",
    };
  }

  function toAddress() {
    const said = new URLSearchParams({
      test: index.tests[state.test].name, system: index.systems[state.system], against: index.systems[state.against],
      measure: state.measure, order: state.order,
    });
    if (state.band >= 0) said.set("band", index.bands[state.band]);
    for (const key of ["document", "text"]) if (state[key]) said.set(key, state[key]);
    if (state.page > 1) said.set("page", state.page);
    if (state.all) said.set("all", "1");
    history.replaceState(null, "", `#${said}`);
  }

  function change(changes) {
    state = { ...state, page: 1, ...changes };
    toAddress();
    return draw();
  }

  // ---- elements

  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) if (value != null) made.setAttribute(name, value);
    made.append(...children.filter((child) => child != null));
    return made;
  }

  function choice(label, options, chosen, use) {
    const select = element("select", {});
    for (const [value, name] of options) {
      const option = element("option", { value }, name);
      option.selected = String(value) === String(chosen);
      select.append(option);
    }
    select.addEventListener("change", () => use(select.value));
    return element("label", {}, label, select);
  }

  function typed(label, value, use, suggestions) {
    const input = element("input", { type: "search", value, list: suggestions && "documents" });
    let waiting = 0;
    input.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => use(input.value.trim()), TYPING);
    });
    const list = suggestions && element("datalist", { id: "documents" },
      ...suggestions.map((name) => element("option", { value: name })));
    return element("label", {}, label, input, list);
  }

  function checked(label, value, use) {
    const input = element("input", { type: "checkbox" });
    input.checked = value;
    input.addEventListener("change", () => use(input.checked));
    return element("label", { class: "check" }, input, label);
  }

  // ---- the form

  function form() {
    const test = index.tests[state.test];
    const systems = test.systems.map((number) => [number, index.systems[number]]);
    const made = element("form", { class: "choices", role: "search", "aria-label": "Which segments, in which order" },
      index.tests.length > 1 ? choice("Test set", index.tests.map((one, i) => [i, one.name]), state.test, useTest) : null,
      choice("System", systems, state.system, (value) => again({ system: Number(value) })),
      choice("Compared with", systems, state.against, (value) => again({ against: Number(value) })),
      choice("Sorted by", Object.entries(ORDERS), state.order, (order) => change({ order })),
      choice("Measured in", Object.entries(MEASURES).map(([key, { name }]) => [key, name]), state.measure,
        (measure) => change({ measure })),
      choice("Match band", bandChoices(), state.band, (value) => change({ band: Number(value) })),
      typed("Document", state.document, (document) => change({ document }), documentsOf(state.test)),
      typed("Text", state.text, (text) => change({ text })),
      systems.length > 2 ? checked("all systems", state.all, (all) => change({ all })) : null);
    made.addEventListener("submit", (event) => event.preventDefault());
    return made;
  }

  function useTest(value) {
    location.hash = new URLSearchParams({ test: index.tests[Number(value)].name });
  }

  function again(changes) {
    change(changes);
    title();
  }

  function bandChoices() {
    const counts = index.bands.map(() => 0);
    columns.band.forEach((band, row) => { if (columns.test[row] === state.test) counts[band]++; });
    const there = index.bands.flatMap((name, band) =>
      counts[band] ? [[band, `${name || "not known"} (${counts[band].toLocaleString("en")})`]] : []);
    return [[-1, "all"], ...there];
  }

  function documentsOf(test) {
    const there = new Set(columns.document.filter((_, row) => columns.test[row] === test));
    return index.documents.filter((name, number) => name && there.has(number));
  }

  // ---- the list

  const key = element("p", { class: "key" },
    element("span", {}, element("mark", {}, "word"), " not in the reference (in a match: not in the source)"),
    element("span", {}, element("del", {}, "word"), " only there"),
    ...Object.entries(ORIGINS).map(([origin, what]) => element("span", { class: `from-${origin}` }, what)));
  const status = element("span", { role: "status" });
  const list = element("div", {});
  let heading;

  function title() {
    heading.replaceChildren(`${index.systems[state.system]} against ${index.systems[state.against]}`);
  }

  function build() {
    heading = element("h3", {});
    browser.replaceChildren(form(), element("div", { class: "pager" }, status), key, heading, list,
      element("div", { class: "pager" }));
    title();
  }

  async function draw() {
    const own = ++drawing;
    browser.setAttribute("aria-busy", "true");
    const current = () => own === drawing;
    const withText = await rowsWith(state.text, (text) => { status.textContent = text; }, current);
    if (!current()) return;
    const rows = sorted(chosenRows(withText));
    const pages = Math.max(1, Math.ceil(rows.length / PAGE));
    state.page = Math.min(state.page, pages);
    const shown = rows.slice((state.page - 1) * PAGE, state.page * PAGE);
    const segments = await Promise.all(shown.map(segment));
    if (!current()) return;
    status.textContent = counts(rows);
    for (const pager of browser.querySelectorAll(".pager")) turn(pager, pages);
    list.replaceChildren(...segments.map((one, i) => card(shown[i], one)));
    if (!rows.length) list.append(element("p", { class: "empty" }, "No segment is like that."));
    browser.setAttribute("aria-busy", "false");
  }

  function counts(rows) {
    const all = `${rows.length.toLocaleString("en")} segment${rows.length === 1 ? "" : "s"}`;
    if (state.system === state.against) return all;
    let better = 0, worse = 0, alike = 0;
    for (const row of rows) {
      const value = gain(row);
      if (value > 0) better++; else if (value < 0) worse++; else if (value === 0) alike++;
    }
    const [b, w, a] = [better, worse, alike].map((count) => count.toLocaleString("en"));
    return `${all}: ${b} better, ${w} worse, ${a} alike in ${MEASURES[state.measure].name}`;
  }

  function turn(pager, pages) {
    const to = (label, page) => {
      const button = element("button", { type: "button" }, label);
      button.disabled = page < 1 || page > pages;
      button.addEventListener("click", async () => {
        await change({ page });
        toSegments();
      });
      return button;
    };
    const where = element("span", {}, `page ${state.page.toLocaleString("en")} of ${pages.toLocaleString("en")}`);
    const buttons = [to("Previous", state.page - 1), where, to("Next", state.page + 1)];
    pager.replaceChildren(...(pager.contains(status) ? [status] : []), ...buttons);
  }

  function card(row, one) {
    const { systems, src, tgt } = index.tests[state.test];
    const shown = [...new Set([state.system, state.against, ...(state.all ? systems : [])])]
      .filter((number) => one.out[number]);
    const body = element("tbody", {}, line("Source", "", one.src, src),
      ...one.refs.map((ref, i) => line(i ? `Reference ${i + 1}` : "Reference", "", ref, tgt)),
      ...shown.map((number) => output(row, one, number, tgt)));
    return element("article", {}, cardHead(row, one), element("table", {}, body), more(one, shown, src, tgt));
  }

  function cardHead(row, one) {
    const value = gain(row);
    const { name, sign, show } = MEASURES[state.measure];
    const moved = sign * value;
    const text = Number.isNaN(value) || state.system === state.against ? null
      : `${name} ${moved > 0 ? "+" : moved < 0 ? "−" : "±"}${show(Math.abs(moved))}`;
    const match = one.best === null ? "" : `best match ${shownScore(one.matches[one.best])}`;
    const facts = [`position ${columns.position[row]}`, match || `band ${index.bands[columns.band[row]] || UNKNOWN}`];
    return element("header", {}, element("h3", {}, `Segment ${numbers[row].toLocaleString("en")}`),
      text && element("span", { class: "gain" }, text), element("bdi", {}, index.documents[columns.document[row]]),
      ...facts.map((fact) => element("span", {}, fact)));
  }

  function line(label, below, text, lang, chosen) {
    const cell = element("td", { lang: lang || null, dir: "auto" });
    cell.append(...(text === "" ? [element("span", { class: "empty" }, "empty")] : [text].flat()));
    return element("tr", { class: chosen ? "chosen" : null },
      element("th", { scope: "row" }, label, below && element("small", {}, below)), cell);
  }

  function output(row, one, number, lang) {
    const figures = Object.entries(MEASURES).flatMap(([key, { show }]) => {
      const value = columns[key][number][row];
      return value == null ? [] : [`${key === "bleu" ? "BLEU" : "edits"} ${show(value)}`];
    });
    const text = one.out[number][0];
    const shown = text === "" ? "" : differences(text, one.refs[0]);
    return line(index.systems[number], figures.join(", "), shown, lang, number === state.system);
  }

  // Matches and origins are put together when they are opened.
  function more(one, shown, src, tgt) {
    const explained = shown.filter((number) => one.out[number][2].length);
    if (!one.matches.length && !explained.length) return null;
    const label = [one.matches.length && `matches (${one.matches.length})`, explained.length && "origin of the words"];
    const summary = label.filter(Boolean).join(" and ");
    const made = element("details", {}, element("summary", {}, summary[0].toUpperCase() + summary.slice(1)));
    made.addEventListener("toggle", () => {
      if (made.childElementCount > 1) return;
      const rows = [...explained.map((number) => line(index.systems[number], "origin", origins(one.out[number][2]), tgt)),
        ...one.matches.flatMap((match, i) => matchLines(one, match, i, src, tgt))];
      made.append(element("table", {}, element("tbody", {}, ...rows)));
    });
    return made;
  }

  function origins(runs) {
    return runs.flatMap(([origin, text]) => {
      const known = Object.hasOwn(ORIGINS, origin) ? origin : "model";
      return [element("span", { class: `from-${known}`, title: ORIGINS[known] }, text), " "];
    });
  }

  function matchLines(one, match, number, src, tgt) {
    const [source, target, document] = match;
    const readers = Object.entries(one.out).filter(([, output]) => output[1].includes(number));
    const names = readers.map(([system]) => index.systems[system]).join(", ");
    const below = [document, names && `given to ${names}`].filter(Boolean).join("; ");
    return [line(`Match ${shownScore(match)}`, below, differences(source, one.src), src),
      line("Its target", "", target, tgt)];
  }

  function shownScore(match) {
    return match[3] == null ? UNKNOWN : match[3].toFixed(2);
  }

  // ---- differences, word by word

  // Letters of a script written without spaces stand alone, so that their texts are not one long word.
  function words(text) {
    const word = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]|[\p{L}\p{M}\p{N}_]+|[^\s]/gu;
    return [...text.matchAll(word)].map((found) => ({ text: found[0], from: found.index, to: found.index + found[0].length }));
  }

  // `text` as nodes: what `other` has not is marked, what only `other` has is put in, struck.
  function differences(text, other) {
    const [own, theirs] = [words(text), words(other)];
    const nodes = [];
    let at = 0, i = 0, j = 0;
    for (const [k, l] of [...common(own, theirs), [own.length, theirs.length]]) {
      if (i < k) {
        nodes.push(text.slice(at, own[i].from), element("mark", {}, text.slice(own[i].from, own[k - 1].to)));
        at = own[k - 1].to;
      }
      if (j < l) {
        const missing = element("del", {}, other.slice(theirs[j].from, theirs[l - 1].to));
        nodes.push(...(at ? [" ", missing] : [missing, " "]));
      }
      if (k < own.length) {
        nodes.push(text.slice(at, own[k].to));
        at = own[k].to;
      }
      [i, j] = [k + 1, l + 1];
    }
    return [...nodes, text.slice(at)];
  }

  // Index pairs of a longest common subsequence. Of texts too long for that, only their common ends.
  function common(own, theirs) {
    let head = 0, tail = 0;
    const least = Math.min(own.length, theirs.length);
    while (head < least && own[head].text === theirs[head].text) head++;
    while (tail < least - head && own.at(-1 - tail).text === theirs.at(-1 - tail).text) tail++;
    const [n, m] = [own.length - head - tail, theirs.length - head - tail];
    const pairs = Array.from({ length: head }, (_, i) => [i, i]);
    if (n * m <= LONGEST_DIFF) pairs.push(...subsequence(own, theirs, head, n, m));
    for (let i = tail; i > 0; i--) pairs.push([own.length - i, theirs.length - i]);
    return pairs;
  }

  function subsequence(own, theirs, head, n, m) {
    const width = m + 1, longest = new Uint16Array((n + 1) * width);
    for (let i = n - 1; i >= 0; i--) {
      for (let j = m - 1; j >= 0; j--) {
        longest[i * width + j] = own[head + i].text === theirs[head + j].text
          ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
      }
    }
    const pairs = [];
    for (let i = 0, j = 0; i < n && j < m;) {
      if (own[head + i].text === theirs[head + j].text) pairs.push([head + i++, head + j++]);
      else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i++;
      else j++;
    }
    return pairs;
  }

  // ---- start

  async function start() {
    state = fromAddress();
    build();
    await draw();
    if (location.hash.includes("=")) toSegments();
  }

  function toSegments() {
    const top = document.getElementById("segments");
    top.scrollIntoView();
    top.focus({ preventScroll: true });
  }

  window.addEventListener("hashchange", () => {
    if (location.hash.includes("=")) start();
  });
  start();
})();
