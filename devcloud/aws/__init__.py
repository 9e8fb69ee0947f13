"""Amazon RDS and STS on this machine: the Query protocol of both, real lifecycles, refusals, faults on request.

`server` puts it on the frame that simulated clouds share (`devcloud.simulator`); `simulator` is the frame's service and
finds the action. `signatures`, `principals`, `policies` say who calls and what they may; `wire` speaks botocore's own
service model. The actions stand in `instances`, `modifications`, `listings`, `snapshots`, `restores`, `subnet_groups`,
`parameter_groups`, `tagging`, `offerings` and `sts`; `permissions` says which rights they need. `lifecycle`, `changes`
and `pending` decide, without a clock, what becomes of an instance; `region` keeps it, `accounts` keeps the regions,
`state_file` saves them, `jobs` works on the databases. `control` describes what RDS adds to the control API of tests.
The rooms: `state` and `lifecycle` are pure, `iam` says who may, `api` holds the actions.
"""
