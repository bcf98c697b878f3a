"""Memory that kernels fetch ahead of its use is fetched by the machine code too: a compiler may drop calls that only prefetch.

    fetches_test.py OBJDUMP ARCHIVE

ARCHIVE holds the kernels, compiled with optimisation for x86-64.
"""
import re
import subprocess
import sys

# The functions that fetch to the second-level cache: the rows of a neural cache in 9 bits and in
# 16, a next stream's keys and values, and the weights of a product with one vector.
FETCHING = ["NineBitDots", "IntegerDots", "WindowAttentionKernel<short>", "MultiplyOne"]

code = subprocess.run([sys.argv[1], "-d", "-C", "--no-show-raw-insn", sys.argv[2]], check=True, text=True, stdout=subprocess.PIPE).stdout
functions = re.split(r"^[0-9a-f]+ <", code, flags=re.MULTILINE)[1:]
fetching = [text.split(">:\n", 1)[0] for text in functions if "prefetcht1" in text]
missing = [name for name in FETCHING if not any(name in function for function in fetching)]
if missing:
    sys.exit(f"fetches_test: {sys.argv[2]}: expected prefetcht1 in {', '.join(missing)}, found it in {len(fetching)} other functions")
print(f"{len(fetching)} functions fetch to the second-level cache")
