"""`fairlead demo`: the story of two claims, on a real platform. Each step ends when its effect was really seen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from fairlead import platform
from fairlead.demo_stage import NAMESPACE, Stage
from fairlead.exits import CommandError, Exit
from runtime.conditions import current, find, is_true
from runtime.objects import Object, labels_of, loads, uid_of

_LABELS = {"app.kubernetes.io/managed-by": "fairlead-demo", "fairlead.dev/ephemeral": "true"}
"""What every namespace of the demo carries: no other one is deleted."""
NAMESPACE_DOCUMENT = f"""\
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
  labels:
    app.kubernetes.io/managed-by: fairlead-demo
    fairlead.dev/ephemeral: "true"   # its deletion may take its databases along
"""
_CLAIMS = f"""\
apiVersion: database.fairlead.dev/v1alpha1
kind: PostgreSQLInstance
metadata:
  name: orders
  namespace: {NAMESPACE}
spec:
  version: "16"
  size: small
  deletionPolicy: Delete
---
apiVersion: database.fairlead.dev/v1alpha1
kind: PostgreSQLInstance
metadata:
  name: reports
  namespace: {NAMESPACE}
spec:
  version: "16"
  size: medium
  deletionPolicy: Delete
"""
AWS_NAMESPACE_DOCUMENT = f"""\
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}-aws
  labels:
    app.kubernetes.io/managed-by: fairlead-demo
    cloud: aws
    fairlead.dev/ephemeral: "true"
"""
_AWS_CLAIM = f"""\
apiVersion: database.fairlead.dev/v1alpha1
kind: PostgreSQLInstance
metadata:
  name: orders
  namespace: {NAMESPACE}-aws
spec:
  version: "16"
  size: small
  deletionPolicy: Delete
"""
_BROKEN_CLAIM = f"""\
apiVersion: database.fairlead.dev/v1alpha1
kind: PostgreSQLInstance
metadata:
  name: invoices
  namespace: {NAMESPACE}
spec:
  version: "16"
  size: small
  deletionPolicy: Delete
  compositionRef:
    name: postgres-onprm
"""


async def run_demo(clouds: tuple[str, ...]) -> None:
    """Bring the platform up with these clouds, if need be, and run the steps of each.

    Raises CommandError when a step was not seen to happen, and DevcloudError when the platform does not come up.
    """
    clouds = clouds or tuple(_STORIES)[:1]
    environment = await platform.start(clouds)
    stage = Stage(environment)
    await clear(stage, tuple(_NAMESPACES[cloud] for cloud in _STORIES if cloud in clouds))
    for cloud, story in _STORIES.items():
        if cloud in clouds:
            await story(stage)
    stage.chapter("Done: every step above was seen to happen")
    us = platform.command()
    stage.say("The platform stays up. Go on with")
    stage.show(f'eval "$({us} env)"\nkubectl get pgi -A\n{us} psql orders -n {stage.namespace}', prefix="      ")
    stage.say("and stop it, with all its data, with")
    stage.show(f"{us} down", prefix="      ")


async def _onprem(stage: Stage) -> None:
    await _claims_become_databases(stage)
    await _psql_answers(stage)
    await _drift_is_repaired(stage)
    await _a_lost_database_is_reported(stage)
    await _a_broken_claim_says_why(stage)


async def _aws(stage: Stage) -> None:
    stage.namespace = _NAMESPACES["aws"]
    stage.chapter("The same claim in a namespace labelled cloud=aws becomes an RDS instance (simulated, sped up)")
    await stage.kubectl("apply", "--filename=-", document=AWS_NAMESPACE_DOCUMENT)
    await stage.prepare()
    await stage.kubectl("apply", "--filename=-", document=_AWS_CLAIM)
    await stage.until("orders is Ready", lambda: _ready(stage, "orders"), claim="orders", limit_s=120.0)
    await stage.trace("orders")
    await stage.kubectl("get", "rdsinstances", f"--namespace={stage.namespace}")
    await _psql_answers(stage)


async def clear(stage: Stage, namespaces: Sequence[str]) -> None:
    """Delete the namespaces that an earlier demo made, with their databases.

    Raises CommandError, before anything is deleted, where one of them was made by somebody else.
    """
    earlier: list[str] = []
    for name in namespaces:
        answer = await stage.quietly("get", "namespace", name, "--ignore-not-found", "--output=json")
        labels = labels_of(loads(answer.encode())) if answer else {}
        if answer and any(labels.get(label) != value for label, value in _LABELS.items()):
            lacking = ", ".join(f"{label}={value}" for label, value in _LABELS.items())
            raise CommandError(
                f"namespace {name} is not of an earlier demo (it lacks {lacking}), and the demo needs that name; "
                "nothing was touched; delete it yourself if you do not need it, or use another platform",
                exit_code=Exit.REFUSED,
            )
        earlier += [name] if answer else []
    for name in earlier:
        platform.talk(f"demo: removing namespace {name} of an earlier run")
        await stage.quietly("delete", "namespace", name, "--wait", "--timeout=90s")


async def _claims_become_databases(stage: Stage) -> None:
    stage.chapter("A developer asks for two databases; no cloud is named")
    await stage.kubectl("apply", "--filename=-", document=NAMESPACE_DOCUMENT)
    await stage.prepare()
    await stage.kubectl("apply", "--filename=-", document=_CLAIMS)
    await stage.until("orders is Ready", lambda: _ready(stage, "orders"), claim="orders")
    await stage.until("reports is Ready", lambda: _ready(stage, "reports"), claim="reports")
    await stage.kubectl("get", "postgresqlinstances,postgresdatabases", f"--namespace={NAMESPACE}")


async def _psql_answers(stage: Stage) -> None:
    stage.chapter("psql opens the database with the Secret, TLS verified")
    await stage.psql("orders", "CREATE TABLE invoice (id int); INSERT INTO invoice VALUES (1), (2), (3)")
    answer = await stage.psql("orders", "SELECT count(*) FROM invoice")
    _demand(answer.strip() == "3", f"psql should have counted 3 rows, said: {answer.strip()}")


async def _drift_is_repaired(stage: Stage) -> None:
    stage.chapter("Somebody changes the server by hand: a limit, a grant, the password")
    child = await _child(stage, "orders")
    connection, owner = child["status"]["connection"], child["status"]["atProvider"]["owner"]
    database, login = connection["database"], connection["username"]
    limit = await stage.connection_limit(database)
    await stage.sql(f"ALTER DATABASE {database} CONNECTION LIMIT 1")
    await stage.sql(f"REVOKE CONNECT ON DATABASE {database} FROM {owner}")
    await stage.sql(f"ALTER ROLE {login} PASSWORD 'changed-by-hand'")

    async def limit_is_back() -> bool:
        return await stage.connection_limit(database) == limit

    async def grant_is_back() -> bool:
        return await stage.may_connect(owner, database)

    async def password_is_back() -> bool:
        return (await stage.try_psql("orders", "SELECT 1"))[2] == 0

    await stage.until(f"the connection limit is {limit} again", limit_is_back, claim="orders")
    await stage.until("the owner may connect again", grant_is_back, claim="orders")
    await stage.until("the Secret's password works again", password_is_back, claim="orders")
    repairs = ("connectionLimit", "CONNECT", "password")
    message = await stage.until(
        "events say what was found and what was set", lambda: _drift_reported(stage, child, repairs), claim="orders"
    )
    stage.show("\n".join(message))


async def _a_lost_database_is_reported(stage: Stage) -> None:
    stage.chapter("Somebody drops the database: it is reported, never silently replaced by an empty one")
    child = await _child(stage, "orders")
    database, incarnation = child["status"]["connection"]["database"], child["status"]["incarnation"]
    await stage.sql(f"DROP DATABASE {database} WITH (FORCE)")
    await stage.until(
        "orders says DatabaseLost", lambda: _stalled(stage, "orders", "DatabaseLost"), claim="orders", limit_s=150.0
    )
    await stage.trace("orders")
    _demand(
        await stage.connection_limit(database) is None, f"nobody agreed to a new database yet, and {database} is there"
    )
    stage.say("The way on is a person's word: here, that starting empty is what we want.")
    consent = f"fairlead.dev/consent=recreate={incarnation}"
    name = child["metadata"]["name"]
    await stage.kubectl("annotate", "postgresdatabase", name, f"--namespace={NAMESPACE}", consent)
    await stage.until("orders is Ready again", lambda: _ready(stage, "orders"), claim="orders")
    answer = await stage.psql("orders", "SELECT to_regclass('invoice') IS NULL")
    _demand(answer.strip() == "t", "the new database should have been empty")


async def _a_broken_claim_says_why(stage: Stage) -> None:
    stage.chapter("A claim with a mistake in it says what is wrong and what to do")
    await stage.kubectl("apply", "--filename=-", document=_BROKEN_CLAIM)
    await stage.until(
        "invoices says CompositionNotFound",
        lambda: _unready(stage, "invoices", "CompositionNotFound"),
        claim="invoices",
    )
    await stage.trace("invoices")
    fix = '{"spec": {"compositionRef": {"name": "postgres-onprem"}}}'
    await stage.kubectl(
        "patch", "postgresqlinstance", "invoices", f"--namespace={NAMESPACE}", "--type=merge", f"--patch={fix}"
    )
    await stage.until("invoices is Ready", lambda: _ready(stage, "invoices"), claim="invoices")


async def _ready(stage: Stage, claim: str) -> Object | None:
    current_claim = await stage.find("postgresqlinstance", claim)
    return (
        current_claim
        if current_claim is not None and is_true(current_claim, "Ready") and current(current_claim, "Ready")
        else None
    )


async def _unready(stage: Stage, claim: str, reason: str) -> Object | None:
    current_claim = await stage.find("postgresqlinstance", claim)
    condition = find(current_claim, "Ready") if current_claim is not None else None
    return (
        current_claim
        if condition is not None and (condition["status"], condition["reason"]) == ("False", reason)
        else None
    )


async def _stalled(stage: Stage, claim: str, reason: str) -> Object | None:
    unready = await _unready(stage, claim, reason)
    return unready if unready is not None and is_true(unready, "Stalled") else None


async def _child(stage: Stage, claim: str) -> Object:
    current_claim = await stage.find("postgresqlinstance", claim)
    entries = ((current_claim or {}).get("status") or {}).get("inventory") or ()
    for entry in entries:
        child = await stage.find("postgresdatabase", entry["name"])
        if child is not None:
            return child
    raise CommandError(f"{claim} has no PostgresDatabase; `fairlead trace {claim} -n {NAMESPACE}` says more")


async def _drift_reported(stage: Stage, child: Object, repairs: Sequence[str]) -> list[str] | None:
    """Return what the provider's events say it corrected on this object, None while one of the repairs is missing."""
    query = f"regarding.uid={uid_of(child)},reason=DriftCorrected"
    template = "--output=jsonpath={range .items[*]}{.note}{'\\n'}{end}"
    answer = await stage.quietly(
        "get", "events.events.k8s.io", f"--namespace={NAMESPACE}", f"--field-selector={query}", template
    )
    return answer.strip().splitlines() if all(repair in answer for repair in repairs) else None


def _demand(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence at each call
    if not holds:
        raise CommandError(otherwise)


_STORIES: dict[str, Callable[[Stage], Awaitable[None]]] = {"onprem": _onprem, "aws": _aws}
"""What is told of each cloud, in this order."""
_NAMESPACES = {"onprem": NAMESPACE, "aws": f"{NAMESPACE}-aws"}
