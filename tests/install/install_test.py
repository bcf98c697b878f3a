"""Installs the build into a folder of its own and uses it from outside, as its users do.

    install_test.py BUILD_DIR SOURCE_DIR LIBDIR CMAKE PKG_CONFIG C_COMPILER CXX_COMPILER [FLAG...]

The command converts the bundled checkpoint; examples/ builds against the package with a C compiler
only, once by CMake and once by pkg-config; stream reads a text, and its figures are the
command's; beam's figures are those of a C++17 program that scores its sequences word by word.
"""

import json
import os
import pathlib
import pty
import re
import select
import subprocess
import sys
import tempfile
import time

WARNINGS = ["-pedantic-errors", "-Wall", "-Wextra", "-Werror"]
STRICT_C = ["-std=c11", *WARNINGS]
STRICT_CXX = ["-std=c++17", "-fno-exceptions", *WARNINGS]


def run(*command, **variables):
    result = subprocess.run([str(part) for part in command], capture_output=True, check=False,
                            env={**os.environ, **variables})
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {result.returncode}\n"
                 f"{result.stdout.decode()}{result.stderr.decode()}")
    return result.stdout.decode()


def expect(condition, message):
    if not condition:
        sys.exit(message)


def without_times(output):
    return re.sub(r", [0-9.]+ us per token", "", output)


def names_in_help(text):
    """The options that a help text lists: {"-o", "--output", ...}."""
    lines = re.findall(r"^  (-[^ ]+)", text, re.MULTILINE)
    return {name for line in lines for name in line.split(",") if name.startswith("-")}


def check_components(cmake, build, work, libdir):
    """Each component installs its part; together they install all files."""
    def files(prefix):
        return {str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()}

    found = {}
    for name in ("runtime", "development", "command"):
        run(cmake, "--install", build, "--prefix", work / name, "--component", name)
        found[name] = files(work / name)
    whole = files(work / "first")
    expect(sum(map(len, found.values())) == len(whole) and set().union(*found.values()) == whole,
           f"components: {found}")
    expect(all(f"{libdir}/libkinglet.so." in path for path in found["runtime"]), str(found))
    expect("bin/kinglet" in found["command"], str(found))


def completed(completions, *words):
    """The completions of bash after these words."""
    quoted = " ".join(f"'{word}'" for word in words)
    return run("bash", "-c", f"source {completions}; COMP_WORDS=({quoted}); "
               f"COMP_CWORD={len(words) - 1}; _kinglet; echo \"${{COMPREPLY[@]}}\"").split()


def on_a_terminal(completions, folder, keys):
    """The arguments of a command that is typed in bash with these keys, the last one a tab."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ.update({"PS1": "$ ", "TERM": "dumb"})
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])

    def read_until(mark):
        text = ""
        while not re.search(mark, text):
            expect(select.select([terminal], [], [], 60)[0], f"bash: no {mark} after {text!r}")
            text += os.read(terminal, 65536).decode()
        return text

    read_until(r"\$ $")
    os.write(terminal, f"kinglet() {{ printf '<%s>' \"$@\"; echo; }}; source '{completions}'; echo r''eady\n".encode())
    read_until(r"ready\r\n\$ $")
    os.write(terminal, keys.encode() + b"\t")
    time.sleep(0.5)
    os.write(terminal, b"\n")
    answer = read_until(r"\r\n<.*>\r\n")
    os.write(terminal, b"exit\n")
    os.waitpid(child, 0)
    os.close(terminal)
    return re.findall(r"<([^>]*)>", answer.split("\n", 1)[1])


def check_names(completions, folder):
    """Names with spaces, stars and quotes are completed as one argument, as operands and as values of options."""
    names = ["my model*.kgl", "zz (1) $x's.kgl"]
    for name in names:
        (folder / name).touch()
    for keys, name in (("my", names[0]), ("zz", names[1]), ("--text my", names[0]), ("--backend cpu zz", names[1])):
        given = on_a_terminal(completions, folder, f"kinglet score {keys}")
        expect(given[-1] == name and len(given) == len(keys.split()) + 1, f"bash: {name!r}, found {given}")


def check_pages(prefix, command):
    """Each subcommand's manual page and completions have the options of its help; their number."""
    share = prefix / "share"
    manual = share / "man" / "man1"
    bash = share / "bash-completion" / "completions" / "kinglet"
    zsh = (share / "zsh" / "site-functions" / "_kinglet").read_text()
    fish = (share / "fish" / "vendor_completions.d" / "kinglet.fish").read_text()
    program = (manual / "kinglet.1").read_text()
    subcommands = re.findall(r"^  ([a-z][a-z-]+) +\S", run(command, "--help").split("\nExample:")[0],
                             re.MULTILINE)
    pages = {path.name for path in manual.iterdir()}
    expect(pages == {"kinglet.1", *(f"kinglet-{name}.1" for name in subcommands)}, f"pages: {pages}")
    expect(set(completed(bash, "kinglet", "")) >= {*subcommands, "help"}, "bash: subcommands")
    expect(completed(bash, "kinglet", "score", "--backend", "r") == ["ref", "ref64"], "bash: values")
    with tempfile.TemporaryDirectory() as folder:
        check_names(bash, pathlib.Path(folder))
    count = 0
    for name in subcommands:
        expect(f"kinglet-{name}" in program.replace("\\-", "-"), f"kinglet.1 lacks {name}")
        options = names_in_help(run(command, name, "--help"))
        page = (manual / f"kinglet-{name}.1").read_text().replace("\\-", "-")
        entries = set(re.findall(r"\\fB(-[^\\]*)\\fR", page))
        expect(entries == options, f"kinglet-{name}.1 has {entries}, --help {options}")
        expect(set(completed(bash, "kinglet", name, "-")) == options, f"bash: options of {name}")
        arm = zsh.split(f"    {name})\n")[1].split(";;")[0]
        expect(set(re.findall(r"'(-[^\[]+)\[", arm)) == options, f"zsh: options of {name}")
        lines = [line for line in fish.splitlines() if f"seen_subcommand_from {name}'" in line]
        found = {"-" + short for line in lines for short in re.findall(r" -s (\S)", line)}
        found |= {"--" + long for line in lines for long in re.findall(r" -l (\S+)", line)}
        expect(found == options, f"fish: {found}, --help {options}")
        count += len(options)
    return count


def main():
    build, source, libdir, cmake, pkg_config, compiler, cxx_compiler, *flags = sys.argv[1:]
    demo = pathlib.Path(source) / "examples" / "wikitext2"
    strict = STRICT_C + flags
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        # The installation is moved: no file may depend on the first path.
        run(cmake, "--install", build, "--prefix", work / "first")
        check_components(cmake, build, work, libdir)
        prefix = (work / "first").rename(work / "prefix")
        lib = prefix / libdir
        expect((prefix / "bin" / "kinglet").is_file(), "not installed: bin/kinglet")
        pages = check_pages(prefix, command=prefix / "bin" / "kinglet")
        headers = sorted(str(path.relative_to(prefix)) for path in (prefix / "include").rglob("*")
                         if path.is_file())
        expect(headers == ["include/kinglet/" + name for name in
                           ("archive.h", "archive.hpp", "beam.h", "beam.hpp", "export.h",
                            "generation.h", "kinglet.h", "kinglet.hpp", "model.hpp", "ngrams.h", "ngrams.hpp",
                            "queries.h", "state.hpp", "status.h", "text_words.hpp", "tree.h",
                            "typing.h", "typing.hpp", "words.h")],
               f"installed headers: {headers}")

        model, text = work / "model.kgl", work / "text.txt"
        command = prefix / "bin" / "kinglet"
        run(command, "convert", demo, "--vocab", demo / "vocab.txt", "-o", model)
        text.write_bytes((demo / "passage.txt").read_bytes()[:3000])

        # A copy of the example outside the project, by CMake.
        examples = work / "examples"
        examples.mkdir()
        for name in ("stream.c", "beam.c", "keyboard.c", "CMakeLists.txt"):
            (examples / name).write_bytes((demo.parent / name).read_bytes())
        run(cmake, "-G", "Ninja", "-S", examples, "-B", work / "build", f"-DCMAKE_C_COMPILER={compiler}",
            f"-DCMAKE_C_FLAGS={' '.join(strict)}", f"-DCMAKE_PREFIX_PATH={prefix}")
        run(cmake, "--build", work / "build")
        by_cmake = run(work / "build" / "stream", model, text)

        # With pkg-config alone.
        package = run(pkg_config, "--cflags", "--libs", "kinglet",
                      PKG_CONFIG_PATH=str(lib / "pkgconfig")).split()
        run(compiler, *strict, examples / "stream.c", "-o", work / "stream", *package, "-lm")
        by_pkg_config = run(work / "stream", model, text, LD_LIBRARY_PATH=str(lib))
        expect(without_times(by_cmake) == without_times(by_pkg_config),
               f"the two builds differ:\n{by_cmake}\n{by_pkg_config}")

        # The figures themselves: the command's score of the same text.
        figures = re.search(r"([0-9]+) tokens, mean negative log-likelihood ([0-9.]+), perplexity ([0-9.]+)",
                            by_cmake)
        expect(figures, f"no summary in:\n{by_cmake}")
        tokens, mean, perplexity = int(figures[1]), float(figures[2]), float(figures[3])
        score = json.loads(run(command, "score", model, "--text", text, "--json").splitlines()[-1])
        expect(tokens == score["tokens"] and tokens == by_cmake.count("\n") - 2,
               f"{tokens} tokens by stream, {score['tokens']} by score")
        expect(abs(mean - score["nll"]) < 1e-4 and abs(perplexity - score["ppl"]) < 0.01 * perplexity,
               f"stream: {mean}, {perplexity}; score: {score}")

        # Words as they are typed: a new one is found from its first letters the next time.
        typed = [run(work / "build" / "keyboard", model, work / "words", "the zyxwvly - war").splitlines()
                 for _ in range(2)]
        expect([line.split()[0] for line in typed[0][1:3]] == ["t", "th"], f"keyboard: {typed[0]}")
        expect([any(line.split()[:2] == ["zyx", "zyxwvly"] for line in lines) for lines in typed]
               == [False, True], f"the word was not learned: {typed}")
        failed = subprocess.run([work / "build" / "keyboard", text, work / "words", "the"],
                                stderr=subprocess.PIPE, text=True)
        expect(failed.returncode == 1 and failed.stderr.startswith("keyboard: "), f"{failed}")

        # The beam's sequences, word by word.
        rescore = work / "rescore"
        run(cxx_compiler, *STRICT_CXX, *flags, pathlib.Path(__file__).parent / "rescore.cc", "-o", rescore,
            *package)
        prompt = "the war of the".split()
        beam = run(work / "build" / "beam", model, *prompt).splitlines()
        expect(len(set(beam)) == 4, f"expected four sequences, found {beam}")
        probabilities = [float(line.split("%")[0]) for line in beam]
        expect(probabilities == sorted(probabilities, reverse=True) and probabilities[-1] > 0,
               f"not the most probable first: {beam}")
        for line in beam:
            alone = run(rescore, model, len(prompt), *prompt, *line.split("%", 1)[1].split(),
                        LD_LIBRARY_PATH=str(lib))
            expect(alone.rstrip() == line.split("%")[0] + "%", f"beam: {line}; word by word: {alone}")
        print("\n".join(beam))
        print(f"manual pages and completions: {pages} options, as --help has them")
        print(f"{tokens} tokens, mean negative log-likelihood {mean}, perplexity {perplexity}: the example "
              "built by CMake, built by pkg-config, and the command agree")


if __name__ == "__main__":
    main()
