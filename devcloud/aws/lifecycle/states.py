"""What may be asked of an instance in which state. Pure.

After "Viewing Amazon RDS DB instance status", "Stopping an Amazon RDS DB instance temporarily" and "Working with
storage" of the User Guide, and the pages of the actions in the API Reference.
"""

from collections.abc import Set as AbstractSet

from devcloud.aws.lifecycle.steps import Record
from devcloud.aws.refusals import invalid_combination
from devcloud.aws.state.requests import InstanceRequest
from devcloud.simulator.messages import Refusal

OPERABLE = frozenset({"available", "storage-optimization", "storage-initialization"})
"""The states in which an instance is available for operations."""
_MODIFIABLE = OPERABLE | {"storage-full", "incompatible-parameters"}
_FAILED = frozenset({"failed", "incompatible-restore", "incompatible-network"})


def _wrong(text: str) -> Refusal:
    return Refusal("InvalidDBInstanceState", text)


def refuse_modify(record: Record, request: InstanceRequest) -> None:
    """Refuse a change that the state does not take.

    One that is being created takes what may wait (cloud-custodian's recording `test_rds_minor_upgrade_do`), and refuses
    ApplyImmediately, as any that is not available does (hashicorp/terraform-provider-aws issue 31594).

    Raises:
        Refusal: `InvalidDBInstanceState`, or `InvalidParameterCombination` for storage that is being optimised.
    """
    may_wait = record.status == "creating" and not request.apply_immediately
    if record.status not in _MODIFIABLE and not may_wait:
        raise _wrong(f"Database instance is not in available state: {record.status}.")
    changed = (
        request.allocated_storage not in {None, record.shown.allocated_storage},
        request.storage_type not in {None, record.shown.storage_type},
        request.iops not in {None, record.shown.iops},
        request.storage_throughput not in {None, record.shown.storage_throughput},
    )
    if any(changed) and record.optimizing_until is not None:
        raise invalid_combination(
            "You can't currently modify the storage of this DB instance because the previous storage change is being "
            "optimized."
        )


def refuse_delete(record: Record, *, with_snapshot: bool) -> None:
    """Refuse a deletion that the instance or its state does not take.

    Raises:
        Refusal: `InvalidDBInstanceState`, or `InvalidParameterCombination` for a protected instance.
    """
    name = record.shown.db_instance_identifier
    if record.status == "deleting":
        raise _wrong(f"Instance {name} is already being deleted.")
    if record.shown.deletion_protection:
        raise invalid_combination(
            "Cannot delete protected DB Instance, please disable deletion protection and try again."
        )
    if with_snapshot and record.status in _FAILED:
        raise _wrong(f"Instance {name} is in state {record.status}: it can only be deleted with SkipFinalSnapshot.")
    if with_snapshot:
        refuse_snapshot(record)


def refuse_snapshot(record: Record) -> None:
    """Refuse a snapshot of an instance that is not available (CreateDBSnapshot).

    Raises:
        Refusal: `InvalidDBInstanceState`.
    """
    if record.status not in OPERABLE:
        raise _wrong(
            f"Cannot create a snapshot because the database instance {record.shown.db_instance_identifier} is not "
            "currently in the available state."
        )


def refuse_not_available(record: Record, among: AbstractSet[str]) -> None:
    """Refuse what needs one of these states.

    Raises:
        Refusal: `InvalidDBInstanceState`.
    """
    if record.status not in among:
        raise _wrong(f"Instance {record.shown.db_instance_identifier} is not in available state.")


def refuse_not_stopped(record: Record) -> None:
    """Refuse a start of what is not stopped.

    Raises:
        Refusal: `InvalidDBInstanceState`.
    """
    if record.status != "stopped":
        raise _wrong(f"Instance {record.shown.db_instance_identifier} is not stopped.")
