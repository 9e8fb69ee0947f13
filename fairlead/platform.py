"""`fairlead up`, `down` and `env`: devcloud's platform of this user, in a person's words."""

import shlex
import shutil
import sys
from pathlib import Path

from devcloud import up as platform
from devcloud.clouds import names as cloud_names
from devcloud.install import Assets
from devcloud.up import Environment
from fairlead.assets import assets
from fairlead.exits import CommandError, Exit


def command() -> str:
    """Return how this shell calls us: by name where that finds this very program, else by the path it used."""
    called = sys.argv[0]
    path = shutil.which("fairlead")
    is_ours = Path(called).name == "fairlead" and Path(called).exists()
    return called if is_ours and (path is None or not Path(path).samefile(called)) else "fairlead"


def path_line(programs: Path) -> str:
    """Return the line that puts a folder of programs on a shell's PATH, and this very `fairlead` where it is not found.

    Behind the rest, since beside it may lie a python; before it, where another `fairlead` would be found.
    """
    called = Path(sys.argv[0])
    ours = called.absolute().parent if called.name == "fairlead" and called.exists() else None
    other = shutil.which("fairlead")
    parts = [shlex.quote(str(programs)), '"$PATH"']
    if ours is not None and other is None:
        parts.append(shlex.quote(str(ours)))
    elif ours is not None and other is not None and not Path(other).samefile(called):
        parts.insert(0, shlex.quote(str(ours)))
    return f"export PATH={':'.join(parts)}"


def talk(line: str) -> None:
    """Print one line of progress; standard output is for data."""
    print(line, file=sys.stderr, flush=True)


def names_in(clouds: str) -> tuple[str, ...]:
    """Return the names in a list of clouds with commas between.

    Raises CommandError for a cloud that cannot be simulated.
    """
    named = tuple(name for part in clouds.split(",") if (name := part.strip()))
    known = cloud_names()
    for name in named:
        if name not in known:
            problem = f"--clouds: no cloud {name!r} can be simulated here, only {', '.join(known)}"
            raise CommandError(problem, exit_code=Exit.USAGE)
    return named


async def up(clouds: tuple[str, ...], *, node: bool = False) -> Environment:
    """Bring the platform up and say how to use it.

    Raises DevcloudError when a step fails.
    """
    environment = await start(clouds, node=node)
    us = command()
    talk(f'next: eval "$({us} env)", then kubectl; or: {us} demo. To stop and delete it all: {us} down')
    return environment


async def start(clouds: tuple[str, ...], *, node: bool = False) -> Environment:
    """Bring the platform up with this installation's CRDs, Compositions and accounts."""
    return await platform.up(platform.Options(assets=_reviewed(), clouds=clouds, node=node), talk)


async def prepare(namespaces: tuple[str, ...]) -> None:
    """Let composer and providers use Secrets in these namespaces, and say so.

    Raises DevcloudError when the platform is not up, or has no such namespace.
    """
    clouds = await platform.prepare(_reviewed(), namespaces)
    talk(f"fairlead: prepared for claims served by {', '.join(clouds)}: {', '.join(namespaces)}")


def _reviewed() -> Assets:
    return Assets(crds=assets("crds"), compositions=assets("compositions"), deploy=assets("deploy"))


def agree_to_deletion() -> None:
    """Ask whether the platform's data may be deleted, where there are any.

    Raises CommandError (refused) where the answer is no, or where nobody can be asked.
    """
    if not platform.has_data():
        return
    us = command()
    if not sys.stdin.isatty():
        text = f"deletes all claims and databases of the platform: say {us} down --yes, or --keep-data"
        raise CommandError(text, exit_code=Exit.REFUSED)
    talk("fairlead: this deletes all claims and databases of the platform of this user")
    try:
        answer = input("Delete them? [y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        text = f"nothing was stopped and nothing deleted; {us} down --keep-data stops it"
        raise CommandError(text, exit_code=Exit.REFUSED)


async def down(*, keep_data: bool) -> None:
    """Stop the platform; delete its data unless they are kept."""
    was_there = await platform.down(talk, keep_data=keep_data)
    if not was_there:
        talk("fairlead: nothing is up, nothing to do")
    elif keep_data:
        talk(f"fairlead: the platform is down; `{command()} up` brings it back with its data")
    else:
        talk("fairlead: the platform is down and its data are deleted")


async def shell_lines() -> str:
    """Return lines for a shell's `eval`: the kubeconfig, kubectl and us on the PATH, what the clouds' own tools read.

    Raises DevcloudError when the platform is not up.
    """
    environment = await platform.environment()
    programs = environment.plane.programs.kubectl.parent
    variables = {"KUBECONFIG": str(environment.plane.kubeconfig)}
    for cloud in environment.clouds.values():
        variables |= cloud.variables
    return "\n".join(
        (
            *(f"export {name}={shlex.quote(value)}" for name, value in variables.items()),
            path_line(programs),
        )
    )
