"""Amazon RDS and STS on this machine: the Query protocol of both, real lifecycles, refusals, faults on request.

`server` answers HTTP; `signatures`, `principals`, `policies` say who calls and what they may; `simulator` finds the
action; `wire` speaks botocore's own service model. The actions stand in `instances`, `modifications`, `listings`,
`snapshots`, `restores`, `subnet_groups`, `parameter_groups`, `tagging`, `offers` and `sts`; `permissions` says which
rights they need. `lifecycle`, `changes` and `pending` decide, without a clock, what becomes of an instance; `region`
keeps it, `state_file` saves it, `works` tells the databases. `control` is the tests' own door, with its calls described
there.
"""
