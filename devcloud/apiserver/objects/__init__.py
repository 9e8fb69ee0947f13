"""What a request makes of a stored object, as structured-merge-diff and apiextensions do it.

`registry` stores; `managers` and `field_sets` keep who owns which field, `merging` applies, `compare` sees changes;
`kinds`, `built_in`, `typed`, `values` and `atoms` are schemas: defaults, pruning, validation; `meta` checks metadata,
`deletions` ends objects, `refusals` are the answers that refuse.
"""
