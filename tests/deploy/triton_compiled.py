"""A program that launches a decorated kernel from inside torch.compile, in one whole graph, then outside of it."""

import json

import torch
import torch.utils._triton as presence

presence.has_triton = lambda: True  # it would ask for a GPU; what follows needs none

import triton_kernels  # noqa: E402
from triton_stage import staged  # noqa: E402

from tunewise.deploy.triton import tuned  # noqa: E402

if __name__ == "__main__":
    kernel = tuned(top_k=2)(triton_kernels.scaling(triton_kernels.FORTY[:4]))

    def scaled(x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        kernel[(1,)](x, y, x.numel())
        return y

    graphs = []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
        graphs.append(graph)
        return graph.forward

    with staged() as notes:
        torch.compile(scaled, backend=backend, fullgraph=True)(torch.ones(64))
        compiled = notes.benchmarks
        scaled(torch.ones(64))
        problem = {"n": 64, "x_dtype": "float32", "y_dtype": "float32"}
        rung = kernel.early_config_prune.decision.decide(problem).rung
    counts = {"compiled": compiled, "eager": notes.benchmarks - compiled}
    print(json.dumps({"graphs": len(graphs), "rung": rung, **counts}))
