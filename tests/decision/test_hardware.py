import json
import os
import platform
import socket
import subprocess
import sys
import types

import pytest

from tunewise.decision import Environment, Hardware, Part, canonical, detect, environment, hardware
from tunewise.errors import InvalidDecision, MissingPart

CPU = Hardware("cpu", "Model", "x86_64", 4, 8 << 30, ("avx", "fma"), (("l1d", 32768), ("l2", 1 << 20)))

AARCH64 = """processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd evtstrm aes sve sve2 bf16
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x1
CPU part\t: 0xd40
CPU revision\t: 1

processor\t: 1
CPU part\t: 0xd41
"""


@pytest.fixture
def fresh():
    hardware._cpu.cache_clear()
    yield
    hardware._cpu.cache_clear()


def test_this_machine_has_a_name_and_cores():
    found = detect()
    assert found.kind == "cpu"
    assert found.name
    assert found.cores >= 1
    assert found.memory_bytes > 0
    assert found.capability == platform.machine()


def test_an_arm_machine_is_named_by_its_numbers(fresh, monkeypatch, tmp_path):
    (tmp_path / "cpuinfo").write_text(AARCH64)
    monkeypatch.setattr(hardware, "_CPUINFO", tmp_path / "cpuinfo")
    found = detect()
    assert found.name == "arm 0x41 8 0x1 0xd40 1"
    assert found.isa == ("asimd", "sve", "sve2")


def test_a_machine_without_proc_and_sys_is_still_described(fresh, monkeypatch, tmp_path):
    monkeypatch.setattr(hardware, "_CPUINFO", tmp_path / "none")
    monkeypatch.setattr(hardware, "_CACHES", tmp_path / "none")
    monkeypatch.delattr(os, "sched_getaffinity")
    found = detect()
    assert (found.name, found.isa, found.caches) == ("unknown", (), ())
    assert found.cores >= 1


def test_binary_junk_in_cpuinfo_is_survived(fresh, monkeypatch, tmp_path):
    (tmp_path / "cpuinfo").write_bytes(b"\xff\xfe: \x00\nmodel name\n:\n")
    monkeypatch.setattr(hardware, "_CPUINFO", tmp_path / "cpuinfo")
    assert detect().name == "unknown"


def test_caches_that_are_off_line_or_odd_are_left_out(monkeypatch, tmp_path):
    for index, (level, kind, size) in enumerate(
        [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "odd"), ("3", "Unified", "16384K")]
    ):
        entry = tmp_path / f"index{index}"
        entry.mkdir()
        for name, value in (("level", level), ("type", kind), ("size", size)):
            (entry / name).write_text(value + "\n")
    (tmp_path / "index9").mkdir()
    monkeypatch.setattr(hardware, "_CACHES", tmp_path)
    assert hardware._caches() == (("l1d", 48 << 10), ("l3", 16 << 20))


def test_parts_are_sorted_into_must_warn_and_ignore():
    env = environment(CPU, libraries=["numpy", "no-such-library"], variables=["NOT_SET"], must={"source": "abc"})
    assert env.must["hardware.name"] == "Model"
    assert env.must["hardware.isa"] == "avx fma"
    assert env.must["hardware.l2"] == 1 << 20
    assert env.must["library.numpy"]
    assert env.must["library.no-such-library"] is None
    assert env.must["variable.NOT_SET"] is None
    assert env.must["source"] == "abc"
    assert set(env.warn) == {"hardware.memory_gib", "os.release", "libc"}
    assert "python.patch" in env.ignore


def test_an_environment_is_a_key_and_survives_json():
    env = environment(CPU, libraries=["numpy"])
    assert hash(env) == hash(environment(CPU, libraries=["numpy"]))
    assert canonical.decode(canonical.encode(env.must)) == env.must


def test_the_order_of_libraries_and_variables_does_not_matter():
    one = environment(CPU, libraries=["numpy", "click"], variables=["A", "B"], must={"x": 1, "y": 2})
    two = environment(CPU, libraries=["click", "numpy", "numpy"], variables=["B", "A"], must={"y": 2, "x": 1})
    assert one == two


@pytest.mark.parametrize("name", ["hardware.name", "python", "os", "problem.m", "policy.clock", "decision", "libc"])
def test_a_further_fact_cannot_take_the_place_of_another_part(name):
    with pytest.raises(InvalidDecision, match=name):
        environment(CPU, must={name: "forged"})


def test_a_part_given_twice_is_refused():
    with pytest.raises(InvalidDecision, match="'a'"):
        Environment((Part("a", 1, "must"), Part("a", 2, "ignore")))


@pytest.mark.parametrize(("value", "shown"), [("4", "4"), ("", ""), ("ON", "ON"), ("1.5", "1.5"), ("0,1", "0,1")])
def test_numbers_and_switches_in_variables_are_shown(monkeypatch, value, shown):
    monkeypatch.setenv("TW_FLAG", value)
    assert environment(CPU, variables=["TW_FLAG"]).must["variable.TW_FLAG"] == shown


def test_other_values_of_variables_count_but_do_not_travel(monkeypatch):
    seen = []
    for value in ("/home/alice/lib", "/home/bob/lib", "tok-3nSecret", "\udcff"):
        monkeypatch.setenv("TW_FLAG", value)
        seen.append(environment(CPU, variables=["TW_FLAG"]).must["variable.TW_FLAG"])
    assert len(set(seen)) == 4
    assert all(text.startswith("sha256:") for text in seen)
    assert not any("alice" in text or "Secret" in text for text in seen)


def test_no_part_tells_who_where_or_on_which_host():
    text = canonical.encode([[p.name, p.value] for p in environment(detect(), libraries=["numpy"]).parts])
    secrets = [os.getcwd(), os.path.expanduser("~"), sys.executable, socket.gethostname()]
    assert [s for s in secrets if len(s) > 3 and s in text] == []


def test_what_must_match_does_not_depend_on_imports_directory_or_seed():
    code = (
        "import sys, json; {first}\nfrom tunewise.decision import detect, environment\n"
        "print(json.dumps(environment(detect(), libraries=['numpy']).must, sort_keys=True))"
    )
    runs = set()
    for seed, first, folder in (
        (0, "", "/"),
        (1, "import numpy, decimal", "/tmp"),
        (2, "import tunewise.decision", "/"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code.format(first=first)],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        runs.add(done.stdout)
    assert len(runs) == 1
    assert json.loads(runs.pop())["os"] == platform.system()


def torch_with(cuda):
    return types.SimpleNamespace(__version__="2.0", cuda=cuda)


def test_torch_is_asked_about_devices_only_once_somebody_used_them(monkeypatch):
    def touched():
        raise AssertionError("a device was started")

    asleep = types.SimpleNamespace(is_initialized=lambda: False, is_available=touched, device_count=touched)
    monkeypatch.setitem(sys.modules, "torch", torch_with(asleep))
    env = environment(CPU)
    assert env.ignore["torch.version"] == "2.0"
    awake = types.SimpleNamespace(is_initialized=lambda: True, device_count=lambda: 1, get_device_name=lambda i: "GPU")
    monkeypatch.setitem(sys.modules, "torch", torch_with(awake))
    assert environment(CPU).ignore["torch.cuda.0"] == "GPU"
    assert environment(CPU).must == env.must


def test_a_half_imported_torch_is_no_trouble(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace())
    assert not any(name.startswith("torch.") for name in environment(CPU).ignore)


def test_a_device_that_is_not_there_is_said_so(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(MissingPart, match="import it"):
        detect("cuda:0")

    def missing(device):
        raise AssertionError("Invalid device id")

    cuda = types.SimpleNamespace(is_available=lambda: True, device_count=lambda: 1, get_device_properties=missing)
    monkeypatch.setitem(sys.modules, "torch", torch_with(cuda))
    for device in ("cuda:7", "tpu"):
        with pytest.raises(MissingPart, match=device):
            detect(device)


def test_a_torch_device_is_described(monkeypatch):
    found = types.SimpleNamespace(name="GPU", major=9, minor=0, multi_processor_count=132, total_memory=1 << 36)
    cuda = types.SimpleNamespace(
        is_available=lambda: True, device_count=lambda: 1, get_device_properties=lambda d: found
    )
    monkeypatch.setitem(sys.modules, "torch", torch_with(cuda))
    described = detect("cuda:0")
    assert (described.kind, described.name, described.capability) == ("cuda", "GPU", "9.0")
    assert (described.cores, described.memory_bytes) == (132, 1 << 36)
