// Links between the sentences of two documents: {sources, targets, probability, decision}, in order, each with the numbers of
// its sentences. A change of some is {start, count, links}: which go, and what comes in their place. A link that a person has
// changed counts as accepted. Each function answers a change, or null where there is nothing to do.

const ALONE = {sources: [], targets: []};
const ordered = (numbers) => [...numbers].sort((one, other) => one - other);
const mended = (sources, targets) => ({sources: ordered(sources), targets: ordered(targets), probability: 1, decision: "accepted"});
const isEmpty = ({sources, targets}) => !sources.length && !targets.length;

/** The link and the next one become one. */
export function merge(links, at) {
  const [link, next] = [links[at], links[at + 1]];
  if (!next) return null;
  return {start: at, count: 2, links: [mended([...link.sources, ...next.sources], [...link.targets, ...next.targets])]};
}

/** The last sentence of each side becomes a link of its own; of a pair of two sentences each stands alone. */
export function split(links, at) {
  const {sources, targets} = links[at];
  if (sources.length + targets.length < 2) return null;
  if (sources.length === 1 && targets.length === 1) return {start: at, count: 1, links: [mended(sources, []), mended([], targets)]};
  const cut = (numbers) => Math.max(numbers.length - 1, Math.min(numbers.length, 1));
  const [first, second] = [cut(sources), cut(targets)];
  return {
    start: at, count: 1,
    links: [mended(sources.slice(0, first), targets.slice(0, second)), mended(sources.slice(first), targets.slice(second))],
  };
}

/** The boundary to the next link moves up on one side: the last sentence goes to the next link. */
export function boundaryUp(links, at, side) {
  const link = links[at], next = links[at + 1] ?? ALONE;
  if (!link[side].length) return null;
  const rest = {...link, [side]: link[side].slice(0, -1)};
  return moved(at, links, rest, {...next, [side]: [link[side].at(-1), ...next[side]]});
}

/** The boundary moves down: the first sentence of the next link comes to this one. */
export function boundaryDown(links, at, side) {
  const link = links[at], next = links[at + 1];
  if (!next?.[side].length) return null;
  return moved(at, links, {...link, [side]: [...link[side], next[side][0]]}, {...next, [side]: next[side].slice(1)});
}

function moved(at, links, ...pair) {
  const remaining = pair.filter((link) => !isEmpty(link)).map(({sources, targets}) => mended(sources, targets));
  return {start: at, count: Math.min(2, links.length - at), links: remaining};
}

/** What a person says of it: once more takes that back. */
export function decide(links, at, decision) {
  return {start: at, count: 1, links: [{...links[at], decision: links[at].decision === decision ? "" : decision}]};
}

/** The links after a change, and the change that takes it back. */
export function changed(links, {start, count, links: others}) {
  const former = links.slice(start, start + count);
  return [links.toSpliced(start, count, ...others), {start, count: others.length, links: former}];
}

export const isDoubtful = (link, below) => !link.decision && link.probability < below;

/** Stretches with doubtful links, each with one link before and behind: [from, to] without `to`, the most doubtful first.
    Stretches that touch are one. */
export function stretches(links, below) {
  const found = [];
  links.forEach((link, at) => {
    if (!isDoubtful(link, below)) return;
    const [from, to] = [Math.max(0, at - 1), Math.min(links.length, at + 2)];
    const last = found.at(-1);
    if (last && from <= last.to) Object.assign(last, {to, least: Math.min(last.least, link.probability)});
    else found.push({from, to, least: link.probability});
  });
  return found.sort((one, other) => one.least - other.least).map(({from, to}) => [from, to]);
}
