"""Where a person sees a thing in its cloud's own console, by its ARN, its id or its project. Pure.

Sources: AWS General Reference, "Amazon Resource Names (ARNs)" with the partitions aws, aws-cn and aws-us-gov; Azure
portal, links to a resource by its id; Google Cloud console, Cloud SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from apis import names
from runtime.objects import Object, status_of

_AWS: Final[Mapping[str, str]] = {
    "aws": "console.aws.amazon.com",
    "aws-cn": "console.amazonaws.cn",
    "aws-us-gov": "console.amazonaws-us-gov.com",
}
_AZURE: Final = (
    (".usgovcloudapi.net", "portal.azure.us"),
    (".chinacloudapi.cn", "portal.azure.cn"),
    ("", "portal.azure.com"),
)
_ARN_PARTS: Final = 7
_GCP_PAGES: Final[Mapping[str, str]] = {"CloudSQLDatabase": "databases", "CloudSQLUser": "users"}


def console_of(obj: Object) -> str:
    """Return the link to what a managed resource stands for, empty where its cloud has none or it is not known yet."""
    status, cloud = status_of(obj), str(obj.get("apiVersion", "")).partition("/")[0].removesuffix(names.GROUP_SUFFIX)
    provided = status.get("atProvider")
    at_provider: Object = provided if isinstance(provided, dict) else {}
    match cloud:
        case "aws":
            return _of_aws(str(at_provider.get("dbInstanceArn") or ""))
        case "azure":
            return _of_azure(str(at_provider.get("id") or ""), str(at_provider.get("fullyQualifiedDomainName") or ""))
        case "gcp":
            return _of_gcp(str(obj.get("kind", "")), str(status.get("account") or ""), _external_name(status))
        case _:
            return ""


def _external_name(status: Object) -> str:
    return str(status.get("externalName") or "")


def _of_aws(arn: str) -> str:
    parts = arn.split(":", _ARN_PARTS - 1)
    if len(parts) != _ARN_PARTS or parts[1] not in _AWS:
        return ""
    region, name = quote(parts[3], safe=""), quote(parts[6], safe="")
    return f"https://{region}.{_AWS[parts[1]]}/rds/home?region={region}#database:id={name};is-cluster=false"


def _of_azure(resource_id: str, host: str) -> str:
    if not resource_id.startswith("/"):
        return ""
    portal = next(portal for suffix, portal in _AZURE if host.endswith(suffix))
    return f"https://{portal}/#resource{quote(resource_id)}"


def _of_gcp(kind: str, project: str, name: str) -> str:
    if not project or not name:
        return ""
    instance, page = quote(name.partition("/")[0], safe=""), _GCP_PAGES.get(kind, "overview")
    return f"https://console.cloud.google.com/sql/instances/{instance}/{page}?project={quote(project, safe='')}"
