"""The simulated Cloud SQL as a part of `fairlead up`: a process at a loop-back address, its databases beside it.

The one project has one service account, whose key only this platform's files hold.
"""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from devcloud.addresses import Lease
from devcloud.clouds import Cloud, RunningCloud
from devcloud.errors import DevcloudError
from devcloud.gcp.state.extensions import environment
from devcloud.gcp.story import STORY
from devcloud.paths import private_folder
from devcloud.programs import Program
from devcloud.simulator import launch
from devcloud.simulator.launch import Simulation

PROJECT = "fairlead-devcloud"
ACCOUNT = f"fairlead@{PROJECT}.iam.gserviceaccount.com"
REGION = "europe-west1"
NETWORK = f"projects/{PROJECT}/global/networks/default"
_DURATIONS = 0.02  # four minutes of creation take five seconds
_NAMESPACE = "fairlead-gcp"
_KEY_SECRET = "gcp-key"  # noqa: S105 - a Secret's name
SIMULATION = Simulation(cloud="gcp", title="simulated Cloud SQL", name="simulated-cloudsql")


async def _start(folder: Path, lease: Lease) -> RunningCloud:
    if not _is_installed():
        raise DevcloudError(
            "the simulated Cloud SQL needs google-cloud-sql, which is not installed: install fairlead[cli,devcloud,gcp]"
        )
    key = _key_file(private_folder(folder))
    own = (f"--project={PROJECT}", f"--account={ACCOUNT}", f"--key-file={key}", f"--durations={_DURATIONS:g}")
    # The key is written before the program says that it listens.
    await SIMULATION.start(folder, lease, *own)
    return _describe(folder, lease.octet)


def _is_installed() -> bool:
    try:
        return importlib.util.find_spec("google.cloud.sqladmin_v1") is not None
    except ModuleNotFoundError:
        return False


def _find(folder: Path, octet: int) -> RunningCloud | None:
    return _describe(folder, octet) if launch.is_running(folder) else None


def _key_file(folder: Path) -> Path:
    return folder / "key.json"


def _describe(folder: Path, octet: int) -> RunningCloud:
    location = launch.location_of(octet)
    url = f"http://{location}"
    return RunningCloud(
        says=f"gcp: simulated Cloud SQL at {url}, project {PROJECT}, {REGION}, for namespaces labelled cloud=gcp",
        objects=_objects(url, _key_file(folder).read_text()),
        logs={"simulated-cloudsql": launch.log_of(folder)},
        flags=(f"--endpoint-override={location}",),
        variables={
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": f"{url}/",
            "CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE": str(_key_file(folder)),
            "CLOUDSDK_CORE_PROJECT": PROJECT,
            "GOOGLE_APPLICATION_CREDENTIALS": str(_key_file(folder)),
            "GOOGLE_CLOUD_PROJECT": PROJECT,
        },
    )


def _objects(url: str, key: str) -> tuple[Mapping[str, Any], ...]:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": _KEY_SECRET, "namespace": _NAMESPACE},
        "stringData": {"credentials.json": key},
    }
    places = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "gcp", "namespace": "fairlead-system"},
        "data": {"region": REGION, "privateNetwork": NETWORK, **environment()},
    }
    config = {
        "apiVersion": "gcp.fairlead.dev/v1alpha1",
        "kind": "ProviderConfig",
        "metadata": {"name": "default"},
        "spec": {
            "project": PROJECT,
            "endpoint": url,
            "credentials": {"source": "ServiceAccountKey", "secretRef": {"name": _KEY_SECRET}},
            "allowedNamespaces": {"selector": {}},
        },
    }
    return secret, places, config


CLOUD = Cloud(
    name="gcp",
    story=STORY,
    # What takes minutes there takes seconds here, so it is looked at more often.
    program=Program(
        "provider-gcp",
        ("providers", "gcp", "--sweep=5", "--grace=15", "--settle=10", "--resync=600"),
        _NAMESPACE,
        "fairlead-provider-gcp",
    ),
    start=_start,
    find=_find,
    stop=launch.stop,
    erase=launch.erase,
)
