"""Copies between two connections."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio

    # Of one connection.
    Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

CHUNK_BYTES = 1 << 16
# Chosen: longer than a server works on an answer without sending a byte.
IDLE_SECONDS = 900


async def splice(one: Streams, other: Streams):
    """Copies until both sides have ended, one fails, or both were silent for IDLE_SECONDS. Each side is a reader and a writer,
    which stay open."""
    import asyncio

    copied = 0

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        nonlocal copied
        while data := await reader.read(CHUNK_BYTES):
            copied += len(data)
            writer.write(data)
            # Waits if the other side reads slowly, so that memory is bounded by the streams' own limits.
            await writer.drain()
        writer.write_eof()

    running = {asyncio.ensure_future(copy(one[0], other[1])), asyncio.ensure_future(copy(other[0], one[1]))}
    try:
        while running:
            before = copied
            done, running = await asyncio.wait(running, timeout=IDLE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            if not done and copied == before:
                return
    finally:
        for task in running:
            task.cancel()
