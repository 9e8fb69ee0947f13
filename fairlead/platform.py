"""`fairlead up`, `down` and `env`: devcloud's platform of this user, in a person's words."""

import shlex
import sys

from devcloud import up as platform
from devcloud.install import Assets
from devcloud.up import Environment
from fairlead.assets import assets


def talk(line: str) -> None:
    """Print one line of progress; standard output is for data."""
    print(line, file=sys.stderr, flush=True)


async def up() -> Environment:
    """Bring the platform up and say how to use it.

    Raises DevcloudError when a step fails.
    """
    environment = await start()
    talk('next: eval "$(fairlead env)", then kubectl; or: fairlead demo. To stop and delete it all: fairlead down')
    return environment


async def start() -> Environment:
    """Bring the platform up with this installation's CRDs, Compositions and accounts."""
    reviewed = Assets(crds=assets("crds"), compositions=assets("compositions"), deploy=assets("deploy"))
    return await platform.up(platform.Options(assets=reviewed), talk)


async def down(*, keep_data: bool) -> None:
    """Stop the platform; delete its data unless they are kept."""
    was_there = await platform.down(talk, keep_data=keep_data)
    if not was_there:
        talk("fairlead: nothing is up, nothing to do")
    elif keep_data:
        talk("fairlead: the platform is down; `fairlead up` brings it back with its data")
    else:
        talk("fairlead: the platform is down and its data are deleted")


async def shell_lines() -> str:
    """Return lines for a shell's `eval`: the kubeconfig, and kubectl on the PATH.

    Raises DevcloudError when the platform is not up.
    """
    environment = await platform.environment()
    programs = environment.plane.programs.kubectl.parent
    return "\n".join(
        (
            f"export KUBECONFIG={shlex.quote(str(environment.plane.kubeconfig))}",
            f'export PATH={shlex.quote(str(programs))}:"$PATH"',
        )
    )
