"""The reconciler of managed resources, the same for every cloud."""
