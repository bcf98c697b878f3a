"""What check_words.py finds, and what it lets pass."""

import unittest

import check_words


class WordsTest(unittest.TestCase):
    def found(self, path, text):
        return [line.split(": ", 1)[1] for line in check_words.faults(path, text)]

    def test_each_banned_word_is_found_with_a_better_one(self):
        for text, better in [("the company of frames", "batch"), ("cut the text", "tokenize"), ("nobody asks", "no caller"),
                             ("a plug for Ray", "adapter"), ("a vector of reals", "floats"), ("lies beside it", "next to"),
                             ("measured in turns", "interleaved"), ("the step; none", "returns nullopt"),
                             ("null: none", "returns nullopt"), ("twins", "duplicate"), ("the read floor", "roofline")]:
            with self.subTest(text=text):
                [fault] = self.found("a.md", text)
                self.assertIn(better, fault)

    def test_other_words_pass(self):
        for text in ["std::floor(x)", "adaptive_softmax_cutoff", "a company_name", "the executed plan", "hn::Floor(x)",
                     "in turn", "a plug-in", "none of them", "shortcut", "a floor_ of its own"]:
            with self.subTest(text=text):
                self.assertEqual(self.found("a.md", text), [])

    def test_comments_begin_with_a_noun(self):
        for path, text in [("a.h", "// It runs."), ("a.cc", "int x;  // The same of one stream."), ("a.py", "# This is read."),
                           ("a.py", 'def f():\n    """These are read."""'), ("CMakeLists.txt", "# Such a target."),
                           ("a.cu", "/// Those of a lane.")]:
            with self.subTest(text=text):
                self.assertEqual(len(self.found(path, text)), 1)

    def test_other_comments_and_texts_pass(self):
        for path, text in [("a.h", "// A frame, as read.\n// It goes to the kernel."), ("a.cc", 'f("https://This.is");'),
                           ("a.py", "x = 1  # items"), ("a.md", "This page is not code."), ("a.h", "// Italic text.")]:
            with self.subTest(text=text):
                self.assertEqual(self.found(path, text), [])


if __name__ == "__main__":
    unittest.main()
