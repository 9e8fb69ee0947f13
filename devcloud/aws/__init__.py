"""Amazon RDS and STS on this machine: the Query protocol of both, real lifecycles, refusals, faults on request.

`server` answers HTTP; `signatures`, `principals`, `policies` say who calls and what they may; `simulator` finds the
action; `wire` speaks botocore's own service model. The actions stand in `instances`, `modifications`, `listings`,
`snapshots`, `restores`, `subnet_groups`, `parameter_groups`, `tagging`, `offerings` and `sts`; `permissions` says which
rights they need. `lifecycle`, `changes` and `pending` decide, without a clock, what becomes of an instance; `region`
keeps it, `state_file` saves it, `jobs` works on the databases. `control` is the control API of tests and describes its
calls. The rooms: `state` and `lifecycle` are pure, `iam` says who may, `api` holds the actions.
"""
