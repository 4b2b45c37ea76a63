"""C kernels: a C source and `-D` parameters become a function to call on numpy arrays, compiled once per machine."""

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tunewise.decision import canonical, detect
from tunewise.errors import BuildError, KernelError
from tunewise.measure import sources
from tunewise.measure.compiler import Compiler, find_compiler
from tunewise.measure.kerneldir import kernel_dir
from tunewise.measure.signature import parse
from tunewise.measure.sources import Define

FLAGS = ("-std=gnu11", "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math")
_ALWAYS = ("-shared", "-fPIC", "-Wno-psabi", "-Wno-unknown-pragmas", "-x", "c", "-", "-lm")


class CKernel:
    """One function of a C source, built for any set of `-D` parameters.

    `source` is a path, or the text itself. The function returns an int, 0 for success; `signature` lists its
    parameters as C does: `"const float *a, float *c, int64_t n"`. A pointer takes a contiguous numpy array of that
    type, and one without `const` a writable array. What is built lies under `<home>/kernels`, named by everything that
    went into it, so many processes may build at once and nothing stale is ever loaded.
    """

    def __init__(
        self,
        source: Path | str,
        function: str = "run",
        *,
        signature: str,
        flags: Sequence[str] = FLAGS,
        timeout_s: float = 120.0,
    ) -> None:
        self._source, self._function, self._signature = source, function, signature
        self._flags, self._timeout_s = tuple(flags), timeout_s
        self._loaded: dict[tuple[tuple[str, Define], ...], Callable[..., int]] = {}

    @property
    def name(self) -> str:
        """The name that messages use: the file's, or the function's if the source is a text."""
        return self._source.name if isinstance(self._source, Path) else self._function

    def build(self, defines: Mapping[str, Define]) -> Path:
        """Return the shared library for these parameters, compiled now unless it lies in the cache.

        Raises InvalidConfig for a name or value that is no plain word or number, BuildError if the compiler refuses
        or needs longer than `timeout_s`, and MissingPart if there is no C compiler.
        """
        options = sources.options(defines)
        compiler = find_compiler()
        name = f"{self._digest(options, compiler)}.so"
        return kernel_dir().find(name) or self._compile(options, compiler, name)

    def load(self, defines: Mapping[str, Define]) -> Callable[..., int]:
        """Return the function built for these parameters, to call on arrays and numbers; remembered per process.

        A call raises ctypes.ArgumentError for an argument that does not fit the signature, and KernelError if the
        function reports anything but 0.
        """
        key = tuple(defines.items())
        function = self._loaded.get(key)
        if function is None:
            function = self._loaded[key] = self._bind(self._open(defines))
        return function

    def facts(self) -> dict[str, str]:
        """Return what must be equal for a measurement of this kernel to count: compiler, kernel source and flags."""
        return {
            "compiler": find_compiler().version,
            "kernel": self.tunewise_fingerprint(),
            "flags": " ".join(self._flags),
        }

    def tunewise_fingerprint(self) -> str:
        """Return 32 hex digits that change with the source, its local headers, the function and its signature."""
        return canonical.digest([self._function, self._signature, self._texts])[:32]

    @functools.cached_property
    def _texts(self) -> list[str]:
        """The source, then every local header it includes, directly or through another."""
        return sources.texts(self._source, "C")

    def _digest(self, options: Sequence[str], compiler: Compiler) -> str:
        machine = detect()  # -march=native means another thing on every machine
        built_by = [compiler.command, compiler.version, machine.capability, machine.name, machine.isa]
        return canonical.digest([self.tunewise_fingerprint(), self._flags, sorted(options), built_by])

    def _compile(self, options: Sequence[str], compiler: Compiler, name: str) -> Path:
        place = kernel_dir()
        # The text that was hashed is the text that is compiled: it goes in through stdin, under its own name.
        source = sources.labelled(self._texts[0], self.name, "kernel.c")
        headers = ("-iquote", str(self._source.resolve().parent)) if isinstance(self._source, Path) else ()
        try:
            with place.new_file(name) as unfinished:
                arguments = [*self._flags, *options, *headers, *_ALWAYS, "-o", str(unfinished)]
                compiler.run(arguments, source, cwd=place.path, timeout_s=self._timeout_s)
        except BuildError as error:
            raise BuildError(f"{self.name} did not compile with {' '.join(options)}: {error}") from None
        except OSError as error:
            raise BuildError(f"{self.name} cannot be built in {str(place.path)!r}: {error}") from None
        return place.path / name

    def _open(self, defines: Mapping[str, Define]) -> ctypes.CDLL:
        path = self.build(defines)
        try:
            return ctypes.CDLL(str(path))
        except OSError:  # swept away or damaged since it was built: a fault in a cache is a miss
            path.unlink(missing_ok=True)
        try:
            return ctypes.CDLL(str(self.build(defines)))
        except OSError as error:
            raise BuildError(
                f"{self.name} was built but cannot be loaded ({error}); "
                "if its directory forbids executing files, set TUNEWISE_HOME to one that does not"
            ) from None

    def _bind(self, library: ctypes.CDLL) -> Callable[..., int]:
        try:
            function = getattr(library, self._function)
        except AttributeError:
            raise BuildError(f"{self.name} compiled, but it defines no function {self._function!r}") from None
        name = self.name

        def must_succeed(status: int, *_: object) -> int:
            if status != 0:
                raise KernelError(f"{name} reported status {status}; 1 means that memory ran out")
            return status

        function.argtypes = [argument.converter for argument in parse(self._signature)]
        function.restype = ctypes.c_int
        function.errcheck = must_succeed
        bound: Callable[..., int] = function
        return bound
