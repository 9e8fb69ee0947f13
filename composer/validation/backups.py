"""Whether a Composition may offer the deletion policy Snapshot: only where every backup can be taken. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from apis import names
from composer.kinds.catalog import Catalog
from composer.render.compiler import Compiled
from composer.render.errors import Problem


def faults(compiled: Compiled, catalog: Catalog) -> Iterator[Problem]:
    """Yield resources that hold data and are no provider's of ours, which nobody could back up for the claim."""
    if "Snapshot" not in compiled.spec.deletion_policies:
        return
    for resource in compiled.resources:
        tree = resource.template
        if not isinstance(tree, Mapping):
            continue
        kind, group = str(tree.get("kind")), str(tree.get("apiVersion")).rpartition("/")[0]
        facts = catalog.get(f"{kind}.{group}" if group else kind)
        holds_data = resource.source.stateful is True or (facts is not None and facts.stateful)
        if holds_data and not names.is_managed(group):
            message = f"{kind} holds data, and no backup of it can be taken by Fairlead: Snapshot cannot be offered"
            yield Problem("BackupImpossible", message, "spec.deletionPolicies", resource=resource.name)
