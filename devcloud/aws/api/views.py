"""How resources look in answers."""

from datetime import datetime
from typing import Any

import msgspec

from devcloud.aws.api import wire
from devcloud.aws.api.wire import Rendered, Tree
from devcloud.aws.state.backups import latest_restorable
from devcloud.aws.state.model import Instance, Wire
from devcloud.aws.state.network import DEFAULT_KEY_ID


def tree_of(data: Wire) -> Tree:
    """Return data as a tree of wire names; times stay times."""
    tree: Any = msgspec.to_builtins(data, builtin_types=(datetime,))
    return dict(tree)


def instance_tree(shown: Instance, now: datetime) -> Tree:
    """Return an instance as answers show it, with what follows from the time and from its other fields.

    One that is monitored shows its log stream once it is created (cloud-custodian's recording
    `test_rds_minor_upgrade_do`); Performance Insights are encrypted with the account's key `aws/rds` where no other
    was asked for (CreateDBInstance, PerformanceInsightsKMSKeyId).
    """
    _, _, _, region, account, *_ = shown.db_instance_arn.split(":")
    scope = f"{region}:{account}"
    stream = None
    if shown.monitoring_interval and shown.instance_create_time is not None:
        stream = f"arn:aws:logs:{scope}:log-group:RDSOSMetrics:log-stream:{shown.dbi_resource_id}"
    insights_key = shown.performance_insights_kms_key_id
    if insights_key is None and shown.performance_insights_enabled:
        insights_key = f"arn:aws:kms:{scope}:key/{DEFAULT_KEY_ID}"
    return tree_of(
        msgspec.structs.replace(
            shown,
            latest_restorable_time=latest_restorable(shown, now),
            enhanced_monitoring_resource_arn=stream,
            performance_insights_kms_key_id=insights_key,
        )
    )


class InstanceXml:
    """The XML of instances, made anew only for those that changed: thousands are listed again and again."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, bool], tuple[Instance, datetime | None, Rendered]] = {}

    def of(self, shown: Instance, now: datetime, *, with_tags: bool) -> Rendered:
        """Return the inside of a DBInstance element."""
        key = (shown.dbi_resource_id, with_tags)
        latest = latest_restorable(shown, now)
        made = self._made.get(key)
        if made is not None and made[0] is shown and made[1] == latest:
            return made[2]
        tree = instance_tree(shown, now)
        if not with_tags:
            del tree["TagList"]
        xml = Rendered(wire.element(wire.service("rds").shape_for("DBInstance"), tree))
        self._made[key] = (shown, latest, xml)
        return xml

    def forget(self, resource_id: str) -> None:
        """Forget an instance that is gone."""
        for with_tags in (True, False):
            self._made.pop((resource_id, with_tags), None)
