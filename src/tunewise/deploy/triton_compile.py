"""Compiling a config of a Triton kernel for a named target, with no GPU: what it needs, or why it does not compile."""

import inspect
import re
import subprocess
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from tunewise.decision import Config, canonical
from tunewise.deploy.triton_kernel import source_of
from tunewise.errors import InvalidDecision

ALIGNMENT_BYTES = 16  # what Triton assumes of pointers and sizes that are multiples of it, as nearly all are
_MAX_SAID = 2000
_NVIDIA = re.compile(r"REG:(\d+) STACK:(\d+)")
_AMD = re.compile(r"\.(vgpr_count|vgpr_spill_count):\s+(\d+)")


class Needs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a compiled kernel needs of one block, and of one thread; or what the compiler said against it."""

    shared_bytes: int = 0
    registers: int = 0  # of a thread
    spill_bytes: int = 0  # of a thread, in memory because the registers did not suffice
    refused: str = ""


@dataclass(frozen=True, eq=False)
class Build:
    """A kernel and all that it takes to compile it but the config."""

    jit: Any
    signature: Mapping[str, str]  # argument -> type, such as `*fp16` or `i32`
    constants: Mapping[str, Any]
    aligned: frozenset[str]
    target: Any  # a triton GPUTarget

    def digest(self, config: Config) -> str:
        """Return what a result is kept under: the kernel's source, the config, the types, the target, the compiler."""
        import triton

        target = [self.target.backend, self.target.arch, self.target.warp_size]
        types = [dict(self.signature), {n: str(v) for n, v in self.constants.items()}, sorted(self.aligned)]
        return canonical.digest([source_of(self.jit), dict(config), types, target, triton.__version__])

    def needs(self, config: Config) -> Needs:
        """Compile a config and return what it needs; anything the compiler says against it is in `refused`."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return _measured(self._compiled(config))
        except Exception as error:  # the compiler's own classes are many, and all of them mean that it refuses
            return Needs(refused=f"{type(error).__name__}: {error}"[-_MAX_SAID:])

    def _compiled(self, config: Config) -> Any:
        import triton
        from triton.compiler import ASTSource

        names = list(self.jit.arg_names)
        given = {
            **_defaults(self.jit),
            **self.constants,
            **{name: value for name, value in config.items() if value is not None},
        }
        constants = {name: given[name] for name in names if name in given and name not in self.signature}
        types = {name: self.signature.get(name, "constexpr") for name in names}
        hints = {(names.index(name),): [["tt.divisibility", ALIGNMENT_BYTES]] for name in self.aligned}
        options = {name: value for name, value in given.items() if name not in names}
        return triton.compile(ASTSource(self.jit, types, constants, hints), target=self.target, options=options)


def build(
    jit: Any,
    signature: Mapping[str, str],
    target: Any,
    constants: Mapping[str, Any],
    aligned: frozenset[str] | None,
) -> Build:
    """Return what it takes to compile a kernel; raises InvalidDecision for a name that is no argument of it.

    Arguments that are left out of the signature are constants; `aligned` None stands for all pointers and integers.
    """
    for name in (*signature, *constants, *(aligned or ())):
        if name not in jit.arg_names:
            raise InvalidDecision(f"{jit.__name__} has no argument {name!r}; it has {', '.join(jit.arg_names)}")
    hinted = frozenset(name for name, word in signature.items() if word.startswith(("*", "i", "u")))
    return Build(jit, signature, constants, hinted if aligned is None else aligned, target)


def check_whole(job: Build, config: Config) -> None:
    """Raise InvalidDecision where an argument has neither a type nor a value: that is no config's fault."""
    known = {*job.signature, *job.constants, *_defaults(job.jit), *config}
    for name in job.jit.arg_names:
        if name not in known:
            raise InvalidDecision(
                f"{job.jit.__name__}: {name} has neither a type in the signature nor a value in constants or the config"
            )


def _defaults(jit: Any) -> dict[str, Any]:
    parameters = inspect.signature(jit.fn).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not one.empty}


def _measured(compiled: Any) -> Needs:
    registers, spill_bytes = _of_cubin(compiled.asm["cubin"]) if "cubin" in compiled.asm else _of_amd(compiled.asm)
    return Needs(int(compiled.metadata.shared), registers, spill_bytes)


def _of_cubin(cubin: bytes) -> tuple[int, int]:
    """Return registers and stack bytes of a thread: Triton itself counts the stack as spills."""
    import triton

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [triton.knobs.nvidia.cuobjdump.path, "--dump-resource-usage", file.name]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = [(int(registers), int(stack)) for registers, stack in _NVIDIA.findall(said)]
    return max(found, default=(0, 0))


def _of_amd(asm: Mapping[str, Any]) -> tuple[int, int]:
    found = {name: int(count) for name, count in _AMD.findall(str(asm.get("amdgcn", "")))}
    return found.get("vgpr_count", 0), 4 * found.get("vgpr_spill_count", 0)
