"""Compilations of these tests use one thread and a cache that goes when the tests go."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def inductor_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give a module's compilations an empty cache of their own, and one thread."""
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'tunewise[torch]'")
    config: Any = pytest.importorskip("torch._inductor.config")
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
        torch.set_num_threads(1)
        with config.patch({"cpp.threads": 1, "compile_threads": 1}):
            yield
    torch.set_num_threads(threads)
    torch._dynamo.reset()
