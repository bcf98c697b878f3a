"""How the time to tokenize one line grows with its length: 500 kB and 5 MB, with and without spaces.

    long_lines.py KINGLET TEXT TOKENIZER...

TOKENIZER is what `kinglet tokenize` takes; "+" before it lower-cases. Prints processor seconds, the
fastest of three runs, and their ratio; exits 1 if one is above 15.
"""

import resource
import subprocess
import sys

SIZES = (500_000, 5_000_000)
LARGEST_RATIO = 15


def seconds(command, line):
    fastest = float("inf")
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, input=line, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        fastest = min(fastest, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return fastest


def main():
    kinglet, path, *tokenizers = sys.argv[1:]
    with open(path, "rb") as file:
        text = file.read().replace(b"\n", b" ")
    worst = 0
    for tokenizer in tokenizers:
        command = [kinglet, "tokenize", tokenizer.lstrip("+")]
        command += ["--lowercase"] if tokenizer.startswith("+") else []
        for name, part in (("spaces", text), ("no spaces", text.replace(b" ", b""))):
            times = [seconds(command, (part * (size // len(part) + 1))[:size]) for size in SIZES]
            worst = max(worst, times[1] / times[0])
            print(f"{tokenizer}  {name}  {times[0]:.2f} s  {times[1]:.2f} s  {times[1] / times[0]:.1f}")
    return 0 if worst <= LARGEST_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
