"""An API server in memory, as strict as kube-apiserver as far as controllers see.

`api_server` is what clients see (`runtime.kube.Kube`), `housekeeping` the garbage collector and the namespace
controller, `watching` watches and pages, `selections` label and field selectors, `json_patches` RFC 6902, `schemas`
types of CRDs.
`objects` is pure: what a create, an apply, an update or a deletion makes of a stored object.
"""
