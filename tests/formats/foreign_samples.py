"""A small file of every format, as the tools write them, and ways to damage one."""

import json
import random
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec

DATA = Path(__file__).parents[1] / "data"

VLLM = {
    "1": {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 1, "num_warps": 4},
    "64": {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 1, "num_warps": 4},
    "1024": {"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 16, "num_warps": 8},
}
VLLM_NAME = "E=8,N=14336,device_name=NVIDIA_H100_80GB_HBM3,dtype=fp8_w8a8,block_shape=[128,128].json"

TUNABLE = """Validator,PT_VERSION,2.4.0
Validator,ROCM_VERSION,6.0.0.0-91-08e5094
Validator,GCN_ARCH_NAME,gfx942:sramecc+:xnack-
GemmTunableOp_float_NN,nn_1024_512_2048,Gemm_Hipblaslt_NN_52565,0.0653662
GemmTunableOp_float_NN,nn_256_128_512_ld_256_512_256,Gemm_Rocblas_21,0.00793602
GemmStridedBatchedTunableOp_Half_TN,tn_64_64_64_B_16,Default,0
ScaledGemmTunableOp_x,tn_64_64_64_ld_64_64_64_rw_1_bias_None,Gemm_Hipblaslt_7,1.5
"""

TRITON = {
    "key": [1024, 512, "torch.float16"],
    "configs_timings": [
        [
            {
                "kwargs": {"BLOCK_M": 64, "EVEN_K": True},
                "num_warps": 4,
                "num_ctas": 1,
                "num_stages": 3,
                "maxnreg": None,
            },
            [0.25, 0.125, 0.5],
        ],
        [{"kwargs": {"BLOCK_M": 128}, "num_warps": 8, "num_stages": 2, "pre_hook": None}, [0.1, 0.1, 0.3]],
        [{"kwargs": {"BLOCK_M": 256}, "num_warps": 8, "num_stages": 5}, [float("inf")] * 3],
    ],
}

HELION_LOG = """run_id,timestamp_s,config_id,generation,status,perf_ms,compile_time_s,config
r1,0.01,c1,0,started,,,"Config(block_sizes=[16, 64], loop_orders=[[0, 1]], num_warps=4, flag=False)"
r1,3.92,c1,0,ok,1629.968675,0.52,"Config(block_sizes=[16, 64], loop_orders=[[0, 1]], num_warps=4, flag=False)"
r1,4.15,c2,1,started,,,"Config(block_sizes=[32, 64], loop_orders=[[1, 0]], kind='unroll', num_warps=8)"
r1,5.00,c2,1,timeout,,,"Config(block_sizes=[32, 64], loop_orders=[[1, 0]], kind='unroll', num_warps=8)"
r1,5.10,c3,1,error,,,"Config(block_sizes=[32, 64], indexing=[])"
r1,5.20,c4,1,started,,,"Config(block_sizes=[8, 8])"
"""


def _trace(**fields: Any) -> str:
    return json.dumps({"schema_version": 1, "run_id": "r", "algorithm": "LFBO", "timestamp_s": 1794767540.5, **fields})


CONFIG = {"block_sizes": [16, 64, 64], "loop_orders": [[0, 1]], "kind": "unroll", "flag": False}
HELION_TRACE = "\n".join(
    [
        _trace(event="run_start"),
        _trace(event="trial_start", config_id="c1", config=CONFIG, status="started", perf_ms=None),
        _trace(event="trial", config_id="c1", config=CONFIG, status="ok", perf_ms=0.125, compile_time_s=1.5),
        _trace(event="trial", config_id="c2", config={**CONFIG, "flag": True}, status="accuracy_error", perf_ms=None),
        _trace(event="run_end", status="ok"),
        "",
    ]
)

HELION_BEST = {
    "config": json.dumps(CONFIG, indent=2),
    "key": {
        "type": "LooseAutotuneCacheKey",
        "fields": {
            "specialization_key": "((torch.float32, torch.Size([64, 32]), (32, 1), frozenset()), "
            "(torch.bfloat16, torch.Size([32, 8]), (1, 32), frozenset()), 'cuda', None, False)",
            "kernel_source_hash": "84537d",
            "hardware": "NVIDIA H100",
            "runtime_name": "12.8",
            "backend": "triton",
        },
    },
    "flat_config": "[64, 64, 64, [0, 1]]",
}

DIODE_SHAPE = {
    "version": 1,
    "B": 1,
    "M": 32,
    "M_dtype": "float16",
    "N": 64,
    "K": 48,
    "K_dtype": "float16",
    "out_dtype": "float16",
    "out_size": [1, 32, 64],
    "out_stride": [2048, 64, 1],
}
DIODE_CONFIG = {
    "ACC_TYPE": "tl.float32",
    "ALLOW_TF32": True,
    "EVEN_K": True,
    "USE_FAST_ACCUM": False,
    "block_k": 16,
    "block_m": 32,
    "block_n": 64,
    "grid": 1,
    "group_m": 8,
    "name": "mm_config",
    "num_stages": 3,
    "num_warps": 4,
    "version": 1,
}


def diode_file(*timed: tuple[Any, float], op: str = "mm", shape: Any = DIODE_SHAPE) -> dict[str, Any]:
    """Return a data set of one shape as diode writes it; a config may be an object or, as in older files, its JSON."""
    rows = [{"config": config, "time": time, "version": 1} for config, time in timed]
    solution = {json.dumps(shape): {"timed_configs": rows, "version": 1}}
    operation = {op: {"solution": solution, "version": 1}}
    return {"hardware": {"NVIDIA H100": {"operation": operation, "version": 1}}, "version": 1}


DIODE_SOLUTION = {"name": "mm", "configs": [{"M": 32, "N": 64, "K": 48, **DIODE_CONFIG}]}
DIODE = diode_file((DIODE_CONFIG, 0.026), ({**DIODE_CONFIG, "block_m": 64, "num_warps": 8}, 0.125))

INDUCTOR_TABLE = {
    "NVIDIA H100+((torch.bfloat16, [512, 1000], [1000, 1]), (torch.bfloat16, [1000, 64], [1, 1000]))+mm": [
        {
            "template_id": "triton::mm",
            "BLOCK_M": 64,
            "BLOCK_N": 32,
            "BLOCK_K": 64,
            "GROUP_M": 8,
            "num_stages": 3,
            "num_warps": 4,
            "EVEN_K": False,
            "template_hash": "e3b0c442",
        },
        {"template_id": "triton::mm", "BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 32, "num_stages": 1, "num_warps": 1},
        {"template_id": "aten::mm"},
    ],
    "((torch.float32, [8, 16, 24], [384, 24, 1]), (torch.float32, [8, 24, 32], [768, 32, 1]))+bmm": [
        {"template_id": "aten::bmm"}
    ],
}

SAMPLES: dict[str, tuple[str, bytes]] = {
    "vllm": (VLLM_NAME, json.dumps({**VLLM, "triton_version": "3.4.0"}, indent=4).encode()),
    "tunable": ("tunableop_results0.csv", TUNABLE.encode()),
    "triton": ("matmul_kernel.autotune.json", json.dumps(TRITON).encode()),
    "kernel-tuner": ("convolution.json", (DATA / "convolution.json").read_bytes()),
    "t4": ("convolution.t4.json", (DATA / "convolution.t4.json").read_bytes()),
    "helion-log": ("helion.csv", HELION_LOG.encode()),
    "helion-trace": ("helion.trace.jsonl", HELION_TRACE.encode()),
    "diode": ("matmul_dataset.json", json.dumps(DIODE, indent=2).encode()),
    "diode-msgpack": ("matmul_dataset.msgpack", msgspec.msgpack.encode(DIODE)),
    "diode-solution": ("solution.json", json.dumps(DIODE_SOLUTION).encode()),
    "helion-best": ("49e00e.best_config", json.dumps(HELION_BEST, indent=2).encode()),
    "inductor-table": ("lookup_table.json", json.dumps(INDUCTOR_TABLE, indent=1).encode()),
}

STRANGE: list[Any] = [
    *(None, True, -1, 0, 1e308, 5e-324, 10**30, "", "x", "\0", "[[1]]", "a" * 3000, "\ud800"),
    *([], {}, [[]], [0], {"a": {"b": [{}]}}, [[[[[[]]]]]], "Infinity", "__import__('os').system('x')"),
]
TEXTS = ["Infinity", "NaN", "[[[[", "}", '"', ",", "\n", "\0", "\xff", "Config(a=", "1e999", "-", "__import__('os')"]


def damaged(raw: bytes, rng: random.Random) -> bytes:
    """Return a file with a few bytes flipped, cut, doubled or put in, or with values of its JSON exchanged."""
    if rng.random() < 0.5 and raw.lstrip().startswith(b"{"):
        try:
            return _exchanged(json.loads(raw), rng)
        except ValueError:  # lines of JSON
            pass
    data = bytearray(raw)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        place, span = rng.randrange(len(data) or 1), rng.randrange(1, 60)
        match rng.randrange(6):
            case 0 if data:
                data[place] = rng.randrange(256)
            case 1:
                del data[place : place + span]
            case 2:
                data[place:place] = data[place : place + span]
            case 3:
                data[place:place] = rng.choice(TEXTS).encode("latin-1")
            case 4 if rng.random() < 0.5:
                del data[place:]
            case _ if data:
                data[place : place + 1] = rng.choice('0123456789"[]{},:.-e=').encode()
    return bytes(data)


def _exchanged(document: Any, rng: random.Random) -> bytes:
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = list(_places(document))
        if not places:
            break
        holder, key = rng.choice(places)
        match rng.randrange(4):
            case 0 | 1:
                holder[key] = deepcopy(rng.choice(STRANGE))
            case 2:
                del holder[key]
            case _:
                other, place = rng.choice(places)
                holder[key] = json.loads(json.dumps(other[place])) if place in other or isinstance(other, list) else 0
    return json.dumps(document).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(items):
        yield value, key
        yield from _places(item)
