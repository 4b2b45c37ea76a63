"""Models as a file that `@helion.aot_kernel()` picks up: which config a kernel takes, from its arguments alone."""

import ast
import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tunewise.codegen.functions import RESERVED, candidates, functions, names_of
from tunewise.codegen.literals import python
from tunewise.codegen.naming import POSITIONAL
from tunewise.codegen.python import facts, renamed
from tunewise.errors import InvalidModel
from tunewise.formats.helionconfig import whole
from tunewise.models import Forest, Input, Model, Word

PREFIX = "helion."  # of the decisions that kernels are
_ARGUMENT = r"args\[[0-9]{1,3}\](?:\[[0-9]{1,3}\])*"
_READABLE = re.compile(
    rf"{_ARGUMENT}(?:\.shape\[[0-9]{{1,2}}\]|\.stride\([0-9]{{1,2}}\)|\.(?:dtype|ndim)|\.(?:numel|is_contiguous)\(\))?"
)
_NAMED = re.compile(r"arg([0-9]{1,3})((?:_[0-9]{1,3})*)_(dim[0-9]{1,2}|dtype|contiguous|scalar|word)")
_FILE_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.+-]{0,99}")
_WORDS = frozenset("args features configs number str shape stride dtype ndim numel is_contiguous".split())  # noqa: SIM905

_RANKING = '''def _ranking(features):
    """Return the numbers of configs, best first; empty outside what was measured."""'''

_KERNEL = '''def key_{kernel}(*args):
    """Return the number of the config for a call, or {fallback} outside what was measured."""
    try:
        ranking = _ranking_{kernel}(_features_{kernel}(args))
    except Exception:  # other arguments than it was measured with
        return {fallback}
    return ranking[0] if ranking else {fallback}


def autotune_{kernel}(*args):
    """Return the config for a call{otherwise}."""
    number = key_{kernel}(*args)
    configs = (
{configs}
    )
    return {answer}'''


def helion_source(
    models: Model | Mapping[str, Model], features: Mapping[str, str] | None = None, *, kernel: str | None = None
) -> str:
    """Return models as one Python file with `key_<kernel>(*args)` and `autotune_<kernel>(*args)` for every kernel.

    One model is for `kernel`, or for the kernel its decision is named after: that of `helion.matmul` is `matmul`.
    `features` says where a feature stands in the arguments, as {"m": "args[0].shape[0]"}; those that our Helion adapter
    records (`arg0_dim0`, `arg1_dtype`, `arg2_scalar`, ...) need no saying. Where a model abstains, the default it knows
    is the answer, else None, and Helion takes its own. Raises InvalidModel for what cannot be such a file.
    """
    named = {kernel or _kernel_of(models): models} if isinstance(models, Model) else dict(models)
    if not named:
        raise InvalidModel("a file for Helion needs the model of at least one kernel")
    known = {column.name for model in named.values() for column in model.columns.problem}
    for name in features or {}:
        if name not in known:
            raise InvalidModel(f"no model has the feature {name!r}; there are {', '.join(sorted(known)) or 'none'}")
    lines = [
        '"""Which config each kernel takes, learned by tunewise, for Helion\'s aot_kernel. It imports nothing."""',
        "",
        "# Generated code: rather than edit it, measure more and train again.",
    ]
    for name, model in named.items():
        lines += ["", *_part(name, model, features or {})]
    text = "\n".join(lines) + "\n"
    _check(text, named)
    return text


def helion_file_name(source: str, device: str, capability: str) -> str:
    """Return the name that Helion looks for: beside the kernel's source file, or in HELION_HEURISTIC_DIR.

    `source` is the name of the kernel's source file without `.py`; for an H100 the others are "cuda" and "sm90".
    """
    for what, word in (("source", source), ("device", device), ("capability", capability)):
        if not _FILE_PART.fullmatch(word):
            raise InvalidModel(f"{what}={word!r} cannot be part of a file's name; write it as in 'cuda', 'sm90'")
    return f"_helion_aot_{source}_{device}_{capability}.py"


def _kernel_of(model: Model) -> str:
    decision = model.card.decision
    if not decision.startswith(PREFIX):
        raise InvalidModel(
            f"the decision {decision!r} is not named after a Helion kernel: say which one it is for, as in "
            "kernel='matmul' or --kernel matmul"
        )
    return decision.removeprefix(PREFIX)


def _part(kernel: str, model: Model, features: Mapping[str, str]) -> Iterator[str]:
    if not kernel.isidentifier() or not kernel.isascii() or keyword.iskeyword(kernel) or len(kernel) > 100:
        raise InvalidModel(f"{kernel[:100]!r} is not the name of a Python function, and so of no kernel")
    model.check()
    written = functions(model, _RANKING, _read, words=False)
    yield from (f"# {line}".rstrip() for line in (*facts(model), *renamed(model.columns)))
    yield from ("", "")
    yield f"def _features_{kernel}(args):"
    yield '    """Return what is asked of a call."""'
    yield "    return {"
    for column in model.columns.problem:
        yield f"        {python(column.name)}: {_reading(column, features)},"
    yield from ("    }", "", "", *_model(kernel, model, written), "", "", *_answers(kernel, model).splitlines())


def _model(kernel: str, model: Model, written: Sequence[str]) -> Iterator[str]:
    """Yield the functions of a model inside one of their own: those of another kernel may be called the same."""
    yield f"def _model_{kernel}():"
    yield '    """Return the function that ranks the configs of the kernel."""'
    tables = candidates(model) if isinstance(model.body, Forest) else []
    lines = "\n".join((*tables, *written)).splitlines()
    yield from (f"    {line}".rstrip() for line in lines)
    yield from ("", "    return _ranking", "", "", f"_ranking_{kernel} = _model_{kernel}()")


def _answers(kernel: str, model: Model) -> str:
    configs = "\n".join(f"        {_literal(whole(choice))},  # {n}" for n, choice in enumerate(model.choices))
    has_default = model.default is not None
    return _KERNEL.format(
        kernel=kernel,
        fallback=model.default if has_default else -1,
        otherwise="" if has_default else ", or None where Helion's own default is as good a guess",
        configs=configs,
        answer="configs[number]" if has_default else "configs[number] if number >= 0 else None",
    )


def _literal(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{python(name)}: {_literal(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return python(value)


def _read(column: Input) -> str:
    value = f"features[{python(column.name)}]"
    return value if isinstance(column, Word) else f"{value} * 1.0"


def _reading(column: Input, features: Mapping[str, str]) -> str:
    """Return how a feature is read off the arguments; a word is a text, and torch's types go by their bare names."""
    place = features[column.name] if column.name in features else _by_name(column.name)
    if place is None:
        raise InvalidModel(
            f"where is the feature {column.name!r} in the kernel's arguments? Say so as in "
            "features={'m': 'args[0].shape[0]'} or --feature 'm=args[0].shape[0]'"
        )
    if not isinstance(place, str) or not _READABLE.fullmatch(place):
        raise InvalidModel(
            f"the feature {column.name!r} is said to be {str(place)[:80]!r}; it can be an argument such as args[2], or "
            "its .shape[0], .stride(0), .dtype, .ndim, .numel() or .is_contiguous()"
        )
    return f'str({place}).removeprefix("torch.")' if isinstance(column, Word) else place


def _by_name(name: str) -> str | None:
    """Return where a feature stands that is named as our Helion adapter names them."""
    found = _NAMED.fullmatch(name)
    if found is None:
        return None
    place = f"args[{int(found[1])}]" + "".join(f"[{int(part)}]" for part in found[2].split("_")[1:])
    ends = {"dtype": ".dtype", "contiguous": ".is_contiguous()", "scalar": "", "word": ""}
    return place + (f".shape[{int(found[3][3:])}]" if found[3].startswith("dim") else ends[found[3]])


def _check(text: str, named: Mapping[str, Model]) -> None:
    """Raise InvalidModel unless the code imports nothing and speaks of nothing but arguments and our own names."""
    ours = {f"{part}_{kernel}" for kernel in named for part in ("key", "autotune", "_features", "_ranking", "_model")}
    given = {name for model in named.values() for name in names_of(model.columns)}
    known = ours | given | _WORDS | RESERVED | {"ranking", "removeprefix", "_ranking", "_guess", "_"}
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidModel(
            f"the model is too large or too deep for a module: {type(error).__name__}: {error}"
        ) from None
    for node in ast.walk(tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                raise InvalidModel("the generated code imports something: a fault of ours")
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.FunctionDef(name=word):
                if word not in known and not POSITIONAL.fullmatch(word):
                    raise InvalidModel(f"the generated code speaks of {word!r}: a fault of ours")
