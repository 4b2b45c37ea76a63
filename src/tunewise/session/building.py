"""Building configs ahead, on all cores, while nothing is being timed."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tunewise import system
from tunewise.decision import Config, Failure
from tunewise.errors import TunewiseError


def built(
    build: Callable[[Config], object], configs: Sequence[Config], is_moot: Callable[[], bool] = bool
) -> list[Failure | None]:
    """Build configs side by side and return what failed; those left when `is_moot` says so are not built."""

    def one(config: Config) -> Failure | None:
        if is_moot():
            return None
        try:
            build(config)
        except Exception as error:  # a candidate's own trouble, whatever it is
            return Failure(
                "compile", f"{'' if isinstance(error, TunewiseError) else type(error).__name__ + ': '}{error}"
            )
        return None

    with ThreadPoolExecutor(max_workers=system.cores()) as pool:
        return list(pool.map(one, configs))
