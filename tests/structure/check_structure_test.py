"""The structure check must see every kind of violation, and none in a tree that keeps the rules."""

import pathlib
import subprocess
import tempfile
import unittest

import check_structure

GOOD = {
    "include/kinglet/status.h": "#include <stdint.h>\n",
    "include/kinglet/kinglet.h": '#include "kinglet/status.h"\n',
    "format/reader.h": '#include "kinglet/status.h"\n',
    "format/reader.cc": '#include "format/reader.h"\n#include "format/model_generated.h"\n',
    "kernels/ref/sum.cc": '#include "format/reader.h"\n#include <vector>\n',
    "kernels/cpu/sum.cc": '#include <hwy/highway.h>\n#include "kernels/ref/sum.h"\n',
    "runtime/c_api.cc": '#include "kinglet/kinglet.h"\n',
    "converters/convert.cc": '#include "runtime/model.h"\n#include "format/model_generated.h"\n',
    "tools/main.cc": '#include "converters/convert.h"\n',
    "examples/stream.c": "#include <kinglet/kinglet.h>\n",
    "bench/bench.cc": '#include "kernels/cpu/sum.h"\n',
    "tests/format/reader_test.cc": '#include "format/reader.h"\n#include "tests/support/model.h"\n',
    "tests/kernels/ref/sum_test.cc": "",
    "tests/kernels/cpu/sum_test.cc": "",
    "tests/runtime/c_api_test.c": "",
    "tests/converters/convert_test.cc": "x\n" * 500,
    "README.md": "Folders such as networking/work/x, ./work and a/../b are nobody's home.\n",
    "model.pth": None,
}

# What is added to the good tree, and the start of the only line that must come out.
BAD = [
    ({"format/writer.h": '#include "kernels/op.h"\n'}, "format/writer.h:1: includes kernels/op.h"),
    ({"kernels/op.h": '\n#include "runtime/model.h"\n'}, "kernels/op.h:2: includes runtime/model.h"),
    ({"runtime/model.h": '#include <converters/convert.h>\n'}, "runtime/model.h:1: includes converters/"),
    ({"converters/x.h": '#  include "tools/args.h"\n'}, "converters/x.h:1: includes tools/args.h"),
    ({"format/x.h": '#include "kinglet/kinglet.h"\n'}, "format/x.h:1: includes kinglet/kinglet.h"),
    ({"format/x.h": '#include "kinglet/kinglet.hpp"\n'}, "format/x.h:1: includes kinglet/kinglet.hpp"),
    ({"include/kinglet/x.h": '#include "format/x.h"\n'}, "include/kinglet/x.h:1: includes format/x.h"),
    ({"runtime/x.h": '#include "tests/support/model.h"\n'}, "runtime/x.h:1: includes tests/support/"),
    ({"tools/x.h": '#include "bench/bench.h"\n'}, "tools/x.h:1: includes bench/bench.h"),
    ({"format/x.h": '#include "reader.h"\n'}, "format/x.h:1: includes reader.h"),
    ({"tests/format/x.h": '#include "../support/model.h"\n'}, "tests/format/x.h:1: includes ../support/"),
    ({"kernels/ref/x.h": '#include "kernels/cpu/sum.h"\n'}, "kernels/ref/x.h:1: includes kernels/cpu/"),
    ({"kernels/ref/x.h": '#include "hwy/highway.h"\n'}, "kernels/ref/x.h:1: includes hwy/highway.h"),
    ({"kernels/ref/x.h": '#include <immintrin.h>\n'}, "kernels/ref/x.h:1: includes immintrin.h"),
    ({"runtime/x.h": '#include "format/model_generated.h"\n'}, "runtime/x.h:1: includes format/model_gen"),
    ({"tools/x.h": '#include "model_generated.h"\n'}, "tools/x.h:1: includes model_generated.h"),
    ({"format/long.h": "x\n" * 501}, "format/long.h: 501 lines"),
    ({"tests/long.py": "x\n" * 501}, "tests/long.py: 501 lines"),
    ({"runtime/new.cc": ""}, "runtime/new.cc: expected a test tests/runtime/new_test."),
    ({"kernels/cuda/new.cu": ""}, "kernels/cuda/new.cu: expected a test tests/kernels/cuda/new_test."),
    ({"docs/x.md": "see /" + "work/plan.md\n"}, "docs/x.md:1: a path of one machine"),
    ({"scripts/x": "cp ../" + "shared/a b\n"}, "scripts/x:1: a path of one machine"),
    ({"cmake/x.cmake": 'set(x "/' + 'home/someone/x")\n'}, "cmake/x.cmake:1: a path of one machine"),
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
        files = {**GOOD, ".gitignore": "/out/\n", "out/x.py": "x\n" * 501, "y.py": "x\n" * 501}
        self.assertEqual(self.check(files, in_git=True), ["y.py: 501 lines, at most 500 expected"])


if __name__ == "__main__":
    unittest.main()
