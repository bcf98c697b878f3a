"""Archives in pieces of any size, with the bytes of the command's; refusals; threads; Ctrl-C.

    archives_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)
"""

import os
import pathlib
import random
import signal
import tempfile
import threading

import kinglet_lm
from support import DEMO, demo, refused, small

TEXT = (DEMO / "passage.txt").read_bytes()[:3000]


def passed(coder, data, chance, most):
    """What a coder makes of the bytes in pieces of at most `most` bytes, as in a file."""
    parts, at = [], 0
    while at < len(data):
        end = at + chance.randrange(most + 1)
        piece = data[at:end]
        parts.append(coder.add(chance.choice((bytes, bytearray, memoryview))(piece)))
        at = min(end, len(data))
    return b"".join([*parts, coder.finish()])


def equals_the_command(path, folder):
    """Any pieces and threads, in either direction, have the command's bytes."""
    model = kinglet_lm.Model(path)
    chance = random.Random(5)
    texts = [b"", b"\0", TEXT, chance.randbytes(2500), TEXT[:1500] + b"\xff\xfe" * 300]
    for i, text in enumerate(texts):
        file = pathlib.Path(folder) / f"text{i}"
        file.write_bytes(text)
        kinglet_lm.run("compress", path, file, "--block", 1024)
        expected = file.with_name(file.name + ".kz").read_bytes()
        for most in (40, 700, 10_000):
            threads = chance.randrange(1, 4)
            coder = model.compressor(threads=threads, block_size=1024)
            assert passed(coder, text, chance, most) == expected, (i, most)
            back = model.decompressor(threads=threads)
            assert passed(back, expected, chance, most) == text, (i, most)
            assert back.damages == []
        assert model.decompress(model.compress(text, fast=True)) == text
        archive = file.with_name(f"{i}.kz")
        archive.write_bytes(model.compress(text))
        kinglet_lm.run("decompress", path, archive, "-o", file, "--force")
        assert file.read_bytes() == text


def refusals(path, folder):
    model = kinglet_lm.Model(path)
    archive = model.compress(TEXT, block_size=1024)
    for wrong in ("text", 5, None, [1]):
        refused(TypeError, lambda wrong=wrong: model.compress(wrong))
    for call in (model.compressor, model.decompressor):
        refused(kinglet_lm.InvalidArgument, lambda call=call: call(threads=0), "threads")
    refused(kinglet_lm.InvalidArgument, lambda: model.compressor(block_size=1023), "block size")
    refused(kinglet_lm.InvalidArgument, lambda: model.decompressor(limit=0), "limit")
    refused(kinglet_lm.InvalidArgument, lambda: model.decompress(archive, limit=2999), "the limit")
    assert model.decompress(archive, limit=3000) == TEXT
    refused(kinglet_lm.DamagedFile, lambda: model.decompress(archive[:-1]), "end")
    refused(kinglet_lm.DamagedFile, lambda: model.decompress(b"no archive, but long enough"))
    damaged = bytearray(archive)
    damaged[60] ^= 4
    refused(kinglet_lm.DamagedFile, lambda: model.decompress(damaged), "block 1 ")
    coder = model.decompressor(salvage=True)
    assert coder.add(damaged) + coder.finish() == TEXT[1024:]
    assert len(coder.damages) == 1 and "block 1 " in coder.damages[0], coder.damages
    other = kinglet_lm.Model(small(folder))
    refused(kinglet_lm.Mismatch, lambda: other.decompress(archive), model.digest)
    failed = model.decompressor()
    refused(kinglet_lm.DamagedFile, lambda: failed.add(b"x" * 30))
    refused(kinglet_lm.WrongOrder, lambda: failed.add(archive), "begin again")
    ended = model.compressor()
    assert len(ended.finish()) == 44
    refused(kinglet_lm.InvalidArgument, lambda: ended.add(TEXT), "not finished")


def threads(path):
    """Threads with a coder each; a second thread is refused; another may cancel."""
    model = kinglet_lm.Model(path)
    expected = model.compress(TEXT)
    found = []
    workers = [threading.Thread(target=lambda: found.append(model.compress(TEXT)))
               for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [expected] * 4
    coder = model.compressor()
    long_text = TEXT * 30
    began = threading.Event()
    errors = []

    def work():
        coder.add(long_text)
        began.set()
        try:
            coder.finish()
        except kinglet_lm.Error as error:
            errors.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    began.wait()
    while not coder._turn.taken() and worker.is_alive():
        pass
    refused(kinglet_lm.Busy, lambda: coder.add(b"more"), "second")
    coder.cancel()
    worker.join()
    assert [type(error) for error in errors] == [kinglet_lm.Cancelled], errors


def interrupted(path):
    """Ctrl-C ends a call that would take a second, and the coder is of no use after it."""
    model = kinglet_lm.Model(path)
    coder = model.compressor()
    coder.add(TEXT * 200)
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    refused(KeyboardInterrupt, coder.finish)
    timer.join()
    refused(kinglet_lm.WrongOrder, coder.finish, "interrupted")


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = demo(folder)
        equals_the_command(path, folder)
        refusals(path, folder)
        threads(path)
        interrupted(path)
    print("archives have the command's bytes")


if __name__ == "__main__":
    main()
