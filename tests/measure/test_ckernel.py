import ctypes
import os
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import tunewise
from limits import HANG_S, stretched
from tunewise import errors
from tunewise.measure import compiler, kerneldir
from tunewise.measure.ckernel import CKernel

SCALE = """
#include <stdint.h>
int run(const float *x, float *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = FACTOR * x[i];
    return 0;
}
"""
SIGNATURE = "const float *x, float *out, int64_t n"


@pytest.fixture
def counted_compiler(tmp_path, monkeypatch):
    """A compiler that leaves a line behind for every run that is not about its version."""
    log, script = tmp_path / "runs", tmp_path / "counting-cc"
    real = compiler.find_compiler().command[0]
    script.write_text(f'#!/bin/sh\n[ "$1" = --version ] || echo run >> {log}\nexec {real} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    log.touch()
    return lambda: len(log.read_text().splitlines())


def scaled(kernel, factor, values=(1.0, 2.0, 3.0)):
    x = np.array(values, np.float32)
    out = np.zeros_like(x)
    kernel.load({"FACTOR": factor})(x, out, x.size)
    return out.tolist()


def test_function_runs_on_arrays():
    assert scaled(CKernel(SCALE, signature=SIGNATURE), 3) == [3.0, 6.0, 9.0]


def test_each_set_of_defines_is_its_own_build():
    kernel = CKernel(SCALE, signature=SIGNATURE)
    assert (scaled(kernel, 2), scaled(kernel, 5)) == ([2.0, 4.0, 6.0], [5.0, 10.0, 15.0])


def test_cached_build_does_not_run_the_compiler_again(counted_compiler):
    first = CKernel(SCALE, signature=SIGNATURE).build({"FACTOR": 2})
    again = CKernel(SCALE, signature=SIGNATURE).build({"FACTOR": 2})
    assert first == again
    assert counted_compiler() == 1


def test_order_of_defines_does_not_matter():
    kernel = CKernel(SCALE, signature=SIGNATURE)
    assert kernel.build({"FACTOR": 2, "OTHER": 1}) == kernel.build({"OTHER": 1, "FACTOR": 2})


@pytest.mark.parametrize(
    "other",
    [
        CKernel(SCALE + "\n", signature=SIGNATURE),
        CKernel(SCALE, signature=SIGNATURE, flags=("-O1",)),
        CKernel(SCALE.replace("run", "go"), "go", signature=SIGNATURE),
    ],
    ids=["source", "flags", "function"],
)
def test_a_change_gives_another_file(other):
    assert other.build({"FACTOR": 2}) != CKernel(SCALE, signature=SIGNATURE).build({"FACTOR": 2})


def test_a_change_of_compiler_gives_another_file(counted_compiler, monkeypatch):
    path = CKernel(SCALE, signature=SIGNATURE).build({"FACTOR": 2})
    monkeypatch.delenv("CC")
    assert CKernel(SCALE, signature=SIGNATURE).build({"FACTOR": 2}) != path


def test_a_changed_local_header_gives_another_file(tmp_path):
    source, header, inner = tmp_path / "scale.c", tmp_path / "factor.h", tmp_path / "inner.h"
    source.write_text('#include "factor.h"\n' + SCALE.replace("FACTOR", "VALUE"))
    header.write_text('#include "inner.h"\n')
    inner.write_text("#define VALUE (FACTOR + 1)\n")
    assert scaled(CKernel(source, signature=SIGNATURE), 1) == [2.0, 4.0, 6.0]
    inner.write_text("#define VALUE (FACTOR + 2)\n")
    assert scaled(CKernel(source, signature=SIGNATURE), 1) == [3.0, 6.0, 9.0]


def test_files_are_named_by_digest_in_a_private_directory(home):
    path = CKernel(SCALE, signature=SIGNATURE).build({"FACTOR": 2})
    assert path.parent == home / "kernels"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert len(path.stem) == 64
    assert set(path.stem) <= set("0123456789abcdef")


def test_build_leaves_nothing_but_the_library(home):
    CKernel(SCALE, signature=SIGNATURE).build({"FACTOR": 2})
    with pytest.raises(errors.BuildError):
        CKernel("int run( {", signature="int n").build({})
    assert len(list((home / "kernels").iterdir())) == 1


def test_build_error_ends_with_the_compilers_last_lines(tmp_path):
    source = tmp_path / "broken.c"
    source.write_text("int run(int n) {\n    return nonsense_word;\n}\n")
    with pytest.raises(errors.BuildError) as caught:
        CKernel(source, signature="int n").build({"TILE": 8})
    first, *said = str(caught.value).splitlines()
    assert first.startswith("broken.c did not compile with -DTILE=8")
    assert any("broken.c:2" in line and "nonsense_word" in line for line in said)


def test_missing_function_is_a_build_error():
    with pytest.raises(errors.BuildError, match="defines no function 'run'"):
        CKernel("int other(int n) { return n; }", signature="int n").load({})


def test_compiler_that_hangs_is_stopped_with_its_children(tmp_path, monkeypatch):
    script, alive = tmp_path / "hanging-cc", tmp_path / "child"
    script.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo hang 1 && exit\nsleep 3600 & echo $! > {alive}\nwait\n')
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    start, limit_s = time.monotonic(), stretched(0.5)
    with pytest.raises(errors.BuildError, match=f"stopped after {limit_s:g} s"):
        CKernel(SCALE, signature=SIGNATURE, timeout_s=limit_s).build({"FACTOR": 2})
    assert time.monotonic() - start < HANG_S
    assert not _is_alive(int(alive.read_text()))


def _is_alive(pid):
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return False
        if state == "Z":
            return False
        time.sleep(0.02)
    return True


def test_missing_compiler_is_one_clear_sentence(tmp_path, monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(errors.MissingPart) as caught:
        CKernel(SCALE, signature=SIGNATURE).build({"FACTOR": 2})
    assert "need a C compiler" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cc", ["no-such-compiler", "'unclosed", " ", "/dev/null"])
def test_nonsense_compiler_is_one_clear_sentence(cc, monkeypatch):
    monkeypatch.setenv("CC", cc)
    with pytest.raises(errors.MissingPart, match="C compiler") as caught:
        CKernel(SCALE, signature=SIGNATURE).facts()
    assert "\n" not in str(caught.value)


def test_compiler_that_fails_to_say_its_version_is_named(tmp_path, monkeypatch):
    script = tmp_path / "failing-cc"
    script.write_text("#!/bin/sh\nexit 3\n")
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    with pytest.raises(errors.MissingPart, match="does not answer --version"):
        compiler.find_compiler()


def test_compiler_setting_may_carry_options(monkeypatch):
    real = compiler.find_compiler().command[0]
    monkeypatch.setenv("CC", f"{real} -DEXTRA=4")
    kernel = CKernel(SCALE.replace("FACTOR", "(FACTOR + EXTRA)"), signature=SIGNATURE)
    assert scaled(kernel, 1) == [5.0, 10.0, 15.0]


@pytest.mark.parametrize(
    "name", ["A=1 -include/etc/passwd", "A;B", "", "1A", "A\n", "-shared", "A B", "Ä", "A(x)", "x" * 65, 3]
)
def test_hostile_define_names_are_refused(name, counted_compiler):
    with pytest.raises(errors.InvalidConfig, match="is not a C identifier"):
        CKernel(SCALE, signature=SIGNATURE).build({"FACTOR": 2, name: 1})
    assert counted_compiler() == 0


@pytest.mark.parametrize(
    "value", ["1 -o/tmp/x", "system()", "", "a\nb", '"', "#include", "x" * 65, "é", 1.5, None, (1, 2), 1 << 63]
)
def test_hostile_define_values_are_refused(value, counted_compiler):
    with pytest.raises(errors.InvalidConfig, match="FACTOR="):
        CKernel(SCALE, signature=SIGNATURE).build({"FACTOR": value})
    assert counted_compiler() == 0


def test_bool_and_negative_defines_are_numbers():
    kernel = CKernel(SCALE, signature=SIGNATURE)
    assert scaled(kernel, True) == [1.0, 2.0, 3.0]
    assert kernel.build({"FACTOR": True}) == kernel.build({"FACTOR": 1})
    assert scaled(CKernel(SCALE.replace("FACTOR", "(FACTOR)"), signature=SIGNATURE), -2) == [-2.0, -4.0, -6.0]


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros(4, np.float64),
        np.zeros((4, 4), np.float32)[:, 0],
        np.zeros(17, np.uint8)[1:].view(np.float32),
        [1.0, 2.0],
        None,
    ],
    ids=["dtype", "strided", "misaligned", "list", "none"],
)
def test_array_that_does_not_fit_never_reaches_c(bad):
    run = CKernel(SCALE, signature=SIGNATURE).load({"FACTOR": 2})
    with pytest.raises(ctypes.ArgumentError, match="x is "):
        run(bad, np.zeros(4, np.float32), 4)


def test_read_only_array_may_be_read_but_not_written():
    run = CKernel(SCALE, signature=SIGNATURE).load({"FACTOR": 2})
    fixed = np.ones(4, np.float32)
    fixed.flags.writeable = False
    out = np.zeros(4, np.float32)
    run(fixed, out, 4)
    assert out.tolist() == [2.0] * 4
    with pytest.raises(ctypes.ArgumentError, match="out is not contiguous and writable"):
        run(out, fixed, 4)


def test_empty_array_is_fine():
    empty = np.zeros(0, np.float32)
    assert CKernel(SCALE, signature=SIGNATURE).load({"FACTOR": 2})(empty, empty, 0) == 0


def test_status_other_than_zero_raises():
    run = CKernel("int run(int n) { return n; }", signature="int n").load({})
    assert run(0) == 0
    with pytest.raises(errors.KernelError, match="status 7"):
        run(7)


@pytest.mark.parametrize("signature", ["float **x", "struct s *x", "const x", "", "int n; int m"])
def test_unknown_parameter_in_a_signature_is_refused(signature):
    with pytest.raises(errors.InvalidDecision, match="C parameter"):
        CKernel("int run(int n) { return n; }", signature=signature).load({})


def test_load_is_remembered():
    kernel = CKernel(SCALE, signature=SIGNATURE)
    assert kernel.load({"FACTOR": 2}) is kernel.load({"FACTOR": 2})


@pytest.mark.parametrize("damage", [lambda p: p.unlink(), lambda p: p.write_bytes(b"not a library")])
def test_damaged_or_swept_library_is_built_again(damage, monkeypatch):
    kernel = CKernel(SCALE, signature=SIGNATURE)
    path = kernel.build({"FACTOR": 2})
    damage(path)
    monkeypatch.setattr(kernel, "build", _stale_once(kernel, path))
    assert scaled(kernel, 2) == [2.0, 4.0, 6.0]


def _stale_once(kernel, path):
    """Return a build whose first answer was true a moment ago."""
    answers = [path]
    return lambda defines: answers.pop() if answers else CKernel.build(kernel, defines)


def test_unwritable_home_builds_in_a_directory_of_the_process(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("TUNEWISE_HOME", str(tmp_path / "file"))
    tunewise.configure()
    with pytest.warns(errors.MeasureWarning, match="kept for this process only"):
        path = CKernel(SCALE, signature=SIGNATURE).build({"FACTOR": 2})
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert CKernel(SCALE, signature=SIGNATURE).build({"FACTOR": 2}) == path


def make_open_to_all(kernels, _):
    kernels.mkdir(parents=True)
    kernels.chmod(0o777)


def make_link(kernels, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    kernels.parent.mkdir()
    kernels.symlink_to(tmp_path / "elsewhere")


def make_foreign(kernels, _):
    kernels.mkdir(parents=True)
    os.chown(kernels, 12345, 12345)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (make_open_to_all, "written by other users"),
        (make_link, "is not a directory"),
        pytest.param(
            make_foreign,
            "belongs to another user",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away"),
        ),
    ],
)
def test_directory_others_may_write_is_not_trusted(make, reason, home, tmp_path):
    make(home / "kernels", tmp_path)
    with pytest.warns(errors.MeasureWarning, match=reason):
        path = CKernel(SCALE, signature=SIGNATURE).build({"FACTOR": 2})
    assert path.parent != home / "kernels"
    assert list((home / "kernels").iterdir()) == []


def test_abandoned_files_are_swept_and_young_ones_stay(home):
    kernels = home / "kernels"
    kernels.mkdir(parents=True, mode=0o700)
    old, young = kernels / ".unfinished-old", kernels / ".unfinished-young"
    old.touch()
    young.touch()
    os.utime(old, (time.time() - 7200,) * 2)
    assert kerneldir.kernel_dir().path == kernels
    assert [path.name for path in kernels.iterdir()] == [young.name]


def test_processes_may_build_the_same_kernel_at_once(home):
    script = textwrap.dedent(f"""
        import sys
        from tunewise.measure.ckernel import CKernel
        kernel = CKernel({SCALE!r}, signature={SIGNATURE!r})
        sys.stdin.readline()
        import numpy as np
        x = np.ones(5, np.float32); out = np.zeros(5, np.float32)
        kernel.load({{"FACTOR": 7}})(x, out, 5)
        print(kernel.build({{"FACTOR": 7}}).name, out.sum())
    """)
    run = [sys.executable, "-c", script]
    crowd = [subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for process in crowd:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = {process.communicate(timeout=HANG_S)[0] for process in crowd}
    assert [process.returncode for process in crowd] == [0] * 4
    assert len(said) == 1
    assert said.pop().endswith(".so 35.0\n")
    assert len(list((home / "kernels").iterdir())) == 1


def test_facts_name_compiler_source_and_flags():
    kernel = CKernel(SCALE, signature=SIGNATURE)
    facts = kernel.facts()
    assert facts["compiler"] == compiler.find_compiler().version
    assert facts["kernel"] == kernel.tunewise_fingerprint()
    assert len(facts["kernel"]) == 32
    assert "-O3" in facts["flags"]


def test_source_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(errors.MissingPart, match=r"missing\.c"):
        CKernel(tmp_path / "missing.c", signature="int n").build({})
