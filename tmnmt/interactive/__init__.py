"""Interactive translation: what a translation may look like behind the words that somebody has
typed of it.

Begin with `CompletionCache.state_of` in `cache.py`, which gives the state of a sentence that
somebody works on. It stands above the engine, which does not know of it."""
