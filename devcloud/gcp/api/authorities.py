"""The authorities of an instance: the active one, the next one once it was added, the former one after a rotation.

Source: the reference of instances.addServerCa and instances.rotateServerCa, and "Manage SSL/TLS certificates" of Cloud
SQL: a rotation makes the added one the active one, and keeps the former one as the previous one.
"""

from devcloud.gcp.api.calls import Call, Cloud
from devcloud.gcp.api.instances import refuse_not_running
from devcloud.gcp.api.starting import Kind, started
from devcloud.gcp.refusals import invalid
from devcloud.gcp.state.settings import Json

ADD_S, ROTATE_S = 15.0, 30.0


def add_server_ca(cloud: Cloud, call: Call) -> Json:
    """Add the next authority; one that was added before and waits is replaced."""
    refuse_not_running(cloud, call)
    return started(cloud, call, call.instance, Kind("UPDATE", ADD_S), authority="add")


def rotate_server_ca(cloud: Cloud, call: Call) -> Json:
    """Have the next authority sign the instance's certificate.

    Raises:
        Refusal: None was added.
    """
    instance = refuse_not_running(cloud, call)
    if not instance.next_authority:
        raise invalid("There is no server CA to rotate to. Add one first.")
    return started(cloud, call, call.instance, Kind("UPDATE", ROTATE_S), authority="rotate")


def list_server_cas(cloud: Cloud, call: Call) -> Json:
    """Return the authorities that a client is to trust now."""
    instance = cloud.world.instance(call.project, call.instance)
    answer: Json = {"kind": "sql#instancesListServerCas"}
    active = instance.shown.get("serverCaCert")
    if active is not None:
        others = (instance.next_authority, instance.former_authority)
        answer |= {"certs": [active, *filter(None, others)], "activeVersion": active["sha1Fingerprint"]}
    return answer
