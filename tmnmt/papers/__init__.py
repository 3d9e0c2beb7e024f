"""What the papers name and the product does not need, as a plug-in: DeepLAU, reference and context
networks, kNN interpolation, training end to end, the session cache of own words, gates tuned
together, further ways to select pairs, and their commands.

It imports the core, and the core finds it by `tmnmt.registry` alone."""

from __future__ import annotations

from tmnmt.config.options import ReadingMode
from tmnmt.registry import register

register("base", "deeplau", "tmnmt.papers.deeplau:DeepLAU", successor="transformer")
register("network", "reference", "tmnmt.papers.reference_network:Referring")
register("network", "context", "tmnmt.papers.context_network:InDocument")
register("network trainer", "reference", "tmnmt.papers.reference_training:ReferenceTrainer")
# 16 neighbours: chosen on dev, docs/results-neighbours.md
register("mode", "knn", ReadingMode(retrieves=False, neighbours=16), successor="off")
register("voting", "knn", "tmnmt.papers.knn:voting_of")
register("layer", "knn", "tmnmt.papers.interpolation:Interpolation")
register("TM trainer", "end to end", "tmnmt.papers.end_to_end:tm_part")
register("cache trainer", "end to end", "tmnmt.papers.end_to_end:cache_part")
register("cache history", "own", "tmnmt.papers.own_words:own_words")
register("joint trainer", "gates", "tmnmt.papers.gate_tuning:gates_part")
register("selection", "walk", "tmnmt.papers.selection:walk")
register("selection", "contrastive", "tmnmt.papers.selection:contrastive")
register("similarity", "bleu", "tmnmt.papers.selection:BLEU")
register("command", "adapt-knn", "tmnmt.papers.commands:adapt_knn", successor="get-model")
register("command", "adapt-context", "tmnmt.papers.commands:adapt_context", "get-model")
register("command", "adapt-reference", "tmnmt.papers.commands:adapt_reference", "get-model")
