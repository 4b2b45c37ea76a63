"""Facts: what a problem is in the terms that rules of thumb are written in, whatever its features are called."""

from dataclasses import dataclass

from tunewise.errors import InvalidProblem

ROW, COLUMN = "row", "column"


@dataclass(frozen=True, slots=True)
class MatmulFact:
    """A product of an m x k and a k x n matrix, `batch` times over."""

    m: int
    n: int
    k: int
    batch: int = 1
    dtypes: tuple[str, str, str] = ("float32", "float32", "float32")  # of the two factors and the result
    layouts: tuple[str, str] = (ROW, ROW)  # of the two factors: `row` where the numbers of a row lie side by side

    def __post_init__(self) -> None:
        _check_sizes(self, "m", "n", "k", "batch")

    @property
    def operand_bytes(self) -> int:
        """The size of one number of the factors; the wider of the two."""
        return max(map(dtype_bytes, self.dtypes[:2]))


@dataclass(frozen=True, slots=True)
class ReductionFact:
    """Each of `rows` rows of `columns` numbers becomes one number, or is scaled by one."""

    rows: int
    columns: int
    dtype: str = "float32"
    passes: int = 1  # how often a row is read: 3 for a softmax, 2 for a mean and a variance

    def __post_init__(self) -> None:
        _check_sizes(self, "rows", "columns", "passes")

    @property
    def row_bytes(self) -> int:
        """The size of one row."""
        return self.columns * dtype_bytes(self.dtype)


@dataclass(frozen=True, slots=True)
class AttentionFact:
    """Attention of `queries` over `keys` in each of `batch` x `heads` heads."""

    batch: int
    heads: int
    queries: int
    keys: int
    head_dim: int
    dtype: str = "float16"
    is_causal: bool = False

    def __post_init__(self) -> None:
        _check_sizes(self, "batch", "heads", "queries", "keys", "head_dim")


Fact = MatmulFact | ReductionFact | AttentionFact

_BITS = {
    **dict.fromkeys(("float64", "fp64", "f64", "double", "int64", "i64"), 64),
    **dict.fromkeys(("float32", "fp32", "f32", "float", "tf32", "int32", "i32"), 32),
    **dict.fromkeys(("float16", "fp16", "f16", "half", "bfloat16", "bf16", "int16", "i16"), 16),
    **dict.fromkeys(("int8", "i8", "uint8", "u8", "fp8", "float8", "float8_e4m3fn", "float8_e5m2"), 8),
    **dict.fromkeys(("int4", "uint4", "fp4"), 4),
}


def dtype_bytes(dtype: str) -> int:
    """Return the size of a number by its type's name, such as `bfloat16` or `torch.bfloat16`; 4 for unknown ones."""
    return max(1, _BITS.get(dtype.rpartition(".")[2].lower(), 32) // 8)


def _check_sizes(fact: object, *names: str) -> None:
    for name in names:
        value = getattr(fact, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            kind = type(fact).__name__
            raise InvalidProblem(f"{kind}: {name}={value!r} is not a whole number of at least 1")
