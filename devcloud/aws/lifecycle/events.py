"""The RDS-EVENTs that lifecycles emit: number, categories, sentence. Pure.

After "Amazon RDS event categories and event messages" of the RDS User Guide; sentences may name the instance.
"""

import msgspec


class RDSEvent(msgspec.Struct, frozen=True):
    """A row of that page: an RDS-EVENT without its number."""

    categories: tuple[str, ...]
    sentence: str


RDS_EVENTS = {
    1: RDSEvent(("backup",), "Backing up DB instance"),
    2: RDSEvent(("backup",), "Finished DB Instance backup"),
    3: RDSEvent(("deletion",), "DB instance deleted"),
    4: RDSEvent(("availability",), "DB instance shutdown"),
    5: RDSEvent(("creation",), "DB instance created"),
    6: RDSEvent(("availability",), "DB instance restarted"),
    7: RDSEvent(("failure", "low storage"), "Allocated storage has been exhausted"),
    11: RDSEvent(("configuration change",), "Updated to use DBParameterGroup"),
    12: RDSEvent(("configuration change",), "Applying modification to database instance class"),
    13: RDSEvent(("availability",), "Multi-AZ instance failover started"),
    14: RDSEvent(("configuration change",), "Finished applying modification to DB instance class"),
    16: RDSEvent(("configuration change",), "Reset master credentials"),
    17: RDSEvent(("configuration change",), "Finished applying modification to allocated storage"),
    18: RDSEvent(("configuration change",), "Applying modification to allocated storage"),
    19: RDSEvent(("restoration",), "Restored from a point-in-time backup"),
    24: RDSEvent(("configuration change",), "Applying modification to convert to a Multi-AZ DB instance"),
    25: RDSEvent(("configuration change",), "Finished applying modification to convert to a Multi-AZ DB instance"),
    26: RDSEvent(("maintenance",), "Applying off-line patches to DB instance"),
    27: RDSEvent(("maintenance",), "Finished applying off-line patches to DB instance"),
    29: RDSEvent(("configuration change",), "Finished applying modification to convert to a standard DB instance"),
    30: RDSEvent(("configuration change",), "Applying modification to convert to a standard DB instance"),
    31: RDSEvent(("failure",), "DB instance put into failed state. RDS recommends a point-in-time restore"),
    35: RDSEvent(("failure",), "Database instance put into incompatible-parameters"),
    36: RDSEvent(("failure",), "Database instance put into incompatible-network"),
    37: RDSEvent(("configuration change",), "Updated parameter"),
    40: RDSEvent(("creation",), "Creating manual snapshot"),
    41: RDSEvent(("deletion",), "Deleted user snapshot"),
    42: RDSEvent(("creation",), "Manual snapshot created"),
    43: RDSEvent(("restoration",), "Restored from snapshot"),
    49: RDSEvent(("failover",), "Multi-AZ instance failover completed"),
    87: RDSEvent(("notification",), "DB instance stopped"),
    88: RDSEvent(("notification",), "DB instance started"),
    90: RDSEvent(("creation",), "Creating automated snapshot"),
    91: RDSEvent(("creation",), "Automated snapshot created"),
    92: RDSEvent(("configuration change",), "Finished updating DB parameter group"),
    154: RDSEvent(
        ("notification",), "DB instance is being started due to it exceeding the maximum allowed time being stopped"
    ),
    217: RDSEvent(("configuration change",), "Applying autoscaling-initiated modification to allocated storage"),
    218: RDSEvent(
        ("configuration change",), "Finished applying autoscaling-initiated modification to allocated storage"
    ),
    266: RDSEvent(("maintenance",), "Downtime started for DB engine version upgrade"),
    267: RDSEvent(("maintenance",), "Engine version upgrade started"),
    268: RDSEvent(("maintenance",), "Engine version upgrade finished"),
}
