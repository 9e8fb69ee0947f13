"""`fairlead demo`: the stories of the clouds, on a real platform. Each step ends when its effect was really seen."""

from __future__ import annotations

from collections.abc import Sequence

from devcloud.clouds import all_clouds, default
from devcloud.stories import LABELS
from fairlead import platform
from fairlead.demo_stage import Stage
from fairlead.exits import CommandError, Exit
from runtime.objects import labels_of, loads


async def run_demo(clouds: tuple[str, ...]) -> None:
    """Bring the platform up with these clouds, if need be, and run the steps of each; of the default one for none.

    Raises CommandError when a step was not seen to happen, and DevcloudError when the platform does not come up.
    """
    clouds = clouds or (default().name,)
    environment = await platform.start(clouds)
    chosen = tuple(cloud for cloud in all_clouds() if cloud.name in clouds)
    stage = Stage(environment)
    await clear(stage, tuple(cloud.story.namespace for cloud in chosen))
    for cloud in chosen:
        await cloud.story.play(stage, *environment.place_of(cloud.name))
    stage.chapter("Done: every step above was seen to happen")
    us = platform.command()
    stage.say("The platform stays up. Go on with")
    stage.show(f'eval "$({us} env)"\nkubectl get pgi -A\n{us} psql orders -n {stage.namespace}', prefix="      ")
    stage.say("and stop it, with all its data, with")
    stage.show(f"{us} down", prefix="      ")


async def clear(stage: Stage, namespaces: Sequence[str]) -> None:
    """Delete the namespaces that an earlier demo made, with their databases.

    Raises CommandError, before anything is deleted, where one of them was made by somebody else.
    """
    earlier: list[str] = []
    for name in namespaces:
        answer = await stage.quietly("get", "namespace", name, "--ignore-not-found", "--output=json")
        labels = labels_of(loads(answer.encode())) if answer else {}
        if answer and any(labels.get(label) != value for label, value in LABELS.items()):
            lacking = ", ".join(f"{label}={value}" for label, value in LABELS.items())
            raise CommandError(
                f"namespace {name} is not of an earlier demo (it lacks {lacking}), and the demo needs that name; "
                "nothing was touched; delete it yourself if you do not need it, or use another platform",
                exit_code=Exit.REFUSED,
            )
        earlier += [name] if answer else []
    for name in earlier:
        platform.talk(f"demo: removing namespace {name} of an earlier run")
        await stage.quietly("delete", "namespace", name, "--wait", "--timeout=90s")
