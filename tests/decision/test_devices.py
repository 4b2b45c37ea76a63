import sys
import types

import pytest

from tunewise.decision import detect, environment
from tunewise.decision.devices import compatible_with, completed, known_device, known_devices
from tunewise.decision.hardware import Hardware

EVERYBODY = [
    *("V100", "T4", "A10", "A100", "A100 80GB", "L4", "L40S", "RTX 2080 Ti", "RTX 3090", "RTX 4090", "A4000", "A6000"),
    *("H100", "H100 PCIe", "H200", "GH200", "B200", "RTX 5090"),
    *("MI100", "MI210", "MI250X", "MI300X", "W6600", "W7800", "7900 XTX"),
]


@pytest.mark.parametrize("name", EVERYBODY)
def test_common_gpus_are_known_by_the_name_people_use(name):
    found = known_device(name)
    assert found is not None
    assert found.cores > 0
    assert 8 << 30 <= found.memory_bytes <= 256 << 30
    assert 48 << 10 <= found.shared_bytes <= found.shared_per_core_bytes
    assert 2e11 < found.bandwidth_bytes_s < 1e13


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3"),
        ("h100", "NVIDIA H100 80GB HBM3"),
        ("h100-sxm5-80gb", "NVIDIA H100 80GB HBM3"),
        ("NVIDIA H100 PCIe", "NVIDIA H100 PCIe"),
        ("A100", "NVIDIA A100-SXM4-40GB"),
        ("NVIDIA A100-PCIE-40GB", "NVIDIA A100-SXM4-40GB"),
        ("NVIDIA A100 80GB PCIe", "NVIDIA A100 80GB PCIe"),
        ("A100 SXM 80GB", "NVIDIA A100-SXM4-80GB"),
        ("Tesla V100-PCIE-32GB", "Tesla V100-SXM2-32GB"),
        ("NVIDIA GH200 480GB", "NVIDIA GH200 480GB"),
        ("RTX2080Ti", "NVIDIA GeForce RTX 2080 Ti"),
        ("rtx_3090", "NVIDIA GeForce RTX 3090"),
        ("AMD Instinct MI300X", "AMD Instinct MI300X"),
    ],
)
def test_spelling_form_and_memory_size_may_vary(written, name):
    assert known_device(written).name == name


@pytest.mark.parametrize(
    "name",
    [
        *("", "GPU", "NVIDIA", "RTX 4090 Laptop GPU", "RTX 3090 Ti", "NVIDIA H100 NVL", "A1000", "L40", "H100 40GB"),
        *("AMD EPYC", "b200 and more", "A100X", "RTX 4090 D", "H100 " + "9" * 5000 + "GB"),
    ],
)
def test_a_relative_of_a_known_device_is_not_taken_for_it(name):
    assert known_device(name) is None


def test_every_device_is_found_by_its_own_name():
    devices = known_devices()
    assert len(devices) >= 25
    assert all(known_device(device.name) == device for device in devices)


@pytest.mark.parametrize(
    ("capability", "older"),
    [
        ("7.0", ()),
        ("8.0", ("7.5", "7.0")),
        ("8.6", ("7.5", "7.0")),  # less shared memory than 8.0
        ("9.0", ("8.9", "8.7", "8.6", "8.0", "7.5", "7.0")),
        ("12.0", ("8.9", "8.6", "7.5", "7.0")),  # newer than 9.0 and 10.0, with less shared memory
        ("gfx942", ("gfx90a", "gfx908")),
        ("gfx1100", ("gfx1032",)),
        ("99.9", ()),
    ],
)
def test_rules_carry_over_where_a_block_has_at_least_as_much_shared_memory(capability, older):
    assert compatible_with(capability) == older


def test_the_newest_compatible_capability_comes_first():
    assert compatible_with("10.0")[0] == "9.0"


def torch_with(found, hip=None):
    cuda = types.SimpleNamespace(
        is_available=lambda: True, device_count=lambda: 1, get_device_properties=lambda d: found
    )
    return types.SimpleNamespace(cuda=cuda, version=types.SimpleNamespace(hip=hip))


def properties(name, major, minor, **more):
    return types.SimpleNamespace(
        name=name, major=major, minor=minor, multi_processor_count=132, total_memory=1 << 36, **more
    )


def test_a_detected_device_is_completed_from_the_table(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", torch_with(properties("NVIDIA H100 80GB HBM3", 9, 0)))
    found = detect("cuda:0")
    assert (found.cores, found.memory_bytes) == (132, 1 << 36)  # what the driver says stands
    assert found.shared_bytes == 227 << 10
    assert found.bandwidth_bytes_s == 3.35e12
    assert found.compatible[0] == "8.9"


def test_what_the_driver_tells_is_believed_before_the_table(monkeypatch):
    told = properties("NVIDIA H100 80GB HBM3", 9, 0, shared_memory_per_block_optin=1000, L2_cache_size=5)
    monkeypatch.setitem(sys.modules, "torch", torch_with(told))
    found = detect("cuda:0")
    assert found.shared_bytes == 1000
    assert found.caches == (("l2", 5),)


def test_an_amd_device_is_not_taken_for_an_nvidia_one(monkeypatch):
    told = properties("AMD Instinct MI250X", 9, 0, gcnArchName="gfx90a:sramecc+:xnack-")
    monkeypatch.setitem(sys.modules, "torch", torch_with(told, hip="6.2"))
    found = detect("cuda:0")
    assert (found.kind, found.capability, found.compatible) == ("hip", "gfx90a", ("gfx908",))


def test_what_must_match_of_a_gpu_does_not_depend_on_the_table():
    bare = Hardware("cuda", "NVIDIA H100 80GB HBM3", "9.0", 132, 1 << 36)
    assert environment(completed(bare)) == environment(bare)


def test_an_unknown_device_is_left_as_it_is():
    bare = Hardware("cuda", "GPU", "99.9", 132, 1 << 36)
    assert completed(bare) == bare
