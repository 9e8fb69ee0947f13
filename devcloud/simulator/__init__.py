"""What all simulated clouds share; a cloud's folder holds its API, its states, its refusals and its permissions.

`server` answers HTTP or HTTPS for a `service.Service`, which a cloud implements; `control` is the API that tests steer
it by; `controls` holds what they steer. `jobs` and `operations` are work that goes on beside requests; `databases` is a
real PostgreSQL behind each instance, as `dataplane` names it. `program` and `launch` make a program and a part of
`fairlead up` of it. Nothing here knows a cloud.
"""
