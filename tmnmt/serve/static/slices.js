// Long work in slices, so that the page answers meanwhile.

const SLICE = 12;  // milliseconds

/** What `work` makes of each number below `count`, in order; null where `signal` was aborted meanwhile. */
export async function sliced(count, work, signal) {
  const results = [];
  for (let at = 0; at < count;) {
    const end = performance.now() + SLICE;
    do results.push(work(at++)); while (at < count && performance.now() < end);
    if (at < count) await new Promise((done) => setTimeout(done));
    if (signal?.aborted) return null;
  }
  return results;
}
