"""A conversion webhook on loop-back, as Azure Service Operator runs one: each version is made of the stored one.

Source: Kubernetes, "Versions in CustomResourceDefinitions", ConversionReview; the operator's stored versions end in
`storage` and keep in `spec.originalVersion` the version in which an object was written.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from devcloud.certificates import Subject, new_authority
from tests.support.api import JsonObject

_HOST = "127.0.0.1"
_STORED = "storage"


def converted(obj: JsonObject, wanted: str) -> JsonObject:
    """Return an object in another version of its API."""
    spec = dict(obj.get("spec") or {})
    if wanted.endswith(_STORED):
        spec.setdefault("originalVersion", obj["apiVersion"].rpartition("/")[2])
    else:
        spec.pop("originalVersion", None)
    # The API server also has parts of objects converted, and wants a metadata in each, as a Go type always writes one.
    return {"metadata": {}, **obj, "apiVersion": wanted, "spec": spec}


async def _convert(request: web.Request) -> web.Response:
    review: JsonObject = await request.json()
    request_body = review["request"]
    objects = [converted(obj, request_body["desiredAPIVersion"]) for obj in request_body["objects"]]
    answer = {"uid": request_body["uid"], "convertedObjects": objects, "result": {"status": "Success"}}
    return web.json_response({"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": answer})


@asynccontextmanager
async def converting(folder: Path) -> AsyncIterator[JsonObject]:
    """Serve conversions for the length of a block; yield the `clientConfig` that leads to it."""
    authority = new_authority("conversion")
    pair = authority.issue(Subject("conversion", hosts=(_HOST,)))
    certificate, key = pair.write(folder, "conversion")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    application = web.Application(client_max_size=1 << 24)
    application.router.add_post("/convert", _convert)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, _HOST, 0, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield {"url": f"https://{_HOST}:{port}/convert", "caBundle": base64.b64encode(authority.pem).decode()}
    finally:
        await runner.cleanup()
