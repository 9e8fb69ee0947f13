"""The role that RDS makes for itself in an account when it is first used, with the rights of whoever uses it.

After "Using service-linked roles for Amazon RDS" of the User Guide; the sentences are those of the service, as public
reports have them (hashicorp/terraform-provider-aws 10100, crossplane-contrib/provider-aws 479).
"""

from devcloud.aws.iam.policies import Ask, refuse_denied
from devcloud.aws.iam.principals import Key, Principals, Role
from devcloud.aws.refusals import invalid_value
from devcloud.simulator.messages import Refusal

_SERVICE = "rds.amazonaws.com"
_ROLE = f"aws-service-role/{_SERVICE}/AWSServiceRoleForRDS"
_OF_INSTANCES = (
    "Unable to create the resource. Verify that you have permission to create service linked role. Otherwise wait and"
    " try again later"
)
_OF_SUBNET_GROUPS = (
    "Missing necessary credentials. Please check"
    " http://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.IAM.ServiceLinkedRoles.html"
)
_SENTENCES = {
    "CreateDBInstance": _OF_INSTANCES,
    "RestoreDBInstanceFromDBSnapshot": _OF_INSTANCES,
    "RestoreDBInstanceToPointInTime": _OF_INSTANCES,
    "CreateDBSubnetGroup": _OF_SUBNET_GROUPS,
}


def make_linked_role(principals: Principals, caller: Key, action: str) -> None:
    """Make the role for a call that needs it, where the account has none.

    Raises:
        Refusal: `InvalidParameterValue`, the caller may not.
    """
    role = Role(name=_ROLE, account=caller.account)
    if action not in _SENTENCES or role.arn in principals.roles:
        return
    if caller.policy is not None:
        ask = Ask(action="iam:CreateServiceLinkedRole", resource=role.arn, context={"iam:awsservicename": _SERVICE})
        try:
            refuse_denied(caller.policy, ask, caller.arn)
        except Refusal:
            raise invalid_value(_SENTENCES[action]) from None
    principals.add_role(role)
