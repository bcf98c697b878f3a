#!/usr/bin/env python3
"""Every form of tensors, values and vocabularies that pickles have, in every family whose framework writes pickles: the
converted model is that of the fixture's plain form, whose probabilities PyTorch computed (golden_f64.tsv of each fixture).

    form_grid_test.py KINGLET TESTS_DATA [-v]

The fixtures of torch.save are taken apart and pickled again without PyTorch or NumPy: classes are names, and no code of
the pickle runs.
"""
import collections
import gzip
import io
import json
import os
import pathlib
import pickle
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

KINGLET, DATA = (os.path.abspath(path) for path in sys.argv[1:3])


class Global:
    """A class or a function, by name. Calling it makes a Call."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __call__(self, *args):
        return Call(self, args)


class Call:
    """An object of a pickle: a call, or NEWOBJ, and what was added to it."""

    def __init__(self, function, args=(), new=False, state=None, items=None, appended=None):
        self.function, self.args, self.new, self.state = function, args, new, state
        self.items, self.appended = items or {}, appended or []

    def __setstate__(self, state):
        self.state = state

    def __setitem__(self, key, value):
        self.items[key] = value

    def append(self, value):
        self.appended.append(value)

    def is_a(self, *names):
        return isinstance(self.function, Global) and self.function.name in names


class Persistent:
    def __init__(self, identity):
        self.identity = identity


class Reader(pickle._Unpickler):
    dispatch = dict(pickle._Unpickler.dispatch)

    def find_class(self, module, name):
        return Global(module, name)

    def persistent_load(self, pid):
        return Persistent(pid)

    def load_newobj(self):
        args = self.stack.pop()
        self.stack[-1] = Call(self.stack[-1], args, new=True)

    dispatch[pickle.NEWOBJ[0]] = load_newobj


class Writer:
    """Protocol 2. Objects that stand in several places are written once."""

    def __init__(self):
        self.out, self.memo, self.kept = io.BytesIO(), {}, []

    def emit(self, *parts):
        for part in parts:
            self.out.write(part)

    def remember(self, value):
        self.memo[id(value)] = len(self.memo)
        self.kept.append(value)
        self.emit(pickle.LONG_BINPUT, struct.pack("<I", self.memo[id(value)]))

    def save(self, value):  # pylint: disable=too-many-branches
        if id(value) in self.memo:
            self.emit(pickle.LONG_BINGET, struct.pack("<I", self.memo[id(value)]))
        elif isinstance(value, Global):
            self.emit(pickle.GLOBAL, f"{value.module}\n{value.name}\n".encode())
        elif isinstance(value, Call):
            self.save(value.function)
            self.save(tuple(value.args))
            self.emit(pickle.NEWOBJ if value.new else pickle.REDUCE)
            self.remember(value)
            self.extend(value.appended, value.items)
            if value.state is not None:
                self.save(value.state)
                self.emit(pickle.BUILD)
        elif isinstance(value, Persistent):
            self.save(value.identity)
            self.emit(pickle.BINPERSID)
        elif isinstance(value, dict):
            self.emit(pickle.EMPTY_DICT)
            self.remember(value)
            self.extend((), value)
        elif isinstance(value, list):
            self.emit(pickle.EMPTY_LIST)
            self.remember(value)
            self.extend(value, {})
        elif isinstance(value, tuple):
            self.emit(pickle.MARK)
            for item in value:
                self.save(item)
            self.emit(pickle.TUPLE)
        elif isinstance(value, bytes):  # as protocol 2 writes them
            self.save(Call(Global("_codecs", "encode"), (value.decode("latin1"), "latin1")))
        else:
            self.emit(pickle.dumps(value, 2)[2:-1])

    def extend(self, items, entries):
        for item in items:
            self.save(item)
            self.emit(pickle.APPEND)
        for key, value in entries.items():
            self.save(key)
            self.save(value)
            self.emit(pickle.SETITEM)

    @staticmethod
    def pickled(value):
        writer = Writer()
        writer.emit(pickle.PROTO, b"\2")
        writer.save(value)
        writer.emit(pickle.STOP)
        return writer.out.getvalue()


STORAGE_OF = {"F32": "FloatStorage", "F16": "HalfStorage", "BF16": "BFloat16Storage", "I64": "LongStorage"}


class Archive:
    """A zip file of torch.save, or what torch.save makes of a safetensors file's tensors."""

    def __init__(self, path):
        if path.endswith(".safetensors"):
            self.pickle, self.folder = "archive/data.pkl", "archive"
            self.read_safetensors(path)
            return
        with zipfile.ZipFile(path) as file:
            self.entries = {name: file.read(name) for name in file.namelist()}
        self.pickle = next(name for name in self.entries if name.endswith("/data.pkl"))
        self.folder = os.path.dirname(self.pickle)
        self.root = Reader(io.BytesIO(self.entries[self.pickle])).load()

    def read_safetensors(self, path):
        with open(path, "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
            data = file.read()
        self.entries, self.root = {self.pickle: b"", "archive/version": b"3\n"}, Global("collections", "OrderedDict")()
        header.pop("__metadata__", None)
        for key, (name, entry) in enumerate(header.items()):
            begin, end = entry["data_offsets"]
            self.entries[f"archive/data/{key}"] = data[begin:end]
            size, stride = tuple(entry["shape"]), []
            count = 1
            for n in reversed(size):
                stride.insert(0, count)
                count *= n
            storage = Persistent(("storage", Global("torch", STORAGE_OF[entry["dtype"]]), str(key), "cpu", count))
            self.root[name] = Global("torch._utils", "_rebuild_tensor_v2")(storage, 0, size, tuple(stride), False, hooks())

    def storage(self, key):
        return self.entries[f"{self.folder}/data/{key}"]

    def write(self, path, root):
        with zipfile.ZipFile(path, "w") as file:
            for name, data in self.entries.items():
                file.writestr(name, Writer.pickled(root) if name == self.pickle else data)


def is_tensor(value):
    return isinstance(value, Call) and value.is_a("_rebuild_tensor_v2", "_rebuild_tensor")


def mapped(value, tensor, scalar, memo, in_options=False):
    """The value with its tensors and its options changed. Options are scalars of dicts and of objects' states; lists (words,
    sizes of layers) and the keys of dicts stay."""
    if id(value) in memo:
        return memo[id(value)][1]
    if is_tensor(value):
        made = tensor(value)
    elif isinstance(value, Call):
        made = Call(value.function, value.args, value.new)
        memo[id(value)] = (value, made)
        made.args = tuple(mapped(item, tensor, scalar, memo) for item in value.args)
        options = value.is_a("Namespace", "OrderedDict", "dict") or made.new
        made.state = mapped(value.state, tensor, scalar, memo, options)
        made.items = {key: mapped(item, tensor, scalar, memo, True) for key, item in value.items.items()}
        made.appended = [mapped(item, tensor, scalar, memo) for item in value.appended]
    elif isinstance(value, dict):
        made = {}
        memo[id(value)] = (value, made)
        made.update({key: mapped(item, tensor, scalar, memo, True) for key, item in value.items()})
    elif isinstance(value, list):
        made = []
        memo[id(value)] = (value, made)
        made += [mapped(item, tensor, scalar, memo) for item in value]
    elif isinstance(value, tuple):
        made = tuple(mapped(item, tensor, scalar, memo) for item in value)
    else:
        return scalar(value) if in_options else value
    memo[id(value)] = (value, made)
    return made


def same(value):
    return value


def numpy_type(code):
    made = Global("numpy", "dtype")(code, False, True)
    made.state = (3, "|" if code[1:] == "1" else "<", None, None, None, -1, -1, 0)
    return made


NUMPY_OF = {"FloatStorage": "f4", "HalfStorage": "f2", "DoubleStorage": "f8", "LongStorage": "i8"}


def contiguous(size, stride):
    step = 1
    for n, found in zip(reversed(size), reversed(stride)):
        if n != 1 and found != step:
            return False
        step *= n
    return True


def array_of(archive, tensor):
    """The tensor as a pickled array of NumPy; None for types that NumPy lacks and views with gaps."""
    storage, offset, size, stride = tensor.args[:4]
    kind, key = storage.identity[1:3]
    code = NUMPY_OF.get(kind.name)
    if code is None or not contiguous(size, stride):
        return None
    count = 1
    for n in size:
        count *= n
    width = int(code[1:])
    data = archive.storage(key)[offset * width:(offset + count) * width]
    made = Global("numpy.core.multiarray", "_reconstruct")(Global("numpy", "ndarray"), (0,), b"b")
    made.state = (1, tuple(size), numpy_type(code), False, data)
    return made


def hooks():
    return Global("collections", "OrderedDict")()


def plain_tensor(tensor):
    return Global("torch._utils", "_rebuild_tensor")(*tensor.args[:4])


def old_parameter(tensor):
    made = Global("torch.nn.parameter", "Parameter")(plain_tensor(tensor))
    made.state = (True, False, hooks())
    return made


def parameter(tensor):
    return Global("torch._utils", "_rebuild_parameter")(tensor, True, hooks())


def subclass(tensor):
    return Global("torch._tensor", "_rebuild_from_type_v2")(
        tensor.function, Global("fastai.torch_core", "TensorBase"), tensor.args, {})


def tensor_forms(archive):
    def or_plain(make):
        return lambda tensor: make(tensor) or tensor

    def array(tensor):
        return array_of(archive, tensor)

    def of_device(tensor):
        made = array(tensor)
        return made and Global("torch._utils", "_rebuild_device_tensor_from_numpy")(
            made, Global("torch", "float32"), "xla:1", False)

    return {
        "parameters": parameter,
        "parameters of PyTorch 0.3": old_parameter,
        "tensors of PyTorch 0.1": plain_tensor,
        "a subclass of Tensor": subclass,
        "a subclass of Parameter": lambda tensor: parameter(subclass(tensor)),
        "arrays of NumPy": or_plain(array),
        "tensors of an XLA device": or_plain(of_device),
    }


def numpy_scalar(code, layout):
    def make(value):
        return Global("numpy.core.multiarray", "scalar")(numpy_type(code), struct.pack(layout, value))

    return make


def only(kind, make):
    """Changes values of exactly this type."""
    return lambda value: make(value) if type(value) is kind else value  # pylint: disable=unidiomatic-typecheck


def enumeration(value):
    return Global("fairseq.dataclass.constants", "Choice")(value)


VALUE_FORMS = {
    "integers of NumPy": only(int, numpy_scalar("i8", "<q")),
    "narrow integers of NumPy": only(int, lambda value: numpy_scalar("i4", "<i")(value) if abs(value) < 2**31 else value),
    "whole floats": only(int, lambda value: float(value) if abs(value) < 2**53 else value),
    "floats of NumPy": only(float, numpy_scalar("f8", "<d")),
    "bools of NumPy": only(bool, numpy_scalar("b1", "<?")),
    "members of enumerations": only(str, enumeration),
}


def node(value):
    made = Call(Global("omegaconf.nodes", "AnyNode"), (), new=True)
    made.state = {"_metadata": None, "_parent": None, "_val": value}
    return made


def configuration(entries):
    """OmegaConf's DictConfig."""
    made = Call(Global("omegaconf.dictconfig", "DictConfig"), (), new=True)
    content = {key: configuration(value) if isinstance(value, dict) else node(value) for key, value in entries.items()}
    made.state = {"_metadata": None, "_parent": None, "_content": content}
    return made


def dataclass(entries):
    made = Call(Global("fairseq.models.transformer_lm", "Config"), (), new=True)
    made.state = {key: dataclass(value) if isinstance(value, dict) else value for key, value in entries.items()}
    return made


def options_of(value):
    """The dict of a Namespace, or a dict."""
    return value.state if isinstance(value, Call) else value


def with_options(make):
    """A root whose 'args', 'cfg' or 'opt' is what `make` makes of its dict; None without one."""

    def change(root):
        for name in ("args", "cfg", "opt"):
            entries = isinstance(root, dict) and root.get(name)
            if entries and isinstance(options_of(entries), dict):
                return {**root, name: make(options_of(entries))}
        return None

    return change


ROOT_FORMS = {
    "options as a dict": with_options(same),
    "options as a Namespace": with_options(lambda entries: Call(Global("argparse", "Namespace"), (), new=True, state=entries)),
    "options as a DictConfig": with_options(configuration),
    "options as a dataclass": with_options(dataclass),
    "a dict of collections": lambda root: Call(Global("collections", "OrderedDict"), (), items=root)
    if isinstance(root, dict) else None,
}


def fixtures():
    """Zip files of torch.save, and what Hugging Face's library saves, in fixtures that convert by themselves."""
    for path in sorted(pathlib.Path(DATA).glob("**/*")):
        group = path.relative_to(DATA).parts[0]
        if group in ("checkpoint-forms", "mistakes", "kinglet-torch", "recipes", "define", "fuzz", "low_rank", "bag-classifier"):
            continue
        torch = path.suffix in (".pt", ".pth", ".ckpt") and zipfile.is_zipfile(path)
        if torch or path.name == "model.safetensors":
            yield str(path)


def run(*arguments):
    return subprocess.run([KINGLET, *arguments], capture_output=True, text=True, check=False)


VOCABULARY_FORMS = {
    "list.txt": lambda words: "".join(word + "\n" for word in words).encode(),
    "ids.txt": lambda words: "".join(f"{word} {i}\n" for i, word in enumerate(words)).encode(),
    "ids_first.txt": lambda words: "".join(f"{i}\t{word}\n" for i, word in enumerate(words)).encode(),
    "windows.txt": lambda words: b"\xef\xbb\xbf" + "".join(word + "\r\n" for word in words).encode(),
    "quoted.csv": lambda words: "".join(f'"{word}"\n' for word in words).encode(),
    "pieces.vocab": lambda words: "".join(f"{word}\t{-i - 0.5}\n" for i, word in enumerate(words)).encode(),
    "list.txt.gz": lambda words: gzip.compress("".join(word + "\n" for word in words).encode()),
    "array.json": lambda words: json.dumps(words).encode(),
    "object.json": lambda words: json.dumps({word: i for i, word in enumerate(words)}).encode(),
    "tokenizer.json": lambda words: json.dumps(
        {"version": "1.0", "model": {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(words)}}}).encode(),
    "itos.pkl": pickle.dumps,
    "itos0.pkl": lambda words: pickle.dumps(words, 0),
    "word2id.pkl": lambda words: pickle.dumps({word: i for i, word in enumerate(words)}),
    "dictionary.pkl": lambda words: Writer.pickled(Call(Global("data", "Dictionary"), (), new=True, state={
        "word2idx": {word: i for i, word in enumerate(words)}, "idx2word": words})),
    "torchtext.pkl": lambda words: Writer.pickled(Call(Global("torchtext.vocab", "Vocab"), (), new=True, state={
        "itos": words, "stoi": {word: i for i, word in enumerate(words)}, "vectors": None})),
}


class Grid(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def described(self, model):
        """What the model is, but for the file that it was made of."""
        facts = json.loads(run("inspect", model, "--json").stdout)
        return {key: facts[key] for key in ("blocks", "tensors", "parameters", "vocabulary", "start_token", "end_token") if key in facts}

    def convert(self, checkpoint, name):
        model = os.path.join(self.folder, name)
        made = run("convert", checkpoint, "-o", model, "--json")
        return made, model

    def compare(self, checkpoint, root, archive, what):
        archive.write(checkpoint, root)
        made, model = self.convert(checkpoint, "form.kgl")
        self.assertEqual(made.returncode, 0, f"{what}: {made.stderr}")
        self.assertEqual(self.described(model), self.plain, what)
        total = len(self.plain["tensors"])
        self.assertIn(f"{total} of {total} are the same", run("diff", os.path.join(self.folder, "plain.kgl"), model).stdout, what)

    def families(self):
        """The first fixture of each family, in a copy of its folder: its path, the copy's and the family. self.plain is what
        its conversion is."""
        seen = set()
        for path in fixtures():
            copy = os.path.join(self.folder, "fixture")
            shutil.rmtree(copy, ignore_errors=True)
            top = os.path.dirname(path)
            if os.path.basename(top) == "models":
                top = os.path.dirname(top)
            shutil.copytree(top, copy)
            checkpoint = os.path.join(copy, os.path.relpath(path, top))
            made, model = self.convert(checkpoint, "plain.kgl")
            family = json.loads(made.stdout.splitlines()[-1])["family"] if made.returncode == 0 else None
            if family is None or family in seen:
                continue
            seen.add(family)
            self.plain = self.described(model)
            yield path, checkpoint, family

    def test_every_form_in_every_family(self):
        met, families = collections.defaultdict(set), set()  # families by form
        for path, checkpoint, family in self.families():
            families.add(family)
            archive = Archive(path)
            if path.endswith(".safetensors"):
                os.remove(checkpoint)
                checkpoint = os.path.join(os.path.dirname(checkpoint), "pytorch_model.bin")
            forms = {"pickled again": archive.root}
            for form, make in tensor_forms(archive).items():
                forms[form] = mapped(archive.root, make, same, {})
            for form, make in VALUE_FORMS.items():
                changed = []

                def scalar(value, make=make, changed=changed):
                    made = make(value)
                    changed.append(made is not value)
                    return made

                root = mapped(archive.root, same, scalar, {})
                if any(changed):
                    forms[form] = root
            forms.update({form: make(archive.root) for form, make in ROOT_FORMS.items()})
            for form, root in forms.items():
                if root is not None:
                    self.compare(checkpoint, root, archive, f"{os.path.relpath(path, DATA)}, {form}")
                    met[form].add(family)
        for form, names in sorted(met.items()):
            print(f"{form}: {', '.join(sorted(names))}")
        for form in ("pickled again", *tensor_forms(None)):
            self.assertEqual(met[form], families, form)
        self.assertEqual(len(families), 19)  # all but zaremba-tf, whose framework writes no pickles
        for form in ("integers of NumPy", "whole floats", "bools of NumPy", "options as a dict", "options as a Namespace",
                     "options as a DictConfig", "options as a dataclass"):
            self.assertLessEqual({"fairseq", "opennmt"}, met[form], form)

    def test_every_vocabulary_in_every_family(self):
        met = set()
        for path, checkpoint, family in self.families():
            masked = family == "bert"  # without a tokenizer of its own it takes ids only
            tokenizer = [] if masked else ["--tokenizer", "spaces"]

            def convert(form, words, checkpoint=checkpoint, tokenizer=tokenizer):
                vocabulary = os.path.join(self.folder, form)
                with open(vocabulary, "wb") as file:
                    file.write(VOCABULARY_FORMS[form](words))
                model = os.path.join(self.folder, "words.kgl")
                return run("convert", checkpoint, "-o", model, "--vocab", vocabulary, *tokenizer), model

            count = re.search(r"expected (\d+) words", convert("list.txt", ["a", "b"])[0].stderr)
            if not count:  # the checkpoint has its words
                continue
            words = ["<unk>", "<eos>", *(f"w{i}" for i in range(int(count[1]) - 2))]
            expected = None
            for form in VOCABULARY_FORMS:
                made, model = convert(form, words)
                what = f"{os.path.relpath(path, DATA)}, {form}"
                self.assertEqual(made.returncode, 0, f"{what}: {made.stderr}")
                expected = expected or self.described(model)
                self.assertEqual(self.described(model), expected, what)
                if masked:
                    continue
                decoded = subprocess.run([KINGLET, "tokenize", model, "--decode"], capture_output=True, text=True, check=False,
                                         input=" ".join(str(i) for i in range(len(words))))
                self.assertEqual(decoded.returncode, 0, f"{what}: {decoded.stderr}")
                self.assertEqual(json.loads(decoded.stdout)["text"], " ".join(words), what)
            met.add(family)
        print("vocabularies:", ", ".join(sorted(met)))
        self.assertGreaterEqual(len(met), 8)


if __name__ == "__main__":
    sys.argv[1:3] = []
    unittest.main()
