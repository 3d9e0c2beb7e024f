"""Work beside the loop: whatever goes wrong in it, who waits is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from serving import Server

from tmnmt.serve.keys import ANYBODY
from tmnmt.serve.service import _Pool


def nothing() -> str:
    empty: Iterator[str] = iter(())
    return next(empty)


def test_an_iterator_that_ends_in_a_thread_holds_up_nobody() -> None:
    async def asked(pool: _Pool) -> None:
        for _ in range(3):  # more than there are threads
            with pytest.raises(RuntimeError, match="an iterator has ended"):
                await asyncio.wait_for(pool.do(nothing), 30)
        assert await asyncio.wait_for(pool.do(lambda: "done"), 30) == "done"

    pool = _Pool("test", 2, 8)
    asyncio.run(asked(pool))
    pool.stop()


def test_nor_in_the_thread_of_a_model(served: Server) -> None:
    async def asked() -> None:
        with pytest.raises(RuntimeError, match="an iterator has ended"):
            model = served.service.models[0]
            work = served.service.at_work(model, ANYBODY, "a", "", nothing)
            await asyncio.wait_for(work, 30)

    asyncio.run(asked())
