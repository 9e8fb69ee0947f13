"""The RDS-EVENTs that lifecycles emit: number, categories, sentence. Pure.

After "Amazon RDS event categories and event messages" of the RDS User Guide; sentences may name the instance.
"""

import msgspec


class Occurrence(msgspec.Struct, frozen=True):
    """A row of that page."""

    categories: tuple[str, ...]
    sentence: str


OCCURRENCES = {
    1: Occurrence(("backup",), "Backing up DB instance"),
    2: Occurrence(("backup",), "Finished DB Instance backup"),
    3: Occurrence(("deletion",), "DB instance deleted"),
    4: Occurrence(("availability",), "DB instance shutdown"),
    5: Occurrence(("creation",), "DB instance created"),
    6: Occurrence(("availability",), "DB instance restarted"),
    7: Occurrence(("failure", "low storage"), "Allocated storage has been exhausted"),
    11: Occurrence(("configuration change",), "Updated to use DBParameterGroup"),
    12: Occurrence(("configuration change",), "Applying modification to database instance class"),
    13: Occurrence(("availability",), "Multi-AZ instance failover started"),
    14: Occurrence(("configuration change",), "Finished applying modification to DB instance class"),
    16: Occurrence(("configuration change",), "Reset master credentials"),
    17: Occurrence(("configuration change",), "Finished applying modification to allocated storage"),
    18: Occurrence(("configuration change",), "Applying modification to allocated storage"),
    19: Occurrence(("restoration",), "Restored from a point-in-time backup"),
    24: Occurrence(("configuration change",), "Applying modification to convert to a Multi-AZ DB instance"),
    25: Occurrence(("configuration change",), "Finished applying modification to convert to a Multi-AZ DB instance"),
    26: Occurrence(("maintenance",), "Applying off-line patches to DB instance"),
    27: Occurrence(("maintenance",), "Finished applying off-line patches to DB instance"),
    29: Occurrence(("configuration change",), "Finished applying modification to convert to a standard DB instance"),
    30: Occurrence(("configuration change",), "Applying modification to convert to a standard DB instance"),
    31: Occurrence(("failure",), "DB instance put into failed state. RDS recommends a point-in-time restore"),
    35: Occurrence(("failure",), "Database instance put into incompatible-parameters"),
    36: Occurrence(("failure",), "Database instance put into incompatible-network"),
    37: Occurrence(("configuration change",), "Updated parameter"),
    40: Occurrence(("creation",), "Creating manual snapshot"),
    41: Occurrence(("deletion",), "Deleted user snapshot"),
    42: Occurrence(("creation",), "Manual snapshot created"),
    43: Occurrence(("restoration",), "Restored from snapshot"),
    49: Occurrence(("failover",), "Multi-AZ instance failover completed"),
    87: Occurrence(("notification",), "DB instance stopped"),
    88: Occurrence(("notification",), "DB instance started"),
    90: Occurrence(("creation",), "Creating automated snapshot"),
    91: Occurrence(("creation",), "Automated snapshot created"),
    92: Occurrence(("configuration change",), "Finished updating DB parameter group"),
    154: Occurrence(
        ("notification",), "DB instance is being started due to it exceeding the maximum allowed time being stopped"
    ),
    217: Occurrence(("configuration change",), "Applying autoscaling-initiated modification to allocated storage"),
    218: Occurrence(
        ("configuration change",), "Finished applying autoscaling-initiated modification to allocated storage"
    ),
    266: Occurrence(("maintenance",), "Downtime started for DB engine version upgrade"),
    267: Occurrence(("maintenance",), "Engine version upgrade started"),
    268: Occurrence(("maintenance",), "Engine version upgrade finished"),
}
