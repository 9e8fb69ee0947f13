"""A rig for each module: see tests/support/rigs.py."""

from tests.support.rigs import _employed, aws, aws_at_work, azure, namespace, running, staff, system

__all__ = ["_employed", "aws", "aws_at_work", "azure", "namespace", "running", "staff", "system"]
