"""Typing: candidates, errors of the person who types, and refusals.

    keyboard_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)
"""

import pickle
import tempfile

import kinglet_lm
from support import demo, refused


def finds_words(model):
    session = model.session()
    session.step(model.vocabulary.id("the"))
    keyboard = model.keyboard()
    keyboard.prepare(session)
    found = keyboard.find(session, "worl", 3)
    assert found[0].text == "world" and found[0].kind == "word" and found[0].cost == 0, found
    expected = session.log_probability(model.vocabulary.id("world"))
    assert abs(found[0].log_probability - expected) < 1e-4
    assert keyboard.complete
    assert keyboard.find(session, "wrold", 1, finished=True)[0].text == "world"
    assert keyboard.find(session, "wrold", 1, finished=True, capitals="all")[0].text == "WORLD"
    touches = [[("w", 0.5), ("e", 2)], "o", "r", "l", [("s", 0.1), ("d", 0.4)]]
    best = keyboard.find(session, touches, 1, finished=True, substitution=float("inf"))[0]
    assert best.text == "world" and abs(best.cost - 0.9) < 1e-12, best
    keyboard.block(["World"])
    assert all(one.text != "world" for one in keyboard.find(session, "world", 9))
    keyboard.block([])
    keyboard.allow(["city"])
    assert [one.text for one in keyboard.find(session, "", 9, capitals="first")] == ["City"]
    keyboard.allow([])
    two = keyboard.find(session, "worldwar", 1, finished=True)[0]
    assert two.text.lower() == "world war" and two.kind == "two_words", two
    keyboard.find(session, "thethethethethethethethe", 3, deadline=1)
    assert not keyboard.complete


def learns_words(model, path):
    session = model.session()
    session.step(model.vocabulary.id("the"))
    keyboard = model.keyboard()
    keyboard.open_words(path)
    assert keyboard.words() == {}
    for word in ("Ringelnatz", "caf\u00e9s", "Ringelnatz"):
        keyboard.learn(word, before="the")
    assert keyboard.words() == {"Ringelnatz": 2, "caf\u00e9s": 1}
    found = keyboard.find(session, "ringe", 1, before="The")[0]
    assert (found.text, found.kind) == ("Ringelnatz", "user_word"), found
    refused(kinglet_lm.ReadFailed, lambda: model.keyboard().open_words(path), "open")
    del keyboard
    keyboard = model.keyboard()
    keyboard.open_words(path)
    assert keyboard.words()["Ringelnatz"] == 2
    keyboard.set_weights(0.3, 0.001)
    assert keyboard.find(session, "ringe", 1, before="The")[0].log_probability > \
        found.log_probability
    assert (keyboard.unlearn("ringelnatz"), keyboard.unlearn("ringelnatz")) == (1, 0)
    assert keyboard.find(session, "ringe", 1)[0].text != "Ringelnatz"
    keyboard.forget()
    assert keyboard.words() == {}
    refused(kinglet_lm.InvalidArgument, lambda: keyboard.learn("two words"), "word")
    refused(kinglet_lm.InvalidArgument, lambda: keyboard.learn("a\0b"), "word")
    refused(kinglet_lm.InvalidArgument, lambda: keyboard.set_weights(1, 0), "weights")


def refuses(model):
    session = model.session()
    keyboard = model.keyboard()
    refused(kinglet_lm.WrongOrder, lambda: keyboard.find(session, "a"), "token")
    session.step(0)
    for options in ({"capitals": "none"}, {"insertion": -1}, {"insertion": float("nan")},
                    {"typo": 1}, {"lane": 1}):
        refused(kinglet_lm.InvalidArgument, lambda given=options: keyboard.find(
            session, "a", **given), "")
    refused(kinglet_lm.InvalidArgument, lambda: keyboard.find(session, ["ab"]), "characters")
    refused(kinglet_lm.InvalidArgument, lambda: keyboard.find(session, "a" * 65), "touches")
    refused(TypeError, lambda: pickle.dumps(keyboard), "keyboard")


def main():
    with tempfile.TemporaryDirectory() as folder:
        model = kinglet_lm.Model(demo(folder))
        finds_words(model)
        learns_words(model, folder + "/words")
        refuses(model)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
