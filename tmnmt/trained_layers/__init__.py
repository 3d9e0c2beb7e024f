"""Memory layers with learned parameters, as a plug-in: the session cache (Tu et al. 2018), TM copy
and TM fusion (Gu et al. 2018), and neighbours of the whole memory beside them.

Training and evaluation import it; what a translation needs of it, the core finds by
`tmnmt.registry` alone."""

from __future__ import annotations

from tmnmt.config.options import ReadingMode
from tmnmt.registry import register

for mode in ("copy", "fusion", "both"):
    register("mode", mode, ReadingMode(), successor="nearest")
register("layer", "cache", "tmnmt.trained_layers.cache:SessionCache", successor="nearest")
register("layer", "tm", "tmnmt.trained_layers.tm:TranslationMemory", successor="nearest")
register("derived keys", "search", "tmnmt.trained_layers.key_search:SearchFiles")
register("memory search", "neighbours", "tmnmt.trained_layers.neighbours:NeighbourSearch")
