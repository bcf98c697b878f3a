"""What the scripts that make the checkpoints of these folders share."""
import json
import os
import struct
import sys
import types


def named_class(module, name, base=object):
    """A class by the name that a framework's files have; only the attributes of its objects are saved."""
    parts = module.split(".")
    for i in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:i]), types.ModuleType(".".join(parts[:i])))
    made = type(name, (base,), {"__module__": module})
    setattr(sys.modules[module], name, made)
    return made


def bare(kind, **attributes):
    """An object of a class without a constructor of its own."""
    made = kind()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def ids_of(words, count, state=12345):
    """Tokens that repeat, so that a cache has something to find; the last words of the vocabulary are among them."""
    ids = []
    for _ in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        ids.append((state >> 8) % (min(7, words) if state >> 30 else words))
    return ids


def write_lines(folder, files):
    """files: name -> lines."""
    os.makedirs(folder, exist_ok=True)
    for name, lines in files.items():
        with open(os.path.join(folder, name), "w") as out:
            out.writelines(line + "\n" for line in lines)


def write_answers(folder, ids, values):
    """tokens.txt, and golden_f64.tsv of values [tokens, words]: the log-probabilities after each token."""
    golden = ["%d\t%d\t%.15g" % (t + 1, ids[t + 1], values[t][ids[t + 1]]) for t in range(len(ids) - 1)]
    write_lines(folder, {"tokens.txt": [" ".join(map(str, ids))], "golden_f64.tsv": golden})


def write_safetensors(path, tensors, metadata=None, **options):
    """tensors: name -> (type, shape, bytes). The header is padded with blanks, as the format allows."""
    header, at = {"__metadata__": metadata or {"format": "pt"}}, 0
    for name, (kind, shape, data) in tensors.items():
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, **options).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))
