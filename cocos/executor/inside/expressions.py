"""Evaluation of a test's expressions, here or in the program's process.

An expression in which no name of the program takes part is evaluated natively. A call of the program, with
all its arguments, is sent as source. What applies to its result (an operator, `len`, `sorted`, a function of
the test, a method of data) is applied here, to the data that came back. Where an object of the program would
have to answer, the operation is sent too, and the test is marked.
"""

import ast
import builtins
import copy
from collections.abc import Callable, Iterator
from typing import Any

import data_codec
from program_end import KEPT
from program_values import OBJECT, CannotCross, Program, Theirs, catches

_PLAIN = (str, bytes, bytearray, list, tuple, dict, set, float)
PLAIN_METHODS = frozenset().union(*map(dir, _PLAIN))
_CHANGING = """ append extend insert remove pop clear sort reverse add discard update popitem setdefault
intersection_update difference_update symmetric_difference_update appendleft popleft extendleft rotate
move_to_end subtract """
CHANGING = frozenset(_CHANGING.split())
_SYMBOLS = {
    **{ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
    **{ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"},
}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DECISIONS = (ast.Compare, ast.BoolOp, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
# Builtins that go through their arguments, which may be iterators of the program.
_ITERATING = frozenset(["all", "any", "frozenset", "list", "max", "min", "set", "sorted", "sum", "tuple"])
# Methods of data that go through an argument.
_OF_ITERABLES = frozenset(("join", "extend", "union", "issubset", "issuperset", "isdisjoint"))
_LAZY = frozenset(("enumerate", "filter", "map", "zip"))
# What these give is no decision.
_FREE = frozenset(("str", "repr", "format", "next", "iter", "reversed", "dict", "getattr", "vars"))
_FREE_IF_NAMED = frozenset(("len", "abs", "round", "int", "float"))  # of an object that the test made itself
_CLASS = "str repr format ascii type isinstance issubclass hasattr getattr callable vars dir id hash"
_OF_CLASSES = frozenset(_CLASS.split())  # what these find depends on the class of their argument
_RUNNING = """ open eval exec compile __import__ import_module reload run_path run_module timeit repeat Timer
get_type_hints testmod testfile run_docstring_examples runctx run dictConfig fileConfig FunctionType
InteractiveInterpreter InteractiveConsole interact discover addsitedir load_module """
_WORDS_THAT_RUN_TEXT = frozenset(_RUNNING.split())
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_DATA_ONLY = "returned {}, which is not a plain value"


class NotPlainValue(Exception):
    """The test compares data with an object of the program."""


class Objects(Exception):
    """Values of the program that are no data, where an operation wants data."""


class Mixed:
    """A list, tuple, set or dict of the test with values of the program in it."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Expressions:
    """The names of a test, and the evaluation of its expressions.

    Attributes:
        names: Names with values of this process.
        theirs: Names that live in the program's process.
        functions: Functions of the test that this process cannot run natively, because they use the program.
        sources: Source of each function, class and import of the test, which the program gets with its name.
        reasons: Why the test is marked: reason, and whether an object of the program was the cause.

    """

    def __init__(self, remote: list[str]) -> None:
        self.program = Program()
        self.names: dict[str, Any] = {"__name__": "candidate_program", "__builtins__": dict(vars(builtins))}
        self.theirs = {KEPT, *remote, *(self.program.own_builtins() - {"__builtins__"})}
        self.remote = frozenset(remote)
        self.functions: dict[str, ast.FunctionDef] = {}
        self.sources: dict[str, str] = {}
        self.reasons: dict[str, bool] = {}
        self.sent: set[str] = set()  # names whose source the program has
        self.errors: dict[str, BaseException] = {}  # exceptions of the program, by the names of the test
        self.given_values: dict[str, Any] = {}  # what the program has under the names that it cannot change
        self.iterated: list[set[str]] = []  # names in the heads of the loops that are running
        self.names_class = any(name[:1].isupper() for name in remote)
        self._count = 0
        for name in self.theirs - self.remote - {KEPT}:
            self.names["__builtins__"].pop(name, None)

    def mark(self, reason: str, is_programs: bool = False) -> None:
        """Note that the program's process has decided something."""
        self.reasons[reason] = self.reasons.get(reason, True) and is_programs

    def new_name(self, stem: str) -> str:
        """Return a name that neither the test nor the program has."""
        self._count += 1
        return f"{stem}_{self._count}_"

    # What runs where.

    def is_pure(self, node: ast.AST) -> bool:
        """Return whether nothing in an expression needs the program."""
        return self.needs(names_in(node)).isdisjoint(self.theirs | self.functions.keys())

    def needs(self, names: frozenset[str]) -> set[str]:
        """Return these names, and those that the test's own functions among them use."""
        found, todo = set[str](), set(names)
        while todo:
            name = todo.pop()
            found.add(name)
            if name in self.sources and name not in self.theirs:
                todo |= free_in(self.sources[name]) - found
        return found

    def evaluate(self, node: ast.expr) -> Any:
        """Return the value of an expression: of this process, Theirs, or Mixed."""
        if self.is_pure(node):
            return eval(compiled(node, "eval"), self.names)
        visit = getattr(self, f"_{type(node).__name__}", None)
        if visit is None:
            return self.apply(node, f"{type(node).__name__} runs in the program's process")
        return visit(node)

    def data(self, *values: Any) -> list:
        """Return values as data, all as they are at one moment.

        Raises:
            Objects: One of them is an object of the program.

        """
        found: list[Theirs] = []
        for value in values:
            _collect(value, found)
        known = dict(zip(map(id, found), self.program.fetch(found), strict=True)) if found else {}
        if any(value is OBJECT for value in known.values()):
            raise Objects
        return [_replaced(value, known) for value in values]

    def truth(self, value: Any) -> bool:
        """Return the truth of a value."""
        if isinstance(value, Mixed):
            return bool(value.value)
        try:
            [value] = self.data(value)
        except Objects:
            # No mark: the program could return True itself, and no expectation takes part.
            [value] = self.data(self.ask("bool({})", [value]))
        return bool(value)

    # What is sent.

    def send(self, node: ast.expr) -> Theirs:
        """Have the program evaluate an expression."""
        bindings: list = []
        source = self.embedded(node, bindings)
        return self.program.get(bindings, source)[0]

    def apply(self, node: ast.expr, reason: str, is_programs: bool = False) -> Theirs:
        """Have the program evaluate an expression that decides, and mark the test."""
        self.mark(reason, is_programs)
        return self.send(node)

    def ask(self, form: str, values: list, reason: str = "", is_programs: bool = True) -> Theirs:
        """Have the program apply an operation to values.

        Args:
            form: Source of the operation, with "{}" for each value.
            values: Theirs, or data of this process.
            reason: Reason to mark the test with, or "".
            is_programs: The program has caused the reason.

        """
        if reason:
            self.mark(reason, is_programs)
        bindings: list = []
        sources = [self.operand(value, bindings) for value in values]
        return self.program.get(bindings, form.format(*sources))[0]

    def operand(self, value: Any, bindings: list) -> str:
        """Return source that gives a value in the program's process."""
        match value:
            case Theirs():
                return value.source
            case Mixed():
                container = value.value
                if isinstance(container, dict):
                    items = [
                        (self.operand(k, bindings), self.operand(v, bindings)) for k, v in container.items()
                    ]
                    return "{" + ",".join(f"{k}:{v}" for k, v in items) + "}"
                parts = "".join(f"{self.operand(part, bindings)}," for part in container)
                if isinstance(container, set):
                    return f"{{{parts}}}"
                return f"[{parts}]" if isinstance(container, list) else f"({parts})"
        name = self.new_name("value")
        try:
            bindings.append([name, data_codec.encode(value, {})])
        except data_codec.NotData as error:
            own = [n for n, v in self.names.items() if v is value and n in self.sources]
            if not own:
                raise CannotCross(f"the program gets {error} of the test") from None
            self.mention(own[0], bindings)
            return own[0]
        return name

    def embedded(self, node: Any, bindings: list) -> str:
        """Return source of an expression or a statement for the program's process.

        Its names get their values there. Calls in it that do not need the program are made here.
        """
        bound = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        bound |= {n.name for n in ast.walk(node) if isinstance(n, ast.ExceptHandler) and n.name}
        new = _Embedding(self, bindings, bound).visit(fresh(node))
        for name in sorted(names_in(new)):
            self.mention(name, bindings)
        lambdas = [
            inner for inner in ast.walk(node) if isinstance(inner, ast.Lambda) and not self.is_pure(inner)
        ]
        if any(isinstance(inner, _DECISIONS) for inner in _outside_of_functions(node)) or any(
            isinstance(inner, _DECISIONS) or _asserts(inner) for each in lambdas for inner in ast.walk(each)
        ):
            self.mark("a decision among the arguments of a call")
        return ast.unparse(ast.fix_missing_locations(new))

    def mention(self, name: str, bindings: list) -> None:
        """Give a name of the test its value in the program's process, if it has none there.

        Data that a call could change then live there, with all names that share them.
        """
        if name in self.theirs or (name not in self.names and name not in self.functions):
            return
        if name in self.sources:
            if name not in self.sent:
                self.sent.add(name)
                for used in sorted(free_in(self.sources[name])):
                    self.mention(used, bindings)
                bindings.append(["", self.sources[name]])
                self._give_function(name, bindings)
            return
        if name in self.given_values and self.given_values[name] is self.names[name]:
            return
        group = [name]
        if ids := changeable(self.names[name]):
            heads = set().union(*self.iterated)
            for other, value in self.names.items():
                is_candidate = other != name and other not in self.sources and other not in heads
                if is_candidate and other[:2] != "__" and ids & changeable(value):
                    group.append(other)
        shared: dict[int, int] = {}
        try:
            encoded = [[each, data_codec.encode(self.names[each], shared)] for each in group]
        except data_codec.NotData as error:
            raise CannotCross(f"the program gets {error} of the test") from None
        bindings += encoded
        if ids:
            for each in group:
                del self.names[each]
                self.theirs.add(each)
        else:
            self.given_values[name] = self.names[name]

    def _give_function(self, name: str, bindings: list) -> None:
        """Note what a function of the test can do in the program's process: decide, and assign."""
        nodes = list(ast.walk(parsed(self.sources[name])))
        if name in self.functions or any(map(_asserts, nodes)):
            self.mark("a function of the test runs in the program's process")
        for node in nodes:
            for assigned in node.names if isinstance(node, ast.Global) else ():
                self.mention(assigned, bindings)
                if self.names.pop(assigned, None) is not None or assigned not in self.functions:
                    self.theirs.add(assigned)

    def is_sendable(self, value: Any) -> bool:
        """Return whether a value of this process is data."""
        try:
            data_codec.encode(value, {})
        except data_codec.NotData:
            return False
        return True

    def is_theirs(self, node: ast.AST) -> bool:
        """Return whether an expression is a name, a call, an attribute or an item of the program's."""
        match node:
            case ast.Name(id=name):
                return name in self.theirs
            case ast.Call(func=ast.Attribute(value=value, attr=name)):
                return (name not in PLAIN_METHODS or name in CHANGING) and self.is_theirs(value)
            case ast.Call(func=function):
                return self.is_theirs(function)
            case ast.Attribute(value=value, attr=name):
                return name != "__class__" and self.is_theirs(value)
            case ast.Subscript(value=value):
                return self.is_theirs(value)
        return False

    def runs_there(self, node: ast.AST) -> bool:
        """Return whether the program may evaluate an expression, because it could choose the value anyway."""
        match node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                return all(map(self.runs_there, elements))
            case ast.Dict(keys=keys, values=values):
                return all(key is None or self.runs_there(key) for key in keys) and all(
                    map(self.runs_there, values)
                )
            case ast.Starred(value=value):
                return self.runs_there(value)
            case ast.Subscript(value=value, slice=index):
                return self.runs_there(value) and self.runs_there(index)
            case ast.ListComp(elt=element, generators=[ast.comprehension(iter=iterated, ifs=[])]):
                return self.runs_there(element) and self.runs_there(iterated)
            case ast.Lambda():
                return True
        return self.is_pure(node) or self.is_theirs(node)

    # Expressions that need the program.

    def _Name(self, node: ast.Name) -> Any:
        if node.id in self.functions:
            return self.closure(self.functions[node.id])
        if node.id not in self.theirs:  # a function of the test that uses what lives there
            return self.send(node)
        if node.id in builtins.__dict__ and node.id not in self.remote:
            self.mark(f"the program's own {node.id}")
        return Theirs(node.id, is_named=True)

    def _Call(self, node: ast.Call) -> Any:
        function = node.func
        if self.is_theirs(node):
            return self._atom(node)
        match function:
            case ast.Name(id=name) if name in self.functions:
                return self.call(self.functions[name], *self.arguments(node))
            case ast.Name(id=name) if (
                self.is_pure(function) and name in vars(builtins) and name not in self.names
            ):
                return self._builtin(name, node)
            case ast.Attribute(value=value, attr=name) if not self.is_pure(value):
                return self._method(self.evaluate(value), name, node)
            case _ if self.is_pure(function):
                return self._native(self.evaluate(function), node)
        value = self.evaluate(function)
        if callable(value):
            return self._native(value, node)
        return self._with_function(self.operand(value, []), node)

    def _atom(self, node: ast.Call) -> Theirs:
        match node.func:
            case ast.Name(id=name):
                self._Name(node.func)
                value = self.send(node)
                value.is_named = name[:1].isupper()
                return value
            case ast.Attribute(value=ast.Name(id=name) as owner, attr=method) if method in CHANGING:
                return self._method(self.evaluate(owner), method, node)
        return self.send(node)

    def _with_function(self, function: str, node: ast.Call) -> Theirs:
        """Call a function of the program."""
        func = ast.parse(function, mode="eval").body
        return self.send(ast.Call(func, node.args, node.keywords))

    def _method(self, owner: Any, name: str, node: ast.Call) -> Any:
        if not isinstance(owner, Theirs):
            return self._native(getattr(self.data(owner)[0], name), node)
        if name in PLAIN_METHODS and name not in CHANGING:
            [value] = self.program.fetch([owner])
            if value is not OBJECT and owner.is_exact:
                return self._native(getattr(value, name), node)
        result = self._with_function(f"{owner.source}.{name}", node)
        if name in PLAIN_METHODS and not owner.is_named and (owner.data is OBJECT or not owner.is_exact):
            self.mark(f"the method {name} of an object", True)
        return result

    def arguments(self, node: ast.Call) -> tuple[list, dict]:
        """Return positional and keyword arguments."""
        positional: list = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                positional += self.items(self.evaluate(argument.value))
            else:
                positional.append(self.evaluate(argument))
        keywords: dict = {}
        for keyword in node.keywords:
            value = self.evaluate(keyword.value)
            if keyword.arg is None:
                try:
                    keywords.update(*self.data(value))
                except Objects:
                    keywords.update(*self.data(self.ask("dict({})", [value])))
            else:
                keywords[keyword.arg] = value
        return positional, keywords

    def _native(self, function: Any, node: ast.Call) -> Any:
        """Call a function of this process with data that the program returned."""
        name = getattr(function, "__name__", "")
        if name in _WORDS_THAT_RUN_TEXT:
            return self.apply(node, f"{name} of a value of the program")
        own = self._own_function(node.func)
        positional, keywords = self.arguments(node)
        try:
            return function(
                *self.data(*positional), **dict(zip(keywords, self.data(*keywords.values()), strict=True))
            )
        except Objects:
            if own is not None:
                return self.call(own, positional, keywords)
            if name in _OF_ITERABLES and getattr(function, "__self__", None) is not None:
                return function(*self.data(*map(self._drained, positional)))
        if getattr(function, "__module__", "") == "itertools" or name == "reduce":
            positional = [
                self._function(argument, value) if _is_function(argument, value) else self._lazy(value)
                for argument, value in zip(node.args, positional, strict=True)
            ]
            return function(*self.data(*positional), **keywords)
        is_copy = getattr(function, "__module__", "") == "copy"
        return self._call_there(node, positional, keywords, "" if is_copy else f"{name} of an object")

    def _call_there(self, node: ast.Call, positional: list, keywords: dict, reason: str = "") -> Theirs:
        """Have the program call a function of the test, or a builtin, with values that are known already."""
        if reason:
            self.mark(reason, True)
        bindings: list = []
        nodes: list = node.args
        if len(nodes) != len(positional) or any(isinstance(each, ast.Starred) for each in nodes):
            nodes = [None] * len(positional)
        sources = [self._argument(*pair, bindings) for pair in zip(positional, nodes, strict=True)]
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        sources += [
            f"{key}={self._argument(value, given.get(key), bindings)}" for key, value in keywords.items()
        ]
        function = self.embedded(node.func, bindings)
        return self.program.get(bindings, f"{function}({', '.join(sources)})")[0]

    def _argument(self, value: Any, node: ast.expr | None, bindings: list) -> str:
        if node is None or isinstance(value, (Theirs, Mixed)) or not self.is_pure(node):
            return self.operand(value, bindings)
        return self.embedded(node, bindings)

    def _lazy(self, value: Any) -> Any:
        """Return an iterator over an iterable object of the program; any other value as it is."""
        if isinstance(value, Theirs) and self.program.fetch([value])[0] is OBJECT:
            return self._iterate_theirs(value)
        return value

    def _own_function(self, function: ast.expr) -> ast.FunctionDef | None:
        """Return the definition of a function of the test, which can be interpreted."""
        if isinstance(function, ast.Name) and function.id in self.sources:
            [definition] = parsed(self.sources[function.id]).body
            if isinstance(definition, ast.FunctionDef) and not definition.decorator_list:
                return definition
        return None

    def _stub(self, value: Any) -> Any:
        """Return a function of this process in place of one of the program, as `map` and `sorted` need it."""
        if not isinstance(value, Theirs) or self.program.fetch([value])[0] is not OBJECT:
            return value

        def stub(*arguments: Any) -> Any:
            if any(map(changeable, arguments)):
                self.mark("a function of the program gets copies")
            places = ", ".join(["{}"] * len(arguments))
            return self.data(self.ask(f"{value.source}({places})", list(arguments)))[0]

        return stub

    def _function(self, node: ast.expr, value: Any) -> Any:
        """Return a function for builtins such as `map`, which may give it objects of the program."""
        definition = _lambda(node) if isinstance(node, ast.Lambda) else self._own_function(node)
        if definition is None or isinstance(value, Theirs):
            return self._stub(value)
        interpreted = self.closure(definition)
        return lambda *items: (interpreted if any(isinstance(i, Theirs) for i in items) else value)(*items)

    def _builtin(self, name: str, node: ast.Call) -> Any:
        function = vars(builtins)[name]
        match name, node.args:
            case (("all" | "any"), [ast.GeneratorExp() as argument]):
                truths = (self.truth(element) for element in self.elements(argument))
                return function(truths)
            case "next", [ast.GeneratorExp() as argument, *default]:
                for element in self.elements(argument):
                    return element
                if default:
                    return self.evaluate(default[0])
                raise StopIteration
            case "print", _:
                self.arguments(node)
                return None
            case "isinstance", [value, kind] if self._error(value) is not None:
                return catches(self.kinds(kind), self._error(value))
            case (("isinstance" | "issubclass"), [value, kind]) if self.is_pure(kind):
                return self._decided(name, function, [self.evaluate(value), self.evaluate(kind)], node)
        if name in _WORDS_THAT_RUN_TEXT:
            return self.apply(node, f"{name} of a value of the program")
        positional, keywords = self.arguments(node)
        if name in _LAZY:
            first = [self._function(node.args[0], positional.pop(0))] if name in ("map", "filter") else []
            positional = [*first, *[self._lazy(value) for value in positional]]
        elif name in _ITERATING and (len(positional) == 1 or name == "sum"):
            positional[:1] = map(self._drained, positional[:1])
            keywords = {key: self._stub(value) for key, value in keywords.items()}
            if name in ("sorted", "min", "max") and len(positional) == 1 and isinstance(positional[0], Mixed):
                for keyword in node.keywords:
                    if keyword.arg == "key":
                        key = self._function(keyword.value, keywords["key"])
                        others = {k: v for k, v in keywords.items() if k != "key"}
                        chosen = function(positional[0].value, key=key, **others)
                        return Mixed(chosen) if name == "sorted" else chosen
            if name in ("list", "tuple") and len(positional) == 1 and isinstance(positional[0], Mixed):
                return Mixed(function(positional[0].value))
        return self._decided(name, function, positional, node, keywords)

    def _error(self, node: ast.expr) -> BaseException | None:
        """Return the exception of the program that a name was given by `except`."""
        return self.errors.get(node.id) if isinstance(node, ast.Name) and node.id in self.theirs else None

    def kinds(self, node: ast.expr) -> Any:
        """Return the classes that `except` names."""
        if isinstance(node, ast.Tuple):
            return tuple(map(self.kinds, node.elts))
        if isinstance(node, ast.Attribute) and not self.is_pure(node):
            return Theirs(ast.unparse(node))
        return self.evaluate(node)

    def _decided(
        self, name: str, function: Any, positional: list, node: ast.Call, keywords: dict | None = None
    ) -> Any:
        keywords = keywords or {}
        try:
            if name in _OF_CLASSES and not self._are_exact(positional):
                raise Objects
            return function(
                *self.data(*positional), **dict(zip(keywords, self.data(*keywords.values()), strict=True))
            )
        except Objects:
            is_named = bool(positional) and getattr(positional[0], "is_named", False)
            is_free = name in (*_FREE, "bool") or (name in _FREE_IF_NAMED and is_named)
            reason = "" if is_free else f"{name} of an object"
            call = ast.Call(ast.Name(name, ast.Load()), node.args, node.keywords)
            return self._call_there(call, positional, keywords, reason)

    def _are_exact(self, values: list) -> bool:
        found = [value for value in values if isinstance(value, Theirs)]
        return not found or (self.program.fetch(found) is not None and all(v.is_exact for v in found))

    def _drained(self, value: Any) -> Any:
        """Return the elements of an iterator of the program; any other value as it is."""
        if isinstance(value, Theirs) and self.program.fetch([value])[0] is OBJECT:
            return Mixed(self.items(value))
        return value

    def items(self, value: Any) -> list:
        """Return the elements of an iterable, of the program's as Theirs if they are objects."""
        if isinstance(value, Mixed):
            return list(value.value)
        if not isinstance(value, Theirs):
            return list(value)
        [known] = self.program.fetch([value])
        if known is not OBJECT:
            return list(known)
        listed = self.ask("[*{}]", [value])
        [known] = self.program.fetch([listed])
        if known is not OBJECT:
            return known
        [number] = self.data(self.ask("len({})", [listed]))
        return [Theirs(f"{listed.source}[{index}]") for index in range(number)]

    def _Attribute(self, node: ast.Attribute) -> Any:
        if node.attr == "__class__":
            return self._decided("type", type, [self.evaluate(node.value)], ast.Call(node, [node.value], []))
        if self.is_theirs(node):
            value = self.send(node)
            value.is_named = True
            return value
        owner = self.evaluate(node.value)
        if isinstance(owner, Theirs):
            return self.ask(f"{{}}.{node.attr}", [owner])
        return getattr(self.data(owner)[0], node.attr)

    def _Subscript(self, node: ast.Subscript) -> Any:
        owner, index = self.evaluate(node.value), self.evaluate(node.slice)
        if isinstance(owner, Mixed):
            try:
                [index] = self.data(index)
                return owner.value[index]
            except Objects:
                pass
        try:
            value, index = self.data(owner, index)
            if not self._are_exact([owner]):
                raise Objects
            return value[index]
        except Objects:
            is_free = isinstance(index, int) or getattr(owner, "is_named", False)
            return self.ask("{}[{}]", [owner, index], "" if is_free else "an item of an object")

    def _Slice(self, node: ast.Slice) -> Any:
        parts = [part and self.evaluate(part) for part in (node.lower, node.upper, node.step)]
        return slice(*self.data(*parts))

    def _Compare(self, node: ast.Compare) -> Any:
        is_identity = isinstance(node.ops[0], (ast.Is, ast.IsNot))
        left_node, result = node.left, True
        left = self._operand(left_node, is_identity)
        for operator, right_node in zip(node.ops, node.comparators, strict=True):
            right = self._operand(right_node, is_identity)
            result = self.compare(operator, left, right, left_node, right_node)
            if right_node is node.comparators[-1] or not self.truth(result):
                break
            left, left_node = right, right_node
        return result

    def _operand(self, node: ast.expr, is_identity: bool) -> Any:
        """Return an operand; if its identity counts, as it is in the program's process."""
        if is_identity and not self.is_pure(node) and self.runs_there(node):
            return self.send(node)
        return self.evaluate(node)

    def compare(
        self, operator: ast.cmpop, left: Any, right: Any, left_node: ast.expr, right_node: ast.expr
    ) -> Any:
        """Return the result of one comparison."""
        symbol = _SYMBOLS[type(operator)]
        if isinstance(operator, (ast.Is, ast.IsNot)):
            single = left if isinstance(left_node, ast.Constant) else right
            other = right if single is left else left
            if any(single is each for each in (None, True, False, ...)):
                if isinstance(other, Theirs):
                    other = self.program.fetch([other])[0]
                return (other is single) is isinstance(operator, ast.Is)
            known = [self.program.fetch([v])[0] if isinstance(v, Theirs) else v for v in (left, right)]
            if any(value is NotImplemented or _is_builtin(value) for value in known) and OBJECT not in known:
                return _operate(symbol, *known)
            if not isinstance(left, (Theirs, Mixed)) and not isinstance(right, (Theirs, Mixed)):
                return _operate(symbol, left, right)
            return self._there(symbol, [(left, left_node), (right, right_node)], "the identity of values")
        try:
            return _operate(symbol, *self.data(left, right))
        except Objects:
            sides = [side for side in (left, right) if not isinstance(side, Theirs) and side is not None]
            if not self.names_class and any(
                not isinstance(s, (type, Mixed)) and self.is_sendable(s) for s in sides
            ):
                names = [side.class_name for side in (left, right) if isinstance(side, Theirs)]
                raise NotPlainValue(_DATA_ONLY.format(next(filter(None, names), "an object"))) from None
        return self._there(symbol, [(left, left_node), (right, right_node)], f"{symbol} of objects", True)

    def _there(self, symbol: str, sides: list, reason: str, is_programs: bool = False) -> Theirs:
        """Have the program apply an operator."""
        self.mark(reason, is_programs)
        bindings: list = []
        sources = [
            self.embedded(node, bindings)
            if not isinstance(value, (Theirs, Mixed)) and not isinstance(node, ast.Constant)
            else self.operand(value, bindings)
            for value, node in sides
        ]
        return self.program.get(bindings, f"({sources[0]}) {symbol} ({sources[1]})")[0]

    def _BoolOp(self, node: ast.BoolOp) -> Any:
        value: Any = None
        for operand in node.values:
            value = self.evaluate(operand)
            if self.truth(value) is isinstance(node.op, ast.Or):
                break
        return value

    def _UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.Not):
            return not self.truth(value)
        symbol = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}[type(node.op)]
        try:
            [known] = self.data(value)
        except Objects:
            return self.ask(f"({symbol}{{}})", [value])
        return _native_operation(f"{symbol}a", a=known)

    def _BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        symbol = ast.unparse(ast.BinOp(ast.Name("a"), node.op, ast.Name("b")))[2:-2]
        try:
            a, b = self.data(left, right)
        except Objects:
            is_free = all(isinstance(v, Theirs) for v in (left, right)) or any(
                getattr(value, "is_named", False) for value in (left, right)
            )
            return self.ask(
                f"({{}} {symbol} {{}})", [left, right], "" if is_free else "arithmetic of an object"
            )
        return _native_operation(f"a {symbol} b", a=a, b=b)

    def _NamedExpr(self, node: ast.NamedExpr) -> Any:
        self.assign(node.target, self.evaluate(node.value))
        return self.evaluate(ast.Name(node.target.id, ast.Load()))

    def _IfExp(self, node: ast.IfExp) -> Any:
        return self.evaluate(node.body if self.truth(self.evaluate(node.test)) else node.orelse)

    def _List(self, node: ast.List | ast.Tuple | ast.Set) -> Any:
        values, _ = self.arguments(ast.Call(node, node.elts, []))
        return Mixed(list(values))

    def _Tuple(self, node: ast.Tuple) -> Any:
        return Mixed(tuple(self._List(node).value))

    def _Set(self, node: ast.Set) -> Any:
        values = self._List(node).value
        try:
            return set(self.data(*values))
        except Objects:
            return self.ask("{}", [Mixed(set(values))], "hash of an object")

    def _Dict(self, node: ast.Dict) -> Any:
        result: dict = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                result.update(*self.data(self.evaluate(value)))
            else:
                [known] = self.data(self.evaluate(key))
                result[known] = self.evaluate(value)
        return Mixed(result)

    def _JoinedStr(self, node: ast.JoinedStr) -> Any:
        parts: list[str] = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                parts.append(str(part.value))
                continue
            assert isinstance(part, ast.FormattedValue)
            value, spec = (
                self.evaluate(part.value),
                self.evaluate(part.format_spec) if part.format_spec else "",
            )
            try:
                [known] = self.data(value)
            except Objects:
                form = ast.unparse(
                    ast.JoinedStr([ast.FormattedValue(ast.Name("X"), part.conversion, part.format_spec)])
                )
                [known] = self.data(
                    self.ask(form.replace("{", "{{").replace("}", "}}").replace("X", "{}"), [value])
                )
                parts.append(known)
                continue
            convert: Any = {115: str, 114: repr, 97: ascii}.get(part.conversion, lambda value: value)
            parts.append(format(convert(known), spec))
        return "".join(parts)

    def _Lambda(self, node: ast.Lambda) -> Any:
        return self.closure(_lambda(node))

    def closure(self, definition: ast.FunctionDef) -> Callable:
        """Return a function of this process that interprets one of the test."""

        def function(*positional: Any, **keywords: Any) -> Any:
            [value] = self.data(self.call(definition, list(positional), keywords))
            return value

        return function

    def _ListComp(self, node: ast.ListComp) -> Any:
        return Mixed(list(self.elements(node)))

    def _GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        return Mixed(list(self.elements(node)))

    def _SetComp(self, node: ast.SetComp) -> Any:
        return set(self.data(*self.elements(node)))

    def _DictComp(self, node: ast.DictComp) -> Any:
        pairs = [
            (self.data(self.evaluate(node.key))[0], self.evaluate(node.value)) for _ in self._rounds(node)
        ]
        return Mixed(dict(pairs))

    def elements(self, node: Any) -> Iterator[Any]:
        """Yield the elements of a comprehension."""
        for _ in self._rounds(node):
            yield self.evaluate(node.elt)

    def _rounds(self, node: Any, depth: int = 0) -> Iterator[None]:
        if depth == len(node.generators):
            yield
            return
        generator = node.generators[depth]
        for value in self.iterate(generator.iter):
            self.assign(generator.target, value)
            if all(self.truth(self.evaluate(condition)) for condition in generator.ifs):
                yield from self._rounds(node, depth + 1)

    def iterate(self, node: ast.expr) -> Iterator[Any]:
        """Yield what a loop over an expression yields."""
        self.iterated.append(set(names_in(node)))
        try:
            value = self.evaluate(node)
            if isinstance(value, Mixed):
                yield from list(value.value)
            elif not isinstance(value, Theirs):
                for item in value:
                    is_mixed = type(item) is tuple and any(isinstance(part, Theirs) for part in item)
                    yield Mixed(item) if is_mixed else item
            else:
                yield from self._iterate_theirs(value)
        finally:
            self.iterated.pop()

    def _iterate_theirs(self, value: Theirs) -> Iterator[Any]:
        [known] = self.program.fetch([value])
        if known is not OBJECT and not any(map(changeable, known)):
            yield from known
            return
        iterator = self.ask("iter({})", [value])
        while True:
            try:
                item = self.ask("next({})", [iterator])
            except StopIteration:
                return
            yield item if item.data is OBJECT or changeable(item.data) or not item.is_exact else item.data

    def call(self, definition: ast.FunctionDef, positional: list, keywords: dict) -> Any:
        """Interpret a call of a function of the test."""
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Any) -> None:
        """Give a value to a name, or to several."""
        raise NotImplementedError


class _Embedding(ast.NodeTransformer):
    """Makes the calls in an expression for the program that need no program."""

    def __init__(self, owner: Expressions, bindings: list, bound: set[str]) -> None:
        self.owner, self.bindings, self.bound = owner, bindings, bound

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_Lambda  # type: ignore[assignment]
    visit_FunctionDef = visit_ClassDef = visit_Lambda  # type: ignore[assignment]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        owner = self.owner
        if (
            owner.is_pure(node)
            and self.bound.isdisjoint(names_in(node))
            and not any(changeable(owner.names.get(name)) for name in names_in(node))
        ):
            if not any(isinstance(inner, ast.Lambda) for inner in ast.walk(node)):
                value = owner.evaluate(node)
                if owner.is_sendable(value):
                    name = owner.new_name("value")
                    self.bindings.append([name, data_codec.encode(value, {})])
                    return ast.Name(name, ast.Load())
            return node
        return self.generic_visit(node)


def _lambda(node: ast.Lambda) -> ast.FunctionDef:
    return ast.FunctionDef("<lambda>", node.args, [ast.Return(node.body)], [])


def _asserts(node: ast.AST) -> bool:
    """Return whether a node is an assert, or a call such as `self.assertEqual`."""
    is_call = isinstance(node, ast.Attribute) and node.attr.startswith(("assert", "fail"))
    return is_call or isinstance(node, ast.Assert)


def _is_builtin(value: Any) -> bool:
    """Return whether a value is a class or a function that crosses by its name."""
    return isinstance(value, (type, type(len))) and value.__module__ == "builtins"


def _is_function(node: ast.expr, value: Any) -> bool:
    return isinstance(node, ast.Lambda) or callable(value)


def names_in(node: Any) -> frozenset[str]:
    """Return the names in a tree."""
    if (found := getattr(node, "names_in_it", None)) is None:
        found = frozenset(inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))
        node.names_in_it = found
    return found


def bound_in(node: ast.AST) -> set[str]:
    """Return the names that a statement binds in its own scope."""
    names: set[str] = set()
    todo: list[ast.AST] = [node]
    while todo:
        inner = todo.pop()
        match inner:
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {(alias.asname or alias.name).split(".")[0] for alias in aliases}
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.ExceptHandler(name=str(name)):
                names.add(name)
        if isinstance(inner, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            continue
        if not isinstance(inner, _SCOPES):
            todo += ast.iter_child_nodes(inner)
    return names


def local_names(function: ast.FunctionDef | ast.Lambda) -> set[str]:
    """Return the local variables of a function."""
    names = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
    if isinstance(function, ast.Lambda):
        return names
    for statement in function.body:
        names |= bound_in(statement)
    for inner in ast.walk(function):
        if isinstance(inner, (ast.Global, ast.Nonlocal)):
            names -= set(inner.names)
    return names


def free_in(source: str) -> frozenset[str]:
    """Return the names that a function, a class or an import of the test takes from elsewhere."""
    tree = parsed(source)
    own = local_names(tree.body[0]) if isinstance(tree.body[0], ast.FunctionDef) else set()
    return names_in(tree) - own


def fresh(node: Any) -> Any:
    """Return a copy of a tree, without what was noted about its nodes."""
    new = copy.deepcopy(node)
    for inner in ast.walk(new):
        vars(inner).pop("names_in_it", None)
        vars(inner).pop("code_of_it", None)
    return new


_parsed: dict[str, ast.Module] = {}


def parsed(source: str) -> ast.Module:
    """Return the tree of a source."""
    if source not in _parsed:
        _parsed[source] = ast.parse(source)
    return _parsed[source]


def compiled(node: Any, mode: str) -> Any:
    """Return the code of an expression or of a statement."""
    if (code := getattr(node, "code_of_it", None)) is None:
        tree = ast.Expression(node) if mode == "eval" else ast.Module([node], [])
        code = node.code_of_it = compile(ast.fix_missing_locations(tree), "<test>", mode, 0, True)
    return code


def changeable(value: Any, depth: int = 0) -> set[int]:
    """Return the ids of what a call could change in data."""
    kind = type(value)
    if kind in (int, str, float, bool, bytes, type(None), complex, range):
        return set()
    if kind in (tuple, frozenset):
        return set().union(*(changeable(part, depth + 1) for part in value))
    if kind in (list, set):
        return {id(value)}.union(*(changeable(part, depth + 1) for part in value if depth < 50))
    if kind is dict:
        return {id(value)}.union(*(changeable(part, depth + 1) for part in value.values() if depth < 50))
    if isinstance(value, type) or callable(value) or kind.__name__ == "module":
        return set()
    return {id(value)}


def _outside_of_functions(node: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(node, (ast.Lambda, ast.FunctionDef)):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from _outside_of_functions(child)


def _collect(value: Any, found: list[Theirs]) -> None:
    if isinstance(value, Theirs):
        found.append(value)
    elif isinstance(value, Mixed):
        parts = value.value.values() if isinstance(value.value, dict) else value.value
        for part in parts:
            _collect(part, found)


def _replaced(value: Any, known: dict[int, Any]) -> Any:
    if isinstance(value, Theirs):
        return known[id(value)]
    if isinstance(value, Mixed):
        if isinstance(value.value, dict):
            return {key: _replaced(part, known) for key, part in value.value.items()}
        return type(value.value)(_replaced(part, known) for part in value.value)
    return value


def _operate(symbol: str, a: Any, b: Any) -> Any:
    return _native_operation(f"a {symbol} b", a=a, b=b)


_operations: dict[str, Any] = {}


def _native_operation(source: str, **operands: Any) -> Any:
    if source not in _operations:
        _operations[source] = compile(source, "<test>", "eval")
    return eval(_operations[source], {}, operands)
