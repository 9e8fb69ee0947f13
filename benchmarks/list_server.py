"""A process that answers LIST of one made-up resource with many objects, page by page, as the API server would.

Prints its port on standard output; ends when its standard input closes.
"""

from __future__ import annotations

import asyncio
import sys
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import msgspec

OBJECTS = 40_000
_VERSION = 1_000_000


def encoded(number: int) -> bytes:
    """Return a managed resource with a usual amount of spec, status and managedFields."""
    uid = str(UUID(int=number, version=4))
    fields: dict[str, object] = {f"f:field{index}Name": {} for index in range(25)}
    managed = [
        {
            "manager": f"example.dev/{manager}",
            "operation": "Apply",
            "apiVersion": "example.dev/v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": fields},
        }
        for manager in ("owner", "controller", "controller/status")
    ]
    conditions = [
        {
            "type": kind,
            "status": "True",
            "reason": "Available",
            "message": "The instance is available and matches its specification",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "observedGeneration": 3,
        }
        for kind in ("Ready", "Synced")
    ]
    return msgspec.json.encode(
        {
            "apiVersion": "example.dev/v1",
            "kind": "Widget",
            "metadata": {
                "name": f"orders-{number}-instance-ab12c",
                "namespace": f"team-{number % 200}",
                "uid": uid,
                "resourceVersion": str(number + 1),
                "generation": 3,
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"example.dev/owner": uid, "app": "orders"},
                "annotations": {"example.dev/resource": "instance", "example.dev/applied": "a" * 64},
                "finalizers": ["example.dev/teardown"],
                "managedFields": managed,
            },
            "spec": {f"field{index}Name": f"value-{index}-{number}" for index in range(20)}
            | {"tags": [{"key": f"k{index}", "value": f"v{index}"} for index in range(5)]},
            "status": {
                "observedGeneration": 3,
                "conditions": conditions,
                "atProvider": {f"cloudField{index}": f"observed-{index}-{number}" for index in range(25)},
            },
        }
    )


def page(first: int, limit: int) -> bytes:
    """Return the LIST answer that begins with object `first`."""
    last = min(first + limit, OBJECTS)
    more = b',"continue":"%d"' % last if last < OBJECTS else b""
    items = b",".join(map(encoded, range(first, last)))
    return b'{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":"%d"%s},"items":[%s]}' % (
        _VERSION,
        more,
        items,
    )


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        while await reader.readline() not in (b"\r\n", b""):
            pass
        query = parse_qs(urlsplit(line.split()[1].decode()).query)
        if "watch" in query:
            # Silent until the client goes away.
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
            await writer.drain()
            await reader.read()
            break
        body = page(int(query.get("continue", ["0"])[0]), int(query.get("limit", [str(OBJECTS)])[0]))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
        writer.write(body)
        await writer.drain()
    writer.close()


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve())
