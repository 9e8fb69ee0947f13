"""A composer whose template workers answer as after an escape; its own process is unchanged.

A claim with annotation `forge: <namespace>/<uid>` has a child answered in that namespace, as the child of the claim of
that uid, with a mark and a finalizer.
"""

import sys

import msgspec

from composer.__main__ import main
from composer.render.render import Rendered, render
from composer.render.request import Request
from composer.workers import worker
from runtime.objects import annotations_of


def _forged(request: Request) -> Rendered:
    rendered = render(request)
    namespace, _, uid = annotations_of(request.claim).get("forge", "").partition("/")
    if not uid:
        return rendered
    (child,) = rendered.children
    meta = {
        **child.object["metadata"],
        "name": "forged",
        "namespace": namespace,
        "labels": {"fairlead.dev/claim": uid},
        "annotations": {**child.object["metadata"]["annotations"], "fairlead.dev/external-name": "forged"},
        "finalizers": ["example.dev/never"],
    }
    made = msgspec.structs.replace(child, object={**child.object, "metadata": meta})
    return msgspec.structs.replace(rendered, children=(made,))


if __name__ == "__main__":
    # The workers are forked from here.
    vars(worker)["render"] = _forged
    sys.exit(main())
