"""The structure check must see every kind of violation, and none in a tree that keeps the rules."""

import pathlib
import subprocess
import tempfile
import unittest

import check_structure
import check_structure_duplicates

TREE = """```
tools/         words
examples/      words
converters/    words
  families/    words
  recipe/      words
runtime/       words
    |
kernels/       words
  ref/         words
  cpu/         words
  cuda/        words
  fast/        words
  wide/        words
format/        include/  and docs/ are no branches here
include/       words
tests/         mirrors
bench/         words
scripts/       words
cmake/         words
docs/          words
```
"""
MODULES = "## The modules\n" + TREE

GOOD = {
    "include/kinglet/status.h": "#include <stdint.h>\n",
    "include/kinglet/kinglet.hpp": """#include "kinglet/kinglet.h"
namespace kinglet { inline namespace interface { class Model { int* handle_; }; } }
""",
    "include/kinglet/kinglet.h": '#include "kinglet/status.h"\n',
    "format/reader.h": '#include "kinglet/status.h"\nclass Reader;\n',
    "format/reader.cc": '#include "format/reader.h"\n#include "format/model_generated.h"\n',
    "kernels/ref/sum.cc": '#include "format/reader.h"\n#include <vector>\n',
    "kernels/cpu/sum.cc": '#include <hwy/highway.h>\n#include "kernels/ref/sum.h"\n',
    "runtime/model.h": "namespace kinglet { class Model; class Model final { int size = 0; }; }\n",
    "runtime/c_api.cc": '#include "kinglet/kinglet.h"\n',
    "converters/convert.cc": '#include "runtime/model.h"\n#include "format/model_generated.h"\n',
    "converters/families/new.cc": "\nconstexpr Family kNew = {};\n",
    "tools/main.cc": '#include "converters/convert.h"\n',
    "examples/stream.c": "#include <kinglet/kinglet.h>\n",
    "bench/bench.cc": '#include "kernels/cpu/sum.h"\n',
    "bench/bench.h": "",
    **{f"{folder}/README.md": "" for folder in ("converters/recipe", "kernels/fast", "kernels/wide", "scripts", "cmake")},
    "bench/peers/draw.py": "",
    "bench/README.md": "* `x`: no program\n## Programs\n* `bench`, `peers/draw.py`: `words`\n\n## More\n* `y`: none\n",
    "tests/format/reader_test.cc": '#include "format/reader.h"\n#include "tests/support/model.h"\n',
    "tests/kernels/ref/sum_test.cc": "",
    "tests/kernels/cpu/sum_test.cc": "",
    "tests/runtime/c_api_test.c": "",
    "tests/converters/convert_test.cc": "x\n" * 499 + "// " + "é" * 97 + "\n",
    "format/generated/format/model_generated.h": "x" * 101 + "\n",
    # A parent and its parts include each other, and a part of one folder the parent of another.
    "kernels/backend.h": '#include "kernels/ref/sum.h"\n#include "kernels/cuda/device.h"\n',
    "kernels/ref/sum.h": '#include "kernels/backend.h"\n',
    "kernels/cuda/device.h": '#include "kernels/ref/sum.h"\n#include "kernels/backend.h"\n',
    "docs/ARCHITECTURE.md": """# Architecture
## The modules
""" + TREE + """
Written `kinglet/status.h`, `runtime/*.cc`, `a/b` and `f(x/y.z)`.

## Where is it?

| question | answer |
|---|---|
| How is a file read? | `format/reader.h` (`Reader`) |
| What computes? | `kernels/`, `kernels/ref` |

| another | table |
|---|---|
| with | words |
""",
    "docs/GLOSSARY.md": "*token*: see `runtime/model.h`; so do `docs/GLOSSARY.md` and `x y/z.h`.\n",
    "README.md": "Folders such as networking/work/x, ./work and a/../b are no home.\n",
    "model.pth": None,
}

# What is added to the good tree, and the start of the only line that must come out.
BAD = [
    ({"format/writer.h": '#include "kernels/op.h"\n'}, "format/writer.h:1: includes kernels/op.h"),
    ({"kernels/op.h": '\n#include "runtime/y.h"\n'}, "kernels/op.h:2: includes runtime/y.h"),
    ({"runtime/y.h": '#include <converters/convert.h>\n'}, "runtime/y.h:1: includes converters/"),
    ({"converters/x.h": '#  include "tools/args.h"\n'}, "converters/x.h:1: includes tools/args.h"),
    ({"format/x.h": '#include "kinglet/kinglet.h"\n'}, "format/x.h:1: includes kinglet/kinglet.h"),
    ({"format/x.h": '#include "kinglet/kinglet.hpp"\n'}, "format/x.h:1: includes kinglet/kinglet"),
    ({"include/kinglet/x.h": '#include "format/x.h"\n'}, "include/kinglet/x.h:1: includes format/"),
    ({"runtime/x.h": '#include "tests/support/model.h"\n'}, "runtime/x.h:1: includes tests/"),
    ({"tools/x.h": '#include "bench/bench.h"\n'}, "tools/x.h:1: includes bench/bench.h"),
    ({"format/x.h": '#include "reader.h"\n'}, "format/x.h:1: includes reader.h"),
    ({"tests/format/x.h": '#include "../support/model.h"\n'}, "tests/format/x.h:1: includes ../"),
    ({"kernels/ref/x.h": '#include "kernels/cpu/sum.h"\n'}, "kernels/ref/x.h:1: includes kernels/"),
    ({"kernels/ref/x.h": '#include "hwy/highway.h"\n'}, "kernels/ref/x.h:1: includes hwy/"),
    ({"kernels/ref/x.h": '#include <immintrin.h>\n'}, "kernels/ref/x.h:1: includes immintrin.h"),
    ({"runtime/x.h": '#include "format/model_generated.h"\n'},
     "runtime/x.h:1: includes format/model_generated.h"),
    ({"tools/x.h": '#include "model_generated.h"\n'}, "tools/x.h:1: includes model_generated.h"),
    ({"runtime/new.cc": ""}, "runtime/new.cc: expected a test tests/runtime/new_test."),
    ({"kernels/cuda/new.cu": ""},
     "kernels/cuda/new.cu: expected a test tests/kernels/cuda/new_test."),
    ({"docs/x.md": "see /" + "work/plan.md\n"}, "docs/x.md:1: a path of one machine"),
    ({"scripts/x": "cp ../" + "shared/a b\n"}, "scripts/x:1: a path of one machine"),
    ({"cmake/x.cmake": 'set(x "/' + 'home/me/x")\n'}, "cmake/x.cmake:1: a path of one machine"),
    ({"bench/kernels/x.cu": "\nnamespace {\n}\n"},
     "bench/kernels/x.cu:2: nvcc names what is anonymous after its folder"),
    ({"converters/x.h": "\nconst double x = std::exp(1);\n"}, "converters/x.h:2: std::exp() has other bits"),
    # Wide lines.
    ({"format/x.h": "\n// " + "é" * 98 + "\n"}, "format/x.h:2: 101 columns"),
    ({"tests/x.cc": 'const char* text = R"(' + "x" * 78 + "\n" + "x" * 101 + ')";\n'},
     "tests/x.cc:2: 104 columns"),
    # Circles of folders, each arrow allowed by itself.
    ({"converters/families/x.h": '#include "converters/recipe/x.h"\n',
      "converters/recipe/x.h": '\n#include "converters/families/x.h"\n'},
     "folders include each other in a circle: converters/families -> converters/recipe -> "
     "converters/families (converters/families/x.h:1 includes converters/recipe/x.h; "
     "converters/recipe/x.h:2 includes converters/families/x.h)"),
    ({"kernels/ref/x.h": '#include "kernels/fast/x.h"\n',
      "kernels/fast/x.h": '#include "kernels/wide/deep/x.h"\n',
      "kernels/wide/deep/x.h": '#include "kernels/ref/x.h"\n'},
     "folders include each other in a circle: kernels/fast -> kernels/wide/deep -> kernels/ref -> "),
    # Places that documents name.
    ({"docs/ARCHITECTURE.md": MODULES + "## Where is it?\nNowhere.\n"},
     "docs/ARCHITECTURE.md: expected a table"),
    ({"docs/ARCHITECTURE.md": MODULES + "## Where is it?\n|q|a|\n|-|-|\n|`x/y`|`format/` `kernels/none/`|\n"},
     "docs/ARCHITECTURE.md:27: names kernels/none/, which does not exist"),
    ({"docs/ARCHITECTURE.md": MODULES + "## Where is it?\n|q|a|\n|-|-|\n|`format/`|words|\n"},
     "docs/ARCHITECTURE.md:27: expected a path in the last column"),
    ({"docs/ARCHITECTURE.md": MODULES + "## Where is it?\n|q|a|\n|-|-|\n|q|`format/reader.h` (`Reader`, `Writer`)|\n"},
     "docs/ARCHITECTURE.md:27: Writer is not in the file before it"),
    ({"docs/ARCHITECTURE.md": MODULES.replace("  cpu/", "  cpi/") + "## Where is it?\n|q|a|\n|-|-|\n|q|`format/`|\n",
      "kernels/cpi/x.h": ""}, "docs/ARCHITECTURE.md: the tree of modules lacks kernels/cpu/"),
    ({"docs/ARCHITECTURE.md": MODULES.replace("bench/", "bench/ x\nfuzz/ ") + "## Where is it?\n|q|a|\n|-|-|\n|q|`format/`|\n"},
     "docs/ARCHITECTURE.md: the tree of modules has fuzz/, which does not exist"),
    ({"bench/new": ""}, "bench/README.md: expected new under '## Programs', found none"),
    ({"bench/README.md": "## Programs\n* `bench`, `peers/draw.py`, `old`: words\n"},
     "bench/README.md: lists old, which does not exist"),
    ({"docs/GLOSSARY.md": "*ring*: `runtime/ring.h`\n"}, "docs/GLOSSARY.md:1: names runtime/ring.h"),
    ({"docs/GLOSSARY.md": "*ring*: `tests/ring/*.cc`\n"}, "docs/GLOSSARY.md:1: names tests/ring/"),
    # Duplicates.
    ({"kernels/x.h": "namespace kinglet { struct Frame { int size; }; }\n",
      "format/x.h": "namespace kinglet {\nstruct\nFrame : Base<int> {};\n}\n"},
     "format/x.h: defines the type kinglet::Frame, and so does kernels/x.h"),
]


def write_tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\x80\x02\xff/" + b"work/\n" if text is None else text.encode())


class StructureTest(unittest.TestCase):
    def check(self, files, in_git=False):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            write_tree(root, files)
            if in_git:
                subprocess.run(["git", "init", "-q", folder], check=True)
            return check_structure.violations(root)

    def test_a_tree_that_keeps_the_rules(self):
        self.assertEqual(self.check(GOOD), [])

    def test_each_violation_alone(self):
        for added, expected in BAD:
            with self.subTest(expected):
                found = self.check({**GOOD, **added})
                self.assertEqual(len(found), 1, found)
                self.assertTrue(found[0].startswith(expected), found[0])

    def test_ignored_files_do_not_count(self):
        files = {**GOOD, ".gitignore": "/out/\n", "out/x.h": "x" * 101 + "\n", "y.h": "x" * 101 + "\n"}
        self.assertEqual(self.check(files, in_git=True), ["y.h:1: 101 columns, at most 100 expected"])


# Two files that define one name, and the name of the duplicate.
DUPLICATES = [
    ("namespace a::b { enum class E : int { kX }; }", "namespace a { namespace b { enum E { kY }; } }",
     ("type", "a::b::E")),
    ("union U { int x; };", "union [[nodiscard]] U { float y; };", ("type", "U")),
    ("template <class T, int n = (1 > 0)> class C final {};", "class EXPORT C {};", ("type", "C")),
    ("struct S { struct T { int x[2] = {1, 2}; }; };", "struct S::T { int y; };", ("type", "S::T")),
    ("using Id = int;", "template <class T> using Id = T;", ("type", "Id")),
    ("typedef struct Tag_ { int x; } Tag;", "struct Tag_ { int y; };", ("type", "Tag_")),
    ("constexpr int kSize = 1;", "inline constexpr long kSize{2};", ("constant", "kSize")),
    ("const char* const kNames[] = {\"{\", \"}\"};", "int kNames[2][3] = {};", ("constant", "kNames")),
    ("inline int F(const A& a, int b = 2) { return b; }", "int F(const A& other, int) {\n}",
     ("function", "F(const A &, int)")),
    ("int S::F() const { return 1; }", "auto S::F() const -> int { return 2; }",
     ("function", "S::F() const")),
    ("std::vector<int> F(std::span<const A<B>> x) { }", "void F(std::span<const A<B>> y) try {}\n"
     "catch (...) {}", ("function", "F(std :: span < const A < B > >)")),
    ('extern "C" {\nvoid F(void) {}\n}', "#if X\nvoid F(void) {}\n#else\nint x;\n#endif",
     ("function", "F(void)")),
    # Braces in text and comments, raw strings and numbers with separators do not end a scope.
    ("namespace n {\nchar c = '{'; // }\nauto s = R\"x(}\")x\"; /* } */ int i = 1'000;\nstruct X {};\n}",
     "struct n::X {};", ("type", "n::X")),
]

# Two files without duplicates.
NO_DUPLICATES = [
    ("struct X;", "struct X {};"),
    ("class X final {};", "namespace n { class X {}; }"),
    ("namespace { struct X {}; int F() {} }", "namespace { struct X {}; int F() {} }"),
    ("namespace n { namespace { struct X {}; } }", "namespace n { struct X {}; }"),
    ("inline namespace v1 { struct X {}; }", "struct X {};"),
    ("template <> struct X<int> {};", "template <class T> struct X<T*> {};"),
    ("template <> void F<int>() {}", "template <> void F<int>() {}"),
    ("void F(int) {}", "void F(float) {}"),
    ("void S::F() const {}", "void S::F() {}"),
    ("void F(int);", "void F(int) {}"),
    ("static int F() {}", "static int F() {}"),
    ("int main() {}", "int main() {}"),
    ("TEST(A, B) { struct X {}; }", "TEST(A, B) { struct X {}; }"),
    ("S::S(int x) : a_{x}, b_(2) {}\nS::~S() {}", "S::S(int x) : a_{x}, b_(2) {}\nS::~S() {}"),
    ("extern const int kX;", "const int kX = 1;"),
    ("struct X { static const int k = 1; int F() { return 1; } };", "const int k = 1; int F() {}"),
    ("enum E { k = 1 };", "int k = 1;"),
    ("typedef struct X X;", "struct X {};"),
    ("#if 0\nstruct X {};\n#endif", "struct X {};"),
    ("struct X F(struct X* x) { }", "struct X {};"),
    ("X x = 1;", "using n::X;\nusing namespace n;\nnamespace m = n;"),
    ("void F() { struct X {}; }", "void G() { struct X {}; }"),
]


class DuplicateTest(unittest.TestCase):
    def test_duplicates_are_found(self):
        for first, second, (kind, name) in DUPLICATES:
            with self.subTest(name):
                found = check_structure_duplicates.duplicates({"a.h": first, "b.h": second})
                self.assertEqual(found, [(kind, name, ["a.h", "b.h"])])

    def test_names_that_are_no_duplicates(self):
        for pair in NO_DUPLICATES:
            with self.subTest(pair[0]):
                self.assertEqual(check_structure_duplicates.duplicates(dict(zip("ab", pair))), [])


if __name__ == "__main__":
    unittest.main()
