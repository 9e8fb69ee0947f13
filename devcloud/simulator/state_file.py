"""All that a simulated cloud knows in one file, so that it outlives its process, however that ends."""

from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from devcloud.errors import DevcloudError
from devcloud.paths import write_private
from devcloud.simulator.behaviour import BehaviourT
from devcloud.simulator.service import CallT, SavedT, Service

T = TypeVar("T", bound=msgspec.Struct)


class StateFile(Generic[CallT, BehaviourT, SavedT]):
    """Where a cloud's state is written whenever it changed."""

    def __init__(self, path: Path, service: Service[CallT, BehaviourT, SavedT]) -> None:
        self._path = path
        self._service = service
        self._written: tuple[int, ...] = ()

    def load(self) -> None:
        """Give a new service what the file holds.

        Raises:
            DevcloudError: The file is not one of these.
        """
        if not self._path.exists():
            return
        service = self._service
        try:
            saved = msgspec.json.decode(self._path.read_bytes(), type=service.saved_type)
            clock = service.controls.clock
            clock.advance(max(0.0, (saved.now - clock.now()).total_seconds()))
            service.restore(saved)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise DevcloudError(f"{self._path} is no state of a {service.title} ({error}); delete it") from None

    def save(self) -> None:
        """Write what changed since the last time."""
        service = self._service
        versions = (service.controls.changes, *service.versions())
        if versions == self._written:
            return
        write_private(self._path, msgspec.json.encode(service.saved()))
        self._written = versions


class EncodedOnce(Generic[T]):
    """The JSON of records that never change, so that each is encoded once; the last one of each key is kept."""

    def __init__(self) -> None:
        self._encoded: dict[str, tuple[T, msgspec.Raw]] = {}

    def encode(self, key: str, record: T) -> msgspec.Raw:
        """Return a record's JSON."""
        encoded = self._encoded.get(key)
        if encoded is None or encoded[0] is not record:
            encoded = (record, msgspec.Raw(msgspec.json.encode(record)))
            self._encoded[key] = encoded
        return encoded[1]
