// How much of what was suggested was changed, as numbers and pictures.

import {el, text} from "./elements.js";
import {drawDiff} from "./offer.js";
import {moment, number, percent, phrase} from "./phrases.js";

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 620, HEIGHT = 220, LEFT = 52, BOTTOM = 24, TOP = 8;
const MEAN = 10;  // segments
const MOST = 500;  // pairs that are shown

const sum = (values) => values.reduce((total, x) => total + x, 0);
const atMost1 = (x) => Math.min(1, x);

function svg(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** A picture of values in the order of segments: a line, and dots where they are given. Its height is 0 to `least`
    or more. */
function chart(title, line, dots, least, label) {
  const every = [0, least, ...line, ...dots];
  const [low, high] = [Math.min(...every), Math.max(...every)];
  const x = (at) => LEFT + (WIDTH - LEFT - 10) * (line.length > 1 ? at / (line.length - 1) : 0.5);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - low) / (high - low));
  const made = svg("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title});
  for (const value of [...new Set([low, 0, (low + high) / 2, high])]) {
    made.append(svg("line", {class: "grid", x1: LEFT, x2: WIDTH, y1: y(value), y2: y(value)}),
      svg("text", {x: LEFT - 8, y: y(value) + 4, "text-anchor": "end"}, label(value)));
  }
  dots.forEach((value, at) => made.append(svg("circle", {class: "dot", cx: x(at), cy: y(value), r: 3})));
  const points = line.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  made.append(svg("polyline", {class: "line", points}));
  if (line.length === 1) made.append(svg("circle", {class: "dot", cx: x(0), cy: y(line[0]), r: 4}));
  made.append(svg("text", {x: LEFT, y: HEIGHT - 6}, "1"),
    svg("text", {x: WIDTH - 10, y: HEIGHT - 6, "text-anchor": "end"}, phrase("{count} segments", {count: line.length})));
  return made;
}

const rate = (pairs) => sum(pairs.map((one) => one.edits)) / (sum(pairs.map((one) => one.tokens)) || 1);

/** Draws the review of a session, as the server has it; its pairs where `areListed`. */
export function drawFigures({segments, source, target}, areListed) {
  const pairs = segments.filter((one) => one.suggested !== null);
  for (const section of document.querySelectorAll(".figures section")) section.hidden = !pairs.length;
  $("pairs-listed").hidden = !areListed || !pairs.length;
  const saved = [];
  for (const one of pairs) saved.push((saved.at(-1) ?? 0) + one.characters - one.typed);
  const characters = sum(pairs.map((one) => one.characters));
  const tiles = [
    [number(segments.length), phrase("segments confirmed")],
    [percent(rate(pairs)), phrase("of the words changed")],
    [percent(pairs.filter((one) => !one.edits).length / pairs.length), phrase("of the segments taken as suggested")],
    [percent((saved.at(-1) ?? 0) / (characters || 1)), phrase("of the keystrokes saved")],
  ];
  $("tiles").replaceChildren(...(pairs.length ? tiles : []).map(([number, what]) => el("p", "tile", el("b", "", number), what)));
  if (!pairs.length) return;
  const means = pairs.map((_, at) => atMost1(rate(pairs.slice(Math.max(0, at + 1 - MEAN), at + 1))));
  const rates = pairs.map((one) => atMost1(one.edits / (one.tokens || 1)));
  $("rate").replaceChildren(chart(phrase("Edit rate: {rate} in the last segments", {rate: percent(means.at(-1))}), means, rates, 0.2, percent));
  $("saved").replaceChildren(chart(phrase("Saved keystrokes: {count}", {count: saved.at(-1)}), saved, [], 10, (x) => String(Math.round(x))));
  if (areListed) $("pairs").replaceChildren(...pairs.slice(-MOST).reverse().map((one) => el("li", "",
    Object.assign(text("p", source, one.src), {className: "text quiet"}), text("p", target, ...drawDiff(one.suggested, one.tgt)),
    el("p", "quiet", [moment(one.at), edited(one), keystrokes(one)].join(" · ")))));
}

const edited = ({edits, tokens}) => phrase("{edits} of {count} words changed", {edits, count: tokens});
const keystrokes = ({typed: count, counted}) => (counted ? phrase("{count} keystrokes", {count}) : phrase("{count} keystrokes at least", {count}));
