"""Azure under the contract of clouds: ARM on this machine, over its own wire; its operations take some looks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from aiohttp import web

from providers.azure import FLEXIBLE_SERVERS, PROVIDER
from providers.azure.arm import client_of
from providers.azure.config import ProviderConfigSpec
from providers.external.metering import Meter
from providers.external.provider import RecordedAccount
from runtime.objects import Object
from tests.providers.adapter import Adapter, Drift, ExternalObject, Mode, Property, Verb
from tests.providers.azure.arm_stub import SUBSCRIPTION, TYPE, ArmStub, made, refusal
from tests.providers.azure.azure_world import RATE, SERVER, StubToken, config_of
from tests.providers.toy import ToyCloud
from tests.providers.world import World

_CODES: Mapping[Mode, tuple[int, str]] = {
    "refused": (503, "ServiceUnavailable"),
    "throttled": (429, "SubscriptionRequestsThrottled"),
    "forbidden": (403, "AuthorizationFailed"),
    "absent": (404, "ResourceNotFound"),
    "invalid": (400, "InvalidParameterValue"),
}
_METHODS = {"PUT": "create", "PATCH": "update", "DELETE": "delete"}


@dataclass
class ContractArm(ArmStub):
    """ARM whose calls go wrong as a test says, by their verbs; operations end by looks at their server, too."""

    polls: int = 2
    wrong: dict[str, tuple[Mode, int | None]] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    met: list[str] = field(default_factory=list)
    failing_verbs: dict[str, str] = field(default_factory=dict)
    verb: str = ""
    before_create: Callable[[], None] | None = None

    async def _arrived(self, request: web.Request) -> web.Response | None:
        self.verb = verb = await _verb_of(request)
        key = f"{request.match_info.get('rg', '').lower()}/{request.match_info.get('name', '')}"
        if verb == "create" and self.before_create is not None:
            act, self.before_create = self.before_create, None
            act()
        if verb in {"create", "update", "password", "delete"}:
            self.writes.append(f"{verb} {key}")
            self.met += [f"{verb} {key}"] if self._busy(key) else []
        if verb == "observe":
            self._progress(key)
        if verb not in self.wrong:
            return None
        mode, times = self.wrong.pop(verb)
        if times is None or times > 1:
            self.wrong[verb] = (mode, None if times is None else times - 1)
        if mode == "unanswered":
            self.unanswered.add(id(request))
            return None
        status, code = _CODES[mode]
        return refusal(status, code)

    def _progress(self, key: str) -> None:
        for number, operation in tuple(self.operations.items()):
            if operation.server == key and operation.effect is not None:
                operation.polls -= 1
                if operation.polls < 0:
                    self._end(number)

    def _begin(self, request: web.Request, server: str, effect: Any) -> web.Response:
        sentence = self.failing_verbs.get(self.verb)
        if sentence is not None:
            self.failing.append(("InvalidParameterValue", "Failed"))
        response = super()._begin(request, server, effect)
        if sentence is not None:
            list(self.operations.values())[-1].sentence = sentence
        return response


async def _verb_of(request: web.Request) -> str:
    if TYPE not in request.path:
        return ""
    if "name" not in request.match_info:
        return "list"
    if request.method == "GET":
        return "observe"
    body = (await request.json()) if request.method == "PATCH" else {}
    is_password = "administratorLoginPassword" in body.get("properties", {})
    return "password" if is_password else _METHODS[request.method]


class GatedAccount:
    """An AzureAccount whose changing calls pass a gate."""

    def __init__(self, account: Any, adapter: AzureAdapter) -> None:
        self._account, self._adapter = account, adapter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._account, name)

    async def send(self, method: str, *arguments: Any, **options: Any) -> Any:
        call = self._account.send(method, *arguments, **options)
        return await (self._adapter.gate.passed(call, "cloud") if method in _METHODS else call)


_FIELDS: Object = {**SERVER, "backupRetentionDays": 7, "publicNetworkAccess": "Enabled", "autoGrow": "Enabled",
                   "highAvailabilityMode": "Disabled"}  # fmt: skip


class _Process(World):
    """One process; the next one over the same API server keeps what is there."""

    def __init__(self, adapter: AzureAdapter, process: str) -> None:
        self._stub = adapter.stub

        @asynccontextmanager
        async def connect(
            config: ProviderConfigSpec, _secrets: Any, _recorded: RecordedAccount, meter: Meter
        ) -> AsyncIterator[GatedAccount]:
            account = client_of(config, StubToken(), meter)
            async with account.client:
                await account.whoami()
                yield GatedAccount(account, adapter)

        provider: Any = replace(
            PROVIDER, kinds=(FLEXIBLE_SERVERS,), rate=RATE, connect=connect, endpoint_of=lambda _config: ""
        )
        super().__init__(ToyCloud(), kube=adapter.kube, process=process, provider=provider)

    def config(self) -> Object:
        return config_of(self._stub)

    def parameters(self, spec: Object) -> Object:
        return {**_FIELDS, **spec.pop("parameters", {})}


@dataclass
class AzureAdapter(Adapter):
    """Flexible servers."""

    properties: ClassVar[frozenset[Property]] = frozenset(
        {Property.TAGS, Property.OPERATIONS, Property.PAGES, Property.LOSS}
    )
    edit: ClassVar[Object] = {"backupRetentionDays": 9}
    loss: ClassVar[Object] = {"version": "17"}
    # A throttle pauses the account by the real time; test_arm.py is about it.
    errors: ClassVar[tuple[Mode, ...]] = ("refused", "forbidden")
    stub: ContractArm = field(kw_only=True)

    def new_world(self, process: str) -> World:
        return _Process(self, process)

    def objects(self) -> Mapping[str, ExternalObject]:
        shown = {}
        for name, server in self.stub.servers.items():
            tags = server["tags"]
            owner = (tags["fairlead-installation"], tags["fairlead-identity"]) if "fairlead-identity" in tags else None
            created = server["systemData"]["createdAt"].replace("1234567Z", "123456+00:00")
            shown[name] = ExternalObject(name, created, owner)
        return shown

    def writes(self) -> list[str]:
        return list(self.stub.writes)

    def forget(self) -> None:
        self.stub.writes.clear()

    def fail(self, verb: Verb, mode: Mode, times: int | None = 1) -> None:
        # A read is sent three times within a pass.
        is_read = verb in {"observe", "list"} and times is not None
        self.stub.wrong[verb] = (mode, 3 * (times or 0) if is_read else times)

    def heal(self) -> None:
        self.stub.wrong.clear()

    def put(self, name: str, owner: tuple[str, str] | None) -> None:
        key = name if "/" in name else f"databases/{name}"
        installation, identity = owner or ("", "")
        tags = {"installation": installation, "identity": identity, "claim": "0123456789abcdef"} if owner else {}
        body = {
            "location": "uksouth",
            "sku": {"name": SERVER["skuName"], "tier": SERVER["skuTier"]},
            "tags": {f"fairlead-{word}": value for word, value in tags.items()},
            "properties": {"version": "16", "administratorLogin": "app"},
        }
        group, own = key.split("/")
        path = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/{TYPE}/{own}"
        self.stub.servers[key] = made(body, path, own, next(self.stub.numbers))
        self.stub.servers[key]["properties"]["state"] = "Ready"

    def before_create(self, act: Callable[[], None]) -> None:
        self.stub.before_create = act

    def vanish(self, name: str) -> None:
        del self.stub.servers[name]

    def strip_owner(self, name: str) -> None:
        self.stub.servers[name]["tags"] = {}

    def operations(self) -> Mapping[str, bool]:
        return {number: operation.is_read for number, operation in self.stub.operations.items()}

    def overlaps(self) -> list[str]:
        return list(self.stub.met)

    def fail_operations(self, verb: Verb, sentence: str) -> None:
        self.stub.failing_verbs[verb] = sentence

    def lose_operations(self) -> None:
        self.stub.has_lost_handles = True

    def drifts(self) -> tuple[Drift, ...]:
        fields: dict[str, tuple[tuple[str, str], Any, str]] = {
            "backupRetentionDays": (("backup", "backupRetentionDays"), 12, ""),
            "autoGrow": (("storage", "autoGrow"), "Disabled", ""),
            "highAvailabilityMode": (("highAvailability", "mode"), "SameZone", ""),
            "publicNetworkAccess": (("network", "publicNetworkAccess"), "Disabled", ""),
        }
        return tuple(self._drift(name, *row) for name, row in fields.items())

    def _drift(self, name: str, path: tuple[str, str], value: Any, held: str) -> Drift:
        def change(thing: str) -> None:
            server = deepcopy(self.stub.servers[thing])
            server["properties"][path[0]][path[1]] = value
            self.stub.servers[thing] = server

        def is_there(thing: str) -> bool:
            return bool(self.stub.servers[thing]["properties"][path[0]][path[1]] == value)

        return Drift(name, change, is_there, held)
