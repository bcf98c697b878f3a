"""Finds names that C++ sources define twice.

A duplicate is one fully qualified name with definitions in two files: a type (struct, class, union,
enum, alias, concept), a constant or variable, or a function with the same parameters. That is legal
C++ only as long as no program contains both files, and even then a reader must ask which is meant.

This is no compiler: it reads tokens, follows namespaces, classes and braces, and skips function
bodies. Left out on purpose: anonymous namespaces and `static` (names of one file), forward
declarations, specialisations of templates, overloads, `main`, and whatever a macro expands to. Of a
conditional group (#if .. #else .. #endif) only the first branch is read. An inline namespace counts
as part of the name, so the classes of kinglet.hpp have names of their own.
"""

import re

TOKEN = re.compile(r"""
    (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]*)\(.*?\)(?P=mark)")
  | (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<string>(?:u8|[uUL])?(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
  | (?P<word>[A-Za-z_]\w*)
  | (?P<number>\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*)
  | (?P<punct>::|->|<=>|[-+*/%&|^!=<>]=|&&|\|\||\S)
""", re.VERBOSE | re.DOTALL)

TYPE_KEYWORDS = ("struct", "class", "union", "enum")
READ, LATER, DONE = range(3)
OPENING, CLOSING = ("(", "[", "{"), (")", "]", "}")


def without_comments(text):
    """The text with every comment as one space, strings and raw strings whole."""
    pieces, at = [], 0
    for match in TOKEN.finditer(text):
        if match.lastgroup == "comment" or match.group("comment"):
            pieces += [text[at:match.start()], "\n" * match.group().count("\n") or " "]
            at = match.end()
    return "".join(pieces) + text[at:]


def without_directives(text):
    """The lines outside of directives, of a conditional group those of its first branch."""
    kept = []
    groups = []  # for each open #if: READ, the branch is read; LATER, a later one is; DONE
    lines = iter(text.split("\n"))
    for line in lines:
        if not line.lstrip().startswith("#"):
            if all(group == READ for group in groups):
                kept.append(line)
            continue
        while line.endswith("\\"):
            line = line[:-1] + next(lines, "")
        words = re.findall(r"\w+", line)
        name = words[0] if words else ""
        if name in ("if", "ifdef", "ifndef"):
            groups.append(LATER if words[1:] == ["0"] else READ)
        elif name in ("else", "elif") and groups:
            groups[-1] = READ if groups[-1] == LATER else DONE
        elif name == "endif" and groups:
            groups.pop()
    return "\n".join(kept)


def tokens_of(text):
    tokens = []
    for match in TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "mark" or match.group("raw") or match.group("string"):
            tokens.append('""')
        elif not match.group("comment"):
            tokens.append(match.group())
    return tokens


def skip_angles(tokens, at):
    """The index after the `>` that closes the `<` at `at`."""
    depth = 0
    for index in range(at, len(tokens)):
        if tokens[index] == "<":
            depth += 1
        elif tokens[index] == ">":
            depth -= 1
            if depth == 0:
                return index + 1
    return len(tokens)


def flat(tokens):
    """The tokens outside of (..), [..] and {..}, each group as its two brackets."""
    kept, depth = [], 0
    for token in tokens:
        if token in CLOSING:
            depth -= 1
        if depth <= 0:
            kept.append(token)
        if token in OPENING:
            depth += 1
    return kept


def without_template(head):
    """(the head without its leading `template <..>`, whether it is a specialisation)."""
    special = False
    while head and head[0] == "template":
        end = skip_angles(head, 1)
        special = special or end == 3  # template <>
        head = head[end:]
    return head, special


def type_of(head):
    """The name of the type that `head {` defines, if any: `struct a::Name final : Base`."""
    outside = flat(head)
    at = next((i for i, token in enumerate(outside) if token in TYPE_KEYWORDS), None)
    if at is None or "=" in outside or any(token == "(" for token in outside[:at]):
        return None
    rest = outside[at + 1:]
    if outside[at] == "enum" and rest[:1] and rest[0] in ("class", "struct"):
        rest = rest[1:]
    name, index = "", 0
    while index < len(rest):
        token = rest[index]
        if token in ("[", "]", "(", ")", "alignas"):
            index += 1
        elif token == "::" or re.match(r"[A-Za-z_]\w*$", token):
            if token == "final":
                break
            # Of two words in a row the second is the name: `class EXPORT Name`.
            name = name + token if token == "::" or name.endswith("::") or not name else token
            index += 1
        else:
            break
    if index < len(rest) and rest[index] in ("<", "("):
        return None  # a specialisation, or a function that returns the type
    return name or None


def parameters_of(tokens):
    """A key of a parameter list: the types without names and default values."""
    parameters, current, depth = [], [], 0
    for token in tokens + [","]:
        if token == "," and depth == 0:
            if "=" in current:
                current = current[:current.index("=")]
            named = len(current) > 1 and re.match(r"[A-Za-z_]\w*$", current[-1])
            if named and current[-2] not in ("::", "const", "unsigned", "struct"):
                current = current[:-1]
            parameters.append(" ".join(current))
            current = []
            continue
        depth += (token in OPENING or token == "<") - (token in CLOSING or token == ">")
        current.append(token)
    return ", ".join(parameters)


def function_of(head):
    """"name(parameters)" of the function that `head {` defines, or None."""
    depth = 0
    for at, token in enumerate(head):
        if token == "<":
            depth += 1
        elif token == ">":
            depth -= 1
        elif token == "=" and "operator" not in head[:at]:
            return None
        elif token == "(" and depth <= 0 and at > 0 and head[at - 1] != "alignas":
            break
    else:
        return None
    name = [head[at - 1]]
    index = at - 2
    while index >= 0 and (head[index] == "::" or name[0] == "::"):
        name.insert(0, head[index])
        index -= 1
    # Without a type before the name it is a macro's call, a constructor or a destructor.
    if index < 0 or head[index] in ("~", ",") or "operator" in head:
        return None
    if ">" in name or not re.match(r"[A-Za-z_]", name[-1]):
        return None
    inner, depth = [], 0
    for end in range(at, len(head)):
        depth += (head[end] in OPENING) - (head[end] in CLOSING)
        if depth == 0:
            break
        inner.append(head[end])
    tail = "const" if "const" in head[end:] else ""
    return f"{''.join(name)}({parameters_of(inner[1:])}) {tail}".rstrip()


def variable_of(head):
    """The name of the constant or variable that `head` = .. or `head` {..} defines, or None."""
    outside = flat(head)
    if "=" in outside:
        outside = outside[:outside.index("=")]
    while outside and outside[-1] in ("[", "]"):
        outside.pop()
    if len(outside) < 2 or "(" in outside or "operator" in outside or "extern" in outside:
        return None
    if not re.match(r"[A-Za-z_]\w*$", outside[-1]) or outside[-2] == "::":
        return None
    return outside[-1]


class Reader:
    """Walks over a file's tokens and collects what its namespaces and classes define."""

    def __init__(self, tokens):
        self.tokens = tokens
        self.at = 0
        self.found = []

    def note(self, kind, scope, name):
        if name and scope is not None:
            self.found.append((kind, "::".join(scope + [name.strip(":")])))

    def skip_braces(self):
        """Past the `}` that closes the `{` just read."""
        depth = 1
        while self.at < len(self.tokens) and depth > 0:
            depth += (self.tokens[self.at] == "{") - (self.tokens[self.at] == "}")
            self.at += 1

    def read(self, scope, in_class=False):
        """One scope's declarations up to its `}`; without a scope, names of one file."""
        head, depth = [], 0
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            if depth == 0 and token == "}":
                return
            if depth == 0 and token == ";":
                self.end_statement(head, scope, in_class)
                head = []
            elif depth == 0 and token == "{":
                head = self.open_brace(head, scope, in_class)
            elif in_class and token == ":" and head in (["public"], ["private"], ["protected"]):
                head = []
            else:
                depth += (token in ("(", "[")) - (token in (")", "]"))
                if token == "{":
                    self.skip_braces()
                    head += ["{", "}"]
                else:
                    head.append(token)

    def end_statement(self, head, scope, in_class):
        head, special = without_template(head)
        if special or in_class or not head or "static" in head:
            return
        if head[0] in ("using", "concept") and "=" in head[:4] and head[1] != "namespace":
            self.note("type", scope, head[1])
        elif head[0] == "typedef" and "(" not in head and head[-1] not in head[:-1]:
            self.note("type", scope, head[-1])
        elif "=" in flat(head) and head[0] not in ("using", "namespace"):
            self.note("constant", scope, variable_of(head))

    def open_brace(self, head, scope, in_class):
        """Reads what `head {` opens; returns the rest of the statement after its `}`."""
        head, special = without_template(head)
        if head[:1] == ["namespace"] or head[:2] == ["inline", "namespace"]:
            names = [token for token in head[head.index("namespace") + 1:]
                     if token not in ("::", "inline")]
            self.read(None if not names or scope is None else scope + names)
            return []
        if head == ["extern", '""']:
            self.read(scope)
            return []
        name = type_of(head)
        if name:
            self.note("type", None if special else scope, name)
            if "enum" in head:
                self.skip_braces()
            else:
                self.read(None if scope is None or special else scope + name.split("::"), True)
            return ["struct"]  # `struct S {..} s;` declares s: nothing to note
        if any(keyword in flat(head) for keyword in TYPE_KEYWORDS) and function_of(head) is None:
            self.read(None, True)  # without a name, or a specialisation
            return ["struct"]
        self.skip_braces()
        function = None if special or in_class or "static" in head else function_of(head)
        if function:
            if not function.startswith("main("):
                self.note("function", scope, function)
            return []
        if head and head[-1] == "=" or variable_of(head):
            # `T x = {..}, ..;`: the statement continues to its semicolon.
            if not special and not in_class and "static" not in head:
                self.note("constant", scope, variable_of(head))
            return ["static"]
        return []


def definitions(text):
    """(kind, qualified name) of everything that the text of one C or C++ file defines."""
    reader = Reader(tokens_of(without_directives(without_comments(text))))
    while reader.at < len(reader.tokens):
        reader.read([])
    return set(reader.found)


def duplicates(texts):
    """[(kind, name, files)] of what several of the files {name: text} define."""
    where = {}
    for file in sorted(texts):
        for found in definitions(texts[file]):
            where.setdefault(found, []).append(file)
    return [(kind, name, files) for (kind, name), files in sorted(where.items()) if len(files) > 1]
