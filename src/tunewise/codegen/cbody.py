"""The functions of a model in C: the same comparisons as in Python, on the same doubles, in the same order."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from tunewise.codegen.formulas import Formulas, in_c, kept_in_c
from tunewise.codegen.functions import has_words, support
from tunewise.codegen.literals import c_remark, c_string, folded_sum, python_float
from tunewise.codegen.naming import remark
from tunewise.codegen.placing import places
from tunewise.models import E, Forest, Guess, Input, Leaf, Model, Split, Tree, Word

_FLOOR = """/* Floor division as in Python, step by step, so that both agree to the last bit. */
static inline double {p}_floor_div(double left, double right)
{{
    const double rest = fmod(left, right);
    double quotient = (left - rest) / right;
    double whole;
    if (rest != 0.0 && (right < 0.0) != (rest < 0.0))
        quotient -= 1.0;
    whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1.0 : whole;
}}
"""
_REST = """/* The remainder as in Python, so that both agree to the last bit. */
static inline double {p}_rest(double left, double right)
{{
    const double rest = fmod(left, right);
    return rest != 0.0 && (right < 0.0) != (rest < 0.0) ? rest + right : rest;
}}
"""
_PRODUCT = """/* A product that is rounded before it is used: no compiler may fuse it with a sum. */
static inline double {p}_product(double left, double right)
{{
    volatile double rounded = left * right;
    return rounded;
}}
"""
_INDEX = """/* Return the number of a word, or -1 where it is not known. */
static inline int {p}_index(const char *word, const char *const *words, int count)
{{
    int number;
    for (number = 0; word && number < count; number++)
        if (strcmp(word, words[number]) == 0)
            return number;
    return -1;
}}
"""
_RANK = "/* Write the numbers of up to k choices to out, best first, and return how many; 0 means: use the default. */"


def needs_math(lines: Iterable[str]) -> bool:
    """Return whether functions need the mathematics library."""
    return any(f" {function}(" in line for line in lines for function in ("fmod", "pow"))


def functions(model: Model, prefix: str, names: Sequence[str]) -> Iterator[str]:
    """Yield the lines of `rank` and of all that it calls, called ones first."""
    body = model.in_trees()
    ranking = _tree(model, body, prefix, names) if isinstance(body, Tree) else _forest(model, body, prefix, names)
    text = "\n".join(ranking)
    for called, written in (("floor_div", _FLOOR), ("rest", _REST), ("product", _PRODUCT), ("index", _INDEX)):
        if f"{prefix}_{called}(" in text:
            yield from (*written.format(p=prefix).splitlines(), "")
    yield from text.splitlines()


def _tree(model: Model, tree: Tree, prefix: str, names: Sequence[str]) -> Iterator[str]:
    inputs = tuple(
        f"w{place}" if isinstance(column, Word) else names[place] for place, column in enumerate(model.columns.inputs)
    )
    used = [node.column for node in tree.nodes if isinstance(node, Split)]
    formulas = Formulas(model.columns, inputs, in_c(prefix), kept_in_c(prefix)).asked(used)
    ahead = formulas.ahead(used)
    placed = places(tree, formulas, ahead)
    leaves: list[Leaf] = []

    def before(number: int) -> Iterator[str]:
        for name, formula in formulas.assignments(placed.get(number, ())):
            yield from folded_sum(f"const double {name} = ", formula, ";")

    def answer(node: Leaf | Guess) -> str:
        assert isinstance(node, Leaf)
        leaves.append(node)
        return f"return {len(leaves) - 1};{_comment(_leaf_remark(model, node))}"

    yield "/* Return which leaf a problem ends in, or -1 outside what was measured. */"
    yield f"static inline int {prefix}_leaf(const struct {prefix}_features *f)"
    yield "{"
    yield from _reading(model, prefix, names, inputs, "-1")
    yield from _ifs(tree.nodes, 0, lambda split: _test(split, formulas, ahead), answer, before)
    yield from ("}", "", *_ranked(prefix, leaves))


def _ranked(prefix: str, leaves: Sequence[Leaf]) -> Iterator[str]:
    starts = [0]
    for leaf in leaves:
        starts.append(starts[-1] + len(leaf.ranking))
    yield _RANK
    yield f"static inline int {prefix}_rank(const struct {prefix}_features *f, int k, int *out)"
    yield "{"
    yield f"    static const int starts[] = {{{', '.join(map(str, starts))}}};"
    yield "    static const int ranked[] = {"
    yield from (f"        {', '.join(map(str, leaf.ranking))}," for leaf in leaves if leaf.ranking)
    yield from ("        -1", "    };")
    yield f"    const int leaf = {prefix}_leaf(f);"
    yield from ("    int count = 0;", "    if (leaf < 0)", "        return 0;")
    yield "    for (; count < k && starts[leaf] + count < starts[leaf + 1]; count++)"
    yield "        out[count] = ranked[starts[leaf] + count];"
    yield from ("    return count;", "}")


def _forest(model: Model, forest: Forest, prefix: str, names: Sequence[str]) -> Iterator[str]:
    inputs = tuple(f"x[{place}]" for place in range(len(model.columns.inputs)))
    formulas = Formulas(model.columns, inputs, in_c(prefix), kept_in_c(prefix), "x[{}]")
    derived = range(len(inputs), len(inputs) + len(model.columns.derived))
    for place, name in enumerate(model.columns.names):
        yield f"/* x[{place}] is {c_remark(remark(name))} */"
    for number, nodes in enumerate(forest.trees):
        unused = "" if isinstance(nodes[0], Split) else "    (void)x;"
        yield f"static inline double {prefix}_tree_{number}(const double *x)"
        yield from ("{", *([unused] if unused else []))
        yield from _ifs(nodes, 0, lambda split: _test(split, formulas, frozenset(derived)), _guess)
        yield from ("}", "")
    yield from _table(model, prefix)
    yield from _rates(forest, prefix)
    yield from _guessing(model, forest, prefix, formulas)
    yield from _sorting(model, prefix, names)


def _table(model: Model, prefix: str) -> Iterator[str]:
    """Yield the function that gives the values of one candidate's columns."""
    width = len(model.columns.config)
    if not width:
        return
    yield f"static inline const double *{prefix}_candidate(int number)"
    yield "{"
    yield f"    static const double candidates[][{width}] = {{"
    for choice in model.choices:
        yield f"        {{{', '.join(map(python_float, model.columns.setting(choice)))}}},"
    yield from ("    };", "    return candidates[number];", "}", "")


def _rates(forest: Forest, prefix: str) -> Iterator[str]:
    """Yield the function that gives the rates at which one candidate works."""
    if forest.work is None:
        return
    yield f"static inline const double *{prefix}_rates(int number)"
    yield "{"
    yield f"    static const double rates[][{len(forest.work.amounts) + 1}] = {{"
    yield from (f"        {{{', '.join(map(python_float, rates))}}}," for rates in forest.work.rates)
    yield from ("    };", "    return rates[number];", "}", "")


def _guessing(model: Model, forest: Forest, prefix: str, formulas: Formulas) -> Iterator[str]:
    first, width = len(model.columns.problem), len(model.columns.config)
    guessed = "the logarithm of the time" if forest.work is None else "the time"
    yield f"/* Return {guessed} a candidate is expected to take, up to a constant. */"
    yield f"static inline double {prefix}_guess(double *x, int number)"
    yield "{"
    yield f"    double total = {python_float(forest.base)};"
    if forest.work is not None:
        yield f"    const double *rate = {prefix}_rates(number);"
        yield "    double time = rate[0];"
    if width:
        yield "    int place;"
        yield f"    for (place = 0; place < {width}; place++)"
        yield f"        x[{first} + place] = {prefix}_candidate(number)[place];"
    elif forest.work is None:
        yield "    (void)number;"
    inputs = len(formulas.inputs)
    ahead = range(inputs, inputs + len(model.columns.derived))
    yield from (f"    {name} = {formula};" for name, formula in formulas.assignments(ahead))
    yield from (f"    total += {prefix}_tree_{number}(x);" for number in range(len(forest.trees)))
    amounts = () if forest.work is None else forest.work.amounts
    yield from (() if forest.trees or width or model.columns.derived or amounts else ("    (void)x;",))
    if forest.work is None:
        yield from ("    return total;", "}", "")
        return
    for place, column in enumerate(amounts, start=1):
        yield f"    time += {prefix}_product(x[{column}], rate[{place}]);"
    yield f"    return pow({python_float(E)}, total) * pow(time, {python_float(forest.work.share)});"
    yield from ("}", "")


def _sorting(model: Model, prefix: str, names: Sequence[str]) -> Iterator[str]:
    total = len(model.columns.inputs) + len(model.columns.derived)
    problem = [f"x[{place}]" for place in range(len(model.columns.problem))]
    words = [
        f"w{place}" if isinstance(column, Word) else problem[place]
        for place, column in enumerate(model.columns.problem)
    ]
    yield _RANK
    yield f"static inline int {prefix}_rank(const struct {prefix}_features *f, int k, int *out)"
    yield "{"
    yield f"    double x[{max(total, 1)}];"
    yield f"    double guesses[{len(model.choices)}];"
    yield "    int count = 0, number, best;"
    yield from _reading(model, prefix, names, words, "0")
    yield from (f"    {x} = {word};" for x, word in zip(problem, words, strict=True) if x != word)
    yield f"    for (number = 0; number < {len(model.choices)}; number++)"
    yield f"        guesses[number] = {prefix}_guess(x, number);"
    yield f"    for (; count < k && count < {len(model.choices)}; count++) {{"
    yield "        /* The least guess after the last one, in the order of the choices where guesses are equal. */"
    yield "        const int last = count ? out[count - 1] : -1;"
    yield "        best = -1;"
    yield f"        for (number = 0; number < {len(model.choices)}; number++) {{"
    yield "            if (last >= 0 && (guesses[number] < guesses[last]"
    yield "                              || (guesses[number] == guesses[last] && number <= last)))"
    yield "                continue;"
    yield "            if (best < 0 || guesses[number] < guesses[best])"
    yield "                best = number;"
    yield from ("        }", "        out[count] = best;", "    }", "    return count;", "}")


def _reading(model: Model, prefix: str, names: Sequence[str], inputs: Sequence[str], otherwise: str) -> Iterator[str]:
    """Yield the lines that read a problem, and leave where it is outside what was measured."""
    yield from ("    if (!f)", f"        return {otherwise};")
    for place, column in enumerate(model.columns.problem):
        yield from (f"    {line}" for line in _read(place, column, prefix, names[place], inputs[place]))
        yield f"        return {otherwise};"


def _read(place: int, column: Input, prefix: str, name: str, local: str) -> list[str]:
    if isinstance(column, Word):
        words = ", ".join(map(c_string, column.words))
        return [
            f"static const char *const words_{place}[] = {{{words}}};",
            f"const int w{place} = {prefix}_index(f->{name}, words_{place}, {len(column.words)});",
            f"if (w{place} < 0)",
        ]
    declared = local if local.startswith("x[") else f"const double {local}"
    within = f"{local} >= {python_float(column.low)} && {local} <= {python_float(column.high)}"
    return [f"{declared} = f->{name};", f"if (!({within}))"]


def _ifs(
    nodes: Sequence[Split | Leaf | Guess],
    number: int,
    test: Callable[[Split], str],
    answer: Callable[[Leaf | Guess], str],
    before: Callable[[int], Iterable[str]] = lambda _: (),
    indent: str = "    ",
) -> Iterator[str]:
    """Yield nested ifs; every branch returns, so that the other one needs no else and no deeper indent."""
    while isinstance(node := nodes[number], Split):
        yield from (f"{indent}{line}" for line in before(number))
        yield f"{indent}if ({test(node)}) {{"
        yield from _ifs(nodes, node.low, test, answer, before, f"{indent}    ")
        yield f"{indent}}}"
        number = node.high
    yield f"{indent}{answer(node)}"


def _test(split: Split, formulas: Formulas, ahead: frozenset[int]) -> str:
    text = formulas.written(split.column, ahead)
    if not split.words:
        return f"{text} <= {python_float(split.threshold)}"
    column = formulas.columns.inputs[split.column]
    assert isinstance(column, Word)
    asked = " || ".join(f"{text} == {word}" for word in split.words)
    return f"{asked}{_comment(remark(', '.join(column.words[word] for word in split.words)))}"


def _guess(node: Leaf | Guess) -> str:
    assert isinstance(node, Guess)
    return f"return {python_float(node.value)};"


def _leaf_remark(model: Model, leaf: Leaf) -> str:
    shown = [str(model.choices[number]["choice"]) if has_words(model) else str(number) for number in leaf.ranking[:8]]
    more = ["..."] if len(leaf.ranking) > len(shown) else []
    return "; ".join(filter(None, [remark(", ".join(shown + more)) or "none", support(leaf)]))


def _comment(text: str) -> str:
    return f" /* {c_remark(text)} */"
