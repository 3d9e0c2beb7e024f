// What others change in a document, as soon as the server tells it.

export const WAITS = [1, 2, 5, 10, 20, 30];  // seconds before what failed is tried again

/** Whether the server may answer later: it was not there, or too busy. */
export const isPassing = ({status}) => status === undefined || status === 429 || status >= 500;

/** Asks for changes again and again until `signal` ends it. Throws where the server refuses to tell them.
    changes: the request, given the version and the stamp that are known; it answers {version, stamp, …}.
    version: from which changes are asked for. take: given every answer. */
export async function follow(changes, version, take, signal) {
  let stamp = "";  // of the people who are there
  for (let failures = 0; !signal.aborted;) {
    try {
      const answer = await changes(version, stamp);
      failures = 0;
      await take(answer);
      ({version, stamp} = answer);
    } catch (error) {
      if (signal.aborted) return;
      if (!isPassing(error)) throw error;
      await new Promise((done) => setTimeout(done, 1000 * WAITS[Math.min(failures++, WAITS.length - 1)]));
    }
  }
}
