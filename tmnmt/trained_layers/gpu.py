"""FAISS on GPUs, where faiss-gpu is installed and sees any; without one, all of this does nothing.

Only where the work is done changes: an index lies on disk as the CPU's, it is learnt by the same
rules (a GPU's own training would make centroids of equal length), and what it finds is scored again
from the raw keys. Run with faiss-gpu 1.15.1 on an NVIDIA H200 (benchmarks/README.md)."""

from __future__ import annotations

from typing import Any


def train(index: Any, sample: Any) -> None:
    """Trains an index of the CPU on the keys (n, l) float32; the lists of an inverted one are found
    by the GPUs."""
    import faiss

    if _helps(index):
        assigning = faiss.index_cpu_to_all_gpus(faiss.IndexFlatL2(index.d))
        # of every key to its nearest centroid: all that takes time
        index.clustering_index = assigning
        index.train(sample)
        index.clustering_index = None
    else:
        index.train(sample)


def on_gpus(index: Any) -> Any:
    """The index on all GPUs, its lists shared out among them; a graph stays on the CPU."""
    import faiss

    if not _helps(index):
        return index
    options = faiss.GpuMultipleClonerOptions()
    options.useFloat16 = options.shard = True
    return faiss.index_cpu_to_all_gpus(index, options)


def on_cpu(index: Any) -> Any:
    """The index as the CPU's, which is the one that is written."""
    import faiss

    return faiss.index_gpu_to_cpu(index) if faiss.get_num_gpus() and not _of_cpu(index) else index


def _helps(index: Any) -> bool:
    import faiss

    return bool(faiss.get_num_gpus()) and isinstance(index, faiss.IndexIVF)


def _of_cpu(index: Any) -> bool:
    import faiss

    return isinstance(index, faiss.IndexIVF | faiss.IndexHNSW)
