"""What a user of mylib does: switch it on, and only the first call of a problem is slow; in the next process none is.

Run it:    python examples/mylib/use.py
See more:  MYLIB_LOG_LEVEL=debug python examples/mylib/use.py
"""

import time

import mylib
import numpy as np

x, w = np.random.standard_normal(20000), np.random.standard_normal(2000)


def show(when: str) -> None:
    start = time.perf_counter()
    mylib.moving_sum(x, w)
    print(f"{when:8} {time.perf_counter() - start:9.6f} s, by {mylib.moving_sum.decide(x, w).config['choice']}")


show("before")
mylib.use_autotuner(forward_pass=True, backward_pass=False)
show("first")
show("second")
mylib.disable_autotuner()
show("off")
