"""The linked files need no oneDNN and no OpenMP: the backend onednn loads its library at run time.

    needed_libraries_test.py READELF FILE...
"""

import re
import subprocess
import sys

LOADED_AT_RUN_TIME = re.compile(r"dnnl|gomp|iomp|omp5?\.so|mkl|tbb")


def main():
    readelf, *files = sys.argv[1:]
    failures = 0
    for path in files:
        listing = subprocess.run([readelf, "-d", path], capture_output=True, check=True,
                                 text=True).stdout
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]", listing)
        print(path, *needed)
        failures += not any(name.startswith("libc.so") for name in needed)
        failures += any(LOADED_AT_RUN_TIME.search(name) for name in needed)
    return 1 if failures or not files else 0


if __name__ == "__main__":
    sys.exit(main())
