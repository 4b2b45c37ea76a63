"""The signature of a C function, and the check that every argument of a call fits it."""

import ctypes
import re
from dataclasses import dataclass
from typing import Any

from tunewise.errors import InvalidDecision

_PARAMETER = re.compile(r"(?P<const>const\s+)?(?P<type>\w+)\s*(?P<star>\*)?\s*(?P<name>\w+)", re.ASCII)
_TYPES: dict[str, tuple[Any, str]] = {  # C type -> (how ctypes calls it, how numpy calls it)
    "float": (ctypes.c_float, "float32"),
    "double": (ctypes.c_double, "float64"),
    "int": (ctypes.c_int, "int32"),
    "int8_t": (ctypes.c_int8, "int8"),
    "uint8_t": (ctypes.c_uint8, "uint8"),
    "int16_t": (ctypes.c_int16, "int16"),
    "uint16_t": (ctypes.c_uint16, "uint16"),
    "int32_t": (ctypes.c_int32, "int32"),
    "uint32_t": (ctypes.c_uint32, "uint32"),
    "int64_t": (ctypes.c_int64, "int64"),
    "uint64_t": (ctypes.c_uint64, "uint64"),
    "size_t": (ctypes.c_size_t, "uint64"),
}


@dataclass(frozen=True, slots=True)
class Argument:
    """One parameter of a C function: a number, or the elements of an array."""

    name: str
    type: str
    is_array: bool = False
    is_written: bool = False

    @property
    def converter(self) -> Any:
        """What ctypes hands the caller's value to: it returns the C value, or raises TypeError."""
        return _array_type(self) if self.is_array else _TYPES[self.type][0]


def parse(signature: str) -> tuple[Argument, ...]:
    """Return the parameters that `"const float *a, float *c, int64_t n"` lists; raises InvalidDecision for others."""
    arguments = []
    for text in signature.split(","):
        match = _PARAMETER.fullmatch(text.strip())
        if match is None or match["type"] not in _TYPES:
            raise InvalidDecision(
                f"C parameter {text.strip()!r} is not a number or a pointer such as 'const float *a' or 'int64_t n'"
            )
        is_array = match["star"] is not None
        arguments.append(Argument(match["name"], match["type"], is_array, is_array and match["const"] is None))
    return tuple(arguments)


def _array_type(argument: Argument) -> Any:
    """Return a class whose `from_param` turns a fitting numpy array into its address: a wrong array never gets to C."""
    import numpy as np

    wanted = np.dtype(_TYPES[argument.type][1])
    is_written = argument.is_written
    array_class, address = np.ndarray, ctypes.byref
    first_byte: Any = ctypes.c_char.from_buffer

    class ArrayPointer:
        @classmethod
        def from_param(cls, value: Any) -> Any:
            if not isinstance(value, array_class) or value.dtype != wanted:
                raise TypeError(f"{argument.name} is {_kind(value)}, not a numpy array of {wanted}")
            flags = value.flags
            if not (flags.carray if is_written else flags.c_contiguous and flags.aligned):
                need = "contiguous and writable" if is_written else "contiguous"
                raise TypeError(f"{argument.name} is not {need}; pass numpy.ascontiguousarray({argument.name})")
            if value.size and flags.writeable:  # three times faster than value.ctypes.data
                return address(first_byte(value))
            return ctypes.c_void_p(value.ctypes.data)

    return ArrayPointer


def _kind(value: object) -> str:
    dtype = getattr(value, "dtype", None)
    return f"a {type(value).__name__}" if dtype is None else f"an array of {dtype}"
