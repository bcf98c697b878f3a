"""NumPy's arrays and integers, of the installed version: 1.x and 2.x convert differently."""

import sys
import tempfile

import kinglet_lm
from support import demo, refused

try:
    import numpy
except ImportError:
    print("not run: NumPy is not installed")
    sys.exit(77)


def main():
    with tempfile.TemporaryDirectory() as folder:
        model = kinglet_lm.Model(demo(folder))
    ids = model.tokenize("the film was a success")
    expected = model.score_stream(ids)
    for kind in ("uint8", "uint16", "int32", "uint32", "int64", "uint64"):
        given = numpy.array(ids).astype(kind)
        if (given == ids).all():
            assert model.score_stream(given) == expected, kind
            assert model.score_stream(numpy.repeat(given, 2)[::2]) == expected, f"strided {kind}"
        session = model.session()
        for word in given:  # its own integers, one by one
            session.step(word)
        assert session.log_probability(numpy.array([7], kind)[0]) == session.log_probability(7)
        assert session.top_k(numpy.array([3], kind)[0]) == session.top_k(3)
    session = model.session()
    session.step(ids[0], lane=numpy.uint32(0))
    session.step(ids[1])  # the cache has an entry, so that probabilities add up to 1
    values = numpy.asarray(session.log_probabilities())
    assert values.dtype == numpy.float32 and values.shape == (len(model.vocabulary),)
    assert abs(numpy.exp(values.astype(float)).sum() - 1) < 1e-4
    out = numpy.empty(len(model.vocabulary), numpy.float32)
    assert session.log_probabilities(out=out) is out and (out == values).all()
    some = numpy.array([5, 33277, 0], numpy.int64)
    assert numpy.allclose(numpy.asarray(session.log_probabilities(some)), values[some], atol=1e-6)
    refused(TypeError, lambda: session.log_probabilities(out=out.astype(float)), "float32")
    refused(TypeError, lambda: session.log_probabilities(out=out[::2]), "contiguous")
    refused(TypeError, lambda: model.score_stream(numpy.array([1.5, 2])))
    refused(TypeError, lambda: session.step(numpy.float32(3)))
    refused(kinglet_lm.Error, lambda: session.step(numpy.int64(-1)))
    refused(kinglet_lm.Error, lambda: session.step(numpy.uint64(2**63)))
    refused(kinglet_lm.Error, lambda: model.score_stream(numpy.array([2**40])))
    refused(kinglet_lm.Error, lambda: model.score_stream(numpy.array([-1])))
    print(f"NumPy {numpy.__version__}: arrays and integers as lists and int")


if __name__ == "__main__":
    sys.exit(main())
