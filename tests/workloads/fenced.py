"""Runs kernels on arrays that end where forbidden memory begins: one read or write beyond them kills the process.

Usage: fenced.py WORKLOAD CONFIGS SEED; prints how many calls were right.
"""

import ctypes
import faulthandler
import mmap
import sys

import numpy as np
from kernel_cases import CASES

_libc = ctypes.CDLL(None, use_errno=True)
_kept = []  # maps must outlive the arrays in them


def fenced(array, at_end):
    """Return a copy with no legal memory right after its last element (or right before its first)."""
    page = mmap.PAGESIZE
    inside = max(1, -(-array.nbytes // page)) * page
    memory = mmap.mmap(-1, inside + 2 * page)
    _kept.append(memory)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for fence in (start, start + page + inside):
        if _libc.mprotect(ctypes.c_void_p(fence), ctypes.c_size_t(page), 0) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")
    offset = page + (inside - array.nbytes if at_end else 0)
    copy = np.frombuffer(memory, array.dtype, array.size, offset).reshape(array.shape)
    copy[...] = array
    return copy


def main(workload, count, seed):
    case, right = CASES[workload], 0
    configs = case.sample(count, seed)
    spare = fenced(np.empty(1 << 22, np.float32), True), fenced(np.empty(1 << 22, np.float32), False)
    for at_end in (True, False):

        def room(floats, _, at_end=at_end):
            return spare[0][-floats:] if at_end else spare[1][:floats]

        for args, expected in case.problems(seed):
            args = tuple(fenced(arg, at_end) for arg in args)
            before = [arg.tobytes() for arg in args]
            out = fenced(np.empty(expected.shape, np.float32), at_end)
            for config in configs:
                out[...] = np.nan
                call = case.call(args, out, config, room) if workload == "gemm" else case.call(args, out, config)
                case.kernel.load(case.defines(config))(*call)
                wrong = case.why_wrong(out, expected)
                if wrong or before != [arg.tobytes() for arg in args]:
                    sys.exit(f"{config} on {[arg.shape for arg in args]}: {wrong or 'an argument is changed'}")
                right += 1
    print(right)


if __name__ == "__main__":
    faulthandler.enable()
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
