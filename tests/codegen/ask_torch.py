"""Run in a process of its own: torch's AutoHeuristic collects a log, then answers from an artifact of ours.

Only what a device would say of itself is made up: Triton's driver and torch.cuda. All else is torch's own code.
Usage: python ask_torch.py ARTIFACT.py LOG PROBLEMS.json; prints JSON.
"""

import importlib.util
import json
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

NAME = "pad_or_not"
SHARED_MEMORY, CAPABILITY, DEVICE = 232448, (9, 0), "NVIDIA H100"


def main(artifact: str, log: str, problems: str) -> None:
    os.environ["TORCHINDUCTOR_AUTOHEURISTIC_LOG_PATH"] = log
    import torch
    from torch._inductor.autoheuristic.autoheuristic import AutoHeuristic, LocalFeedback
    from torch._inductor.autoheuristic.autoheuristic_utils import AHContext
    from torch._inductor.autoheuristic.learned_heuristic_controller import LearnedHeuristicController

    fake_device(torch)
    choices = ["orig", "pad", "view, then pad"]

    def asked(features: dict[str, object], feedback: LocalFeedback | None) -> AutoHeuristic:
        context = AHContext()
        for name, value in features.items():
            context.add_feature(name, value, is_categorical=isinstance(value, str))
        return AutoHeuristic(lambda: "fallback", choices, feedback, context, NAME)

    given = json.loads(Path(problems).read_text())
    os.environ["TORCHINDUCTOR_AUTOHEURISTIC_COLLECT"] = NAME
    for features in given["collected"]:
        asked(features, LocalFeedback(lambda choice: 0.01 * (1 + choices.index(choice))))
    del os.environ["TORCHINDUCTOR_AUTOHEURISTIC_COLLECT"]

    os.environ["TORCHINDUCTOR_AUTOHEURISTIC_USE"] = NAME
    shipped = LearnedHeuristicController(asked({}, None).metadata, AHContext()).get_heuristics("mm")
    LearnedHeuristicController.existing_heuristics[NAME].append(loaded(artifact))
    answers = [asked(features, None).get_choice() for features in given["asked"]]
    ranked = [asked(features, None).get_top_k_choices(2, ["orig"]) for features in given["asked"]]
    device_facts = elsewhere(torch, lambda: asked(given["asked"][0], None).get_choice())
    print(json.dumps({"shipped": len(shipped), "answers": answers, "ranked": ranked, "elsewhere": device_facts}))


def fake_device(torch: ModuleType) -> None:
    properties = {"max_shared_mem": SHARED_MEMORY}
    runtime = ModuleType("triton.runtime")
    utils = SimpleNamespace(get_device_properties=lambda device: properties)
    runtime.driver = SimpleNamespace(active=SimpleNamespace(utils=utils))  # type: ignore[attr-defined]
    sys.modules["triton.runtime"] = runtime
    sys.modules.setdefault("triton", ModuleType("triton"))
    torch.cuda.is_available = lambda: True
    torch.cuda.get_device_capability = lambda *device: CAPABILITY
    torch.cuda.get_device_name = lambda *device: DEVICE


def elsewhere(torch: ModuleType, ask: object) -> list[object]:
    """Return the answers on a device with another name, then on one of another capability."""
    assert callable(ask)
    torch.cuda.get_device_name = lambda *device: "NVIDIA H200"
    other_name = ask()
    torch.cuda.get_device_name = lambda *device: DEVICE
    torch.cuda.get_device_capability = lambda *device: (8, 0)
    return [other_name, ask()]


def loaded(path: str) -> object:
    """Return an instance of the artifact's class, found as torch finds its own."""
    from torch._inductor.autoheuristic.learnedheuristic_interface import LearnedHeuristic

    spec = importlib.util.spec_from_file_location("_artifact", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    classes = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, LearnedHeuristic)]
    (ours,) = [found for found in classes if found.__module__ == "_artifact"]
    return ours()


if __name__ == "__main__":
    main(*sys.argv[1:])
