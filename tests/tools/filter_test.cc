// kinglet filter: the documents that pass are those that `score --lines` gives a perplexity in
// range.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/transformer_builder.h"
#include "tests/tools/run_command.h"

namespace kinglet::filter_test {
namespace {

// Keeps all documents, whatever their words.
const std::string kAll = " --max-oov 1 --min-tokens 0";

// Documents of 2 to 13 words, and one without words. Some words are not in the model's vocabulary.
std::vector<std::string> Documents(size_t count) {
  std::vector<std::string> documents;
  TestRandom random(7);
  for (size_t i = 0; i < count; ++i) {
    std::string text;
    for (uint64_t words = i == 3 ? 0 : 2 + random.Below(12); words > 0; --words) {
      const uint64_t word = random.Below(24);
      text += (text.empty() ? "" : " ") + (word == 0 ? "the" : "w" + std::to_string(word + 3));
    }
    documents.push_back(text);
  }
  return documents;
}

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

class FilterTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.WriteModel("m.kgl", TinyMicronet({.quantised = true, .cache_capacity = 8}));
    documents_ = Documents(60);
    folder_.Write("a.txt", Joined(documents_));
    folder_.Write("b.txt", Joined({documents_.begin(), documents_.begin() + 9}));
    const auto lines = folder_.Run("score m.kgl --text a.txt --lines --json").Json();
    for (size_t i = 0; i < documents_.size(); ++i) {
      perplexities_.push_back(
          std::exp(-lines[i]["logprob"].get<double>() / lines[i]["tokens"].get<double>()));
    }
    sorted_ = perplexities_;
    std::sort(sorted_.begin(), sorted_.end());
  }
  std::string Passing(double least, double most) const {
    std::string text;
    for (size_t i = 0; i < documents_.size(); ++i) {
      if (perplexities_[i] >= least && perplexities_[i] <= most) text += documents_[i] + "\n";
    }
    return text;
  }
  CommandFolder folder_;
  std::vector<std::string> documents_;
  std::vector<double> perplexities_, sorted_;
};

TEST_F(FilterTest, KeepsWhatScoreSays) {
  // Between two documents: printed numbers are rounded.
  const double low = (sorted_[9] + sorted_[10]) / 2, high = (sorted_[39] + sorted_[40]) / 2;
  const std::string limits =
      kAll + " --min-ppl " + std::to_string(low) + " --max-ppl " + std::to_string(high);
  const std::string expected = Passing(low, high);
  for (const char* form : {"", " --lanes 7", " --lanes 64 --threads 2", " --backend ref"}) {
    EXPECT_EQ(folder_.Run("filter m.kgl a.txt" + limits + form).out, expected) << form;
    EXPECT_EQ(folder_.Run("filter m.kgl" + limits + form, folder_.Read("a.txt")).out, expected);
  }
  EXPECT_EQ(folder_.Run("filter m.kgl a.txt --max-ppl 1").out, "");
  EXPECT_EQ(folder_.Run("filter m.kgl --max-ppl 1", "").exit_status, 0);
}

TEST_F(FilterTest, ADashIsStandardInputAndIsReadOnce) {
  const std::string text = folder_.Read("a.txt");
  EXPECT_EQ(folder_.Run("filter m.kgl b.txt - --max-ppl 1e9", text).out,
            folder_.Run("filter m.kgl b.txt a.txt --max-ppl 1e9").out);
  EXPECT_EQ(folder_.Run("filter m.kgl a.txt --percentile 50 --reference -", text).out,
            folder_.Run("filter m.kgl a.txt --percentile 50").out);
  for (const char* twice :
       {"- - --max-ppl 9", "--percentile 50 -", "a.txt - --percentile 50",
        "--percentile 50 --reference -", "- --max-ppl 9 -o folder", "--max-ppl 9 -o folder"}) {
    const Outcome outcome = folder_.Run("filter m.kgl " + std::string(twice), text);
    EXPECT_TRUE(outcome.IsRefusal()) << twice << ": " << outcome.error;
    EXPECT_NE(outcome.error.find("standard input"), std::string::npos) << outcome.error;
  }
}

TEST_F(FilterTest, PercentilesAreNearestRanks) {
  for (const auto& [percent, rank] : std::vector<std::pair<const char*, size_t>>{
           {"25", 15}, {"26", 16}, {"100", 60}, {"0", 1}, {"0.5", 1}}) {
    const Outcome outcome =
        folder_.Run("filter m.kgl a.txt --rank-by ppl --percentile " + std::string(percent) + kAll);
    EXPECT_EQ(outcome.out, Passing(0, sorted_[rank - 1] * (1 + 1e-7))) << percent;
  }
  EXPECT_EQ(folder_
                .Run("filter m.kgl --rank-by ppl --percentile 25 --reference a.txt" + kAll,
                     folder_.Read("b.txt"))
                .out,
            folder_
                .Run("filter m.kgl --max-ppl " + std::to_string((sorted_[14] + sorted_[15]) / 2) +
                     " b.txt" + kAll)
                .out);
}

TEST_F(FilterTest, JsonLinesStayAsTheyAre) {
  const std::string first = R"({ "id":1.50, "body":"the w5\nw6 \u0077\u0037", "x":[{"body":3}]} )";
  const std::string second = R"({"body":""})";
  folder_.Write("d.jsonl", first + "\r\n" + second);
  EXPECT_EQ(folder_.Run("filter m.kgl d.jsonl --field body --max-ppl 1e9" + kAll).out,
            first + "\r\n" + second + "\n");
  const auto added = folder_.Run("filter m.kgl d.jsonl --field body --annotate").Json();
  ASSERT_EQ(added.size(), 2u);
  EXPECT_EQ(added[0]["id"], 1.5);
  EXPECT_EQ(added[0]["kinglet"]["tokens"], 6);  // 4 words, the newline, the end
  EXPECT_EQ(added[1]["kinglet"]["tokens"], 1);
  // A newline is the token for the end of a line.
  const auto plain = folder_.Run("filter m.kgl --annotate", "the w5 <eos> w6 w7\n\n").Json();
  EXPECT_EQ(plain[0]["text"], "the w5 <eos> w6 w7");
  EXPECT_EQ(plain[0]["kinglet"]["nll"], added[0]["kinglet"]["nll"]);
  EXPECT_EQ(plain[1]["kinglet"], added[1]["kinglet"]);
  const double nll = plain[0]["kinglet"]["nll"].get<double>();
  EXPECT_NEAR(plain[0]["kinglet"]["ppl"].get<double>(), std::exp(nll), 1e-5);
}

TEST_F(FilterTest, BadLinesAreNamedOrCounted) {
  for (const std::string bad : {"text", "{", "[1]", R"({"body":3})", R"({"other":"the"})", "",
                                R"({"body":"the"} x)", "{\"body\":\"\xff\"}", R"("body")"}) {
    folder_.Write("d.jsonl", "{\"body\":\"the\"}\n" + bad + "\n{\"body\":\"w5\"}\n");
    const Outcome refused = folder_.Run("filter m.kgl d.jsonl --field body --max-ppl 1e9");
    EXPECT_EQ(refused.exit_status, 1) << bad;
    EXPECT_EQ(refused.error.find("kinglet: d.jsonl: line 2: expected "), 0u) << refused.error;
    const Outcome skipped =
        folder_.Run("filter m.kgl d.jsonl --field body --max-ppl 1e9 --skip-bad" + kAll);
    EXPECT_EQ(skipped.exit_status, 0) << bad;
    EXPECT_EQ(skipped.out, "{\"body\":\"the\"}\n{\"body\":\"w5\"}\n") << bad;
    EXPECT_EQ(
        skipped.error.find("kinglet: 1 bad lines were omitted\nkinglet: 2 of 2 documents were "
                           "written\nkinglet: bits_per_byte: median "),
        0u)
        << skipped.error;
  }
}

TEST_F(FilterTest, AFolderIsFilledFileByFile) {
  const std::string run = "filter m.kgl a.txt b.txt --percentile 50 -o out" + kAll;
  EXPECT_EQ(folder_.Run(run).exit_status, 0);
  const std::string a = folder_.Read("out/a.txt"), b = folder_.Read("out/b.txt");
  EXPECT_FALSE(a.empty());
  EXPECT_EQ(folder_.Run("filter m.kgl a.txt b.txt --percentile 50" + kAll).out, a + b);
  const std::string state = folder_.Read("out/kinglet-filter.json");
  // What is done stays; what is not is done. A run killed before the rename leaves these files.
  ASSERT_EQ(folder_.RunShell("rm out/b.txt; echo half > out/kinglet-filter.b.txt.part").exit_status,
            0);
  const Outcome resumed = folder_.Run(run);
  EXPECT_EQ(resumed.error.find("kinglet: out/a.txt is done\nkinglet: "), 0u) << resumed.error;
  EXPECT_EQ(folder_.Read("out/b.txt"), b);
  EXPECT_EQ(folder_.Read("out/kinglet-filter.json"), state);
  EXPECT_EQ(folder_.RunShell("ls out").out, "a.txt\nb.txt\nkinglet-filter.json\n");
  const Outcome other = folder_.Run("filter m.kgl a.txt --max-ppl 3 -o out");
  EXPECT_EQ(other.exit_status, 1);
  EXPECT_NE(other.error.find("the run that began this folder"), std::string::npos) << other.error;
}

// A result counts as done if this run made it of the file as it is now.
TEST_F(FilterTest, OnlyItsOwnResultsOfTheSameFilesAreDone) {
  const std::string run = "filter m.kgl a.txt b.txt --max-ppl 1e9 -o out";
  ASSERT_EQ(folder_.Run(run).exit_status, 0);
  // As many bytes as before.
  std::string changed = folder_.Read("b.txt");
  changed[changed.find('w')] = 'T';
  folder_.Write("b.txt", changed);
  const Outcome again = folder_.Run(run);
  EXPECT_EQ(again.exit_status, 0) << again.error;
  EXPECT_EQ(again.error.find("kinglet: out/a.txt is done\nkinglet: b.txt has changed since: it is "
                             "filtered again\n"),
            0u)
      << again.error;
  EXPECT_EQ(folder_.Read("out/b.txt"), folder_.Run("filter m.kgl b.txt --max-ppl 1e9").out);
  // A line of the state that was not finished is not one.
  folder_.RunShell("truncate -s -20 out/kinglet-filter.json; rm out/b.txt");
  EXPECT_EQ(folder_.Run(run).exit_status, 0);
  const Outcome done = folder_.Run(run);
  EXPECT_EQ(done.error.find("kinglet: out/a.txt is done\nkinglet: out/b.txt is done\n"), 0u)
      << done.error;

  folder_.RunShell(
      "mkdir -p in other; cp a.txt in/kinglet-filter.json; cp a.txt in/x.txt; gzip -k a.txt; "
      "echo mine > other/a.txt; echo mine >> out/a.txt");
  for (const auto& [arguments, part] : std::initializer_list<std::pair<const char*, const char*>>{
           {"a.txt b.txt -o out", "out/a.txt: expected no file, or the result that a run"},
           {"a.txt -o other", "other/a.txt: expected no file, or the result that a run"},
           {"in/x.txt -o in", "in: expected a folder without the FILES, found in/x.txt in it"},
           {"in/kinglet-filter.json -o new", "a name that does not begin with kinglet-filter."},
           {"a.txt a.txt.gz -o new", "files of different names"}}) {
    const Outcome refused = folder_.Run("filter m.kgl --max-ppl 1e9 " + std::string(arguments));
    EXPECT_NE(refused.exit_status, 0) << arguments;
    EXPECT_TRUE(refused.IsRefusal()) << refused.error;
    EXPECT_NE(refused.error.find(part), std::string::npos) << refused.error;
  }
  EXPECT_EQ(folder_.Read("other/a.txt"), "mine\n");
  EXPECT_EQ(folder_.RunShell("ls in").out, "kinglet-filter.json\nx.txt\n");
}

TEST_F(FilterTest, PackedDocumentsAreReadAndDamageKeepsNothing) {
  const std::string all = " --max-ppl 1e9" + kAll;
  const std::string expected = folder_.Read("a.txt");
  folder_.RunShell("gzip -k a.txt; head -c 100 a.txt.gz > truncated.gz");
  EXPECT_EQ(folder_.Run("filter m.kgl a.txt.gz" + all).out, expected);
  EXPECT_EQ(folder_.RunShell("kinglet filter m.kgl < a.txt.gz" + all).out, expected);
  ASSERT_EQ(folder_.Run("filter m.kgl a.txt.gz -o out" + all).exit_status, 0);
  EXPECT_EQ(folder_.Read("out/a.txt"), expected);
  const Outcome truncated = folder_.Run("filter m.kgl truncated.gz -o out" + all);
  EXPECT_EQ(truncated.exit_status, 1);
  EXPECT_NE(truncated.error.find("truncated.gz: byte 100: expected more gzip data"),
            std::string::npos)
      << truncated.error;
  EXPECT_EQ(folder_.RunShell("ls out").out, "a.txt\nkinglet-filter.json\n");
}

// Its end alone is what a model expects best, and unknown words share one probability.
TEST_F(FilterTest, DocumentsWithoutWordsDoNotPass) {
  const std::string good = "the w5 w6 w7 w8";
  const std::string text = "\n" + good + "\nw5\nxq zz vk jj\n" + good + " zz\n";
  const Outcome kept = folder_.Run("filter m.kgl --max-ppl 1e9", text);
  EXPECT_EQ(kept.out, good + "\n" + good + " zz\n");
  EXPECT_EQ(kept.error.find("kinglet: 2 of 5 documents were written; omitted: 2 for few tokens "
                            "(--min-tokens 3), 1 for unknown words (--max-oov 0.2)\n"),
            0u)
      << kept.error;
  EXPECT_EQ(folder_.Run("filter m.kgl --max-oov 0.1", text).out, good + "\n");
  EXPECT_EQ(folder_.Run("filter m.kgl --min-tokens 2 --max-oov 1", text).out, text.substr(1));
  EXPECT_EQ(folder_.Run("filter m.kgl --max-ppl 1e9" + kAll, text).out, text);
  const Outcome two = folder_.Run("filter m.kgl --max-ppl 1.5", text);
  EXPECT_NE(two.error.find("(--max-oov 0.2), 2 for their perplexity\n"), std::string::npos)
      << two.error;
  // Percentiles are those of the documents that stay.
  folder_.Write("c.txt", text);
  EXPECT_EQ(folder_.Run("filter m.kgl c.txt --percentile 100").out, kept.out);
  // Without a bound nothing is omitted.
  EXPECT_EQ(folder_.Run("filter m.kgl --annotate", text).Json().size(), 5u);
  EXPECT_EQ(folder_.Run("filter m.kgl --annotate --max-oov 0", text).Json().size(), 1u);
}

// A second look at a pipe finds nothing.
TEST_F(FilterTest, APipeIsReadOnce) {
  EXPECT_EQ(
      folder_.RunShell("cat a.txt | kinglet filter m.kgl /dev/stdin --max-ppl 1e9" + kAll).out,
      folder_.Read("a.txt"));
  EXPECT_EQ(folder_
                .RunShell("cat a.txt | kinglet filter m.kgl b.txt --percentile 50 --reference "
                          "/dev/stdin")
                .out,
            folder_.Run("filter m.kgl b.txt --percentile 50 --reference a.txt").out);
  for (const std::string twice : {"--percentile 50", "--max-ppl 9 -o folder"}) {
    const Outcome refused =
        folder_.RunShell("cat a.txt | kinglet filter m.kgl /dev/stdin " + twice);
    EXPECT_EQ(refused.exit_status, 2);
    EXPECT_TRUE(refused.IsRefusal()) << refused.error;
    EXPECT_NE(refused.error.find("/dev/stdin: expected a file, as it is read twice, found a pipe"),
              std::string::npos)
        << refused.error;
  }
}

TEST_F(FilterTest, KilledAndStartedAgainNothingIsLost) {
  std::string files;
  for (int i = 0; i < 12; ++i) {
    const std::string name = "part" + std::to_string(i);
    folder_.Write(name, Joined(Documents(20 + 31 * static_cast<size_t>(i))));
    files += " " + name;
  }
  const std::string run = "filter m.kgl" + files + " --max-ppl 24 --backend ref" + kAll;
  const std::string expected = folder_.Run(run).out;
  // A tenth of a second holds several files here; each run continues where the last was killed.
  for (int kill = 0; kill < 10; ++kill) {
    folder_.RunShell("timeout -s KILL 0.0" + std::to_string(2 + 3 * (kill % 3)) + " kinglet " +
                     run + " -o out 2> /dev/null");
    const Outcome parts = folder_.RunShell("ls out 2> /dev/null | grep -c '^part[0-9]*$'");
    EXPECT_FALSE(parts.out.empty());
  }
  EXPECT_EQ(folder_.Run(run + " -o out").exit_status, 0);
  EXPECT_EQ(folder_.RunShell("cd out && cat" + files).out, expected);
  EXPECT_EQ(folder_.RunShell("ls out | grep -c part$").out, "0\n");
}

// A model with 5 positions. `score` splits the same stream into the same blocks.
TEST_F(FilterTest, OnlyAbsolutePositionsSplitDocuments) {
  ModelDraft draft = TinyTransformer({.positions = TinyPositions::kAbsolute});
  draft.vocabulary = {"<eos>"};
  while (draft.vocabulary.size() < 17) {
    draft.vocabulary.push_back("w" + std::to_string(draft.vocabulary.size()));
  }
  folder_.WriteModel("absolute.kgl", draft);
  const std::string document = "w4 w5 w6 w7 w8 w9 w10 w11 w12 w13 w4 w5 w6";
  folder_.Write("long.txt", document + "\n" + "w4\n");
  folder_.Write("stream.txt", "<eos> " + document + "\n");
  for (const std::string blocks : {"--block 5", "--block 4 --context 2", "--block 1"}) {
    const auto found =
        folder_.Run("filter absolute.kgl long.txt --annotate --lanes 2 " + blocks).Json();
    ASSERT_EQ(found.size(), 2u);
    const auto expected =
        folder_.Run("score absolute.kgl --text stream.txt --json " + blocks).Json().back();
    EXPECT_EQ(found[0]["kinglet"]["tokens"], 14);
    EXPECT_NEAR(found[0]["kinglet"]["nll"].get<double>(), expected["nll"].get<double>(), 1e-7);
    if (blocks != "--block 5") continue;
    EXPECT_EQ(folder_.Run("filter absolute.kgl long.txt --annotate").Json(), found);
  }
  EXPECT_EQ(folder_.Run("filter absolute.kgl long.txt --annotate --block 6").exit_status, 1);
  EXPECT_EQ(
      folder_.Run("filter absolute.kgl long.txt --annotate --block 4 --context 4").exit_status, 1);
  EXPECT_EQ(folder_.Run("filter m.kgl long.txt --annotate --block 4").exit_status, 1);
}

// One pass makes scores from which any percentile is taken, with the bytes of one step.
TEST_F(FilterTest, ScoresAreMadeOnceAndUsedAgain) {
  const Outcome scored = folder_.Run("filter m.kgl a.txt b.txt --scores-out s --lanes 3");
  ASSERT_EQ(scored.exit_status, 0) << scored.error;
  EXPECT_EQ(scored.out, "");
  EXPECT_EQ(scored.error.find("kinglet: 69 documents were scored into s\n"), 0u) << scored.error;
  for (const std::string bound :
       {"--percentile 30", "--percentile 70 --rank-by ppl_per_word", "--max-ppl 24 --max-oov 1",
        "--annotate", "--percentile 50 --annotate --max-oov 1"}) {
    const Outcome once = folder_.Run("filter m.kgl a.txt b.txt " + bound);
    const Outcome twice = folder_.Run("filter m.kgl a.txt b.txt --cut-from s " + bound);
    EXPECT_FALSE(once.out.empty()) << bound;
    EXPECT_EQ(twice.out, once.out) << bound << twice.error;
  }
  // Every file of the folder counts, whichever are written.
  std::string expected = folder_.Run("filter m.kgl a.txt b.txt --percentile 30").out;
  EXPECT_EQ(folder_.Run("filter m.kgl a.txt --cut-from s --percentile 30").out +
                folder_.Run("filter m.kgl b.txt --cut-from s --percentile 30").out,
            expected);
  const auto summary =
      folder_
          .RunShell(
              "kinglet filter m.kgl a.txt b.txt --cut-from s --percentile 30 --json 2>&1 "
              ">/dev/null")
          .Json();
  ASSERT_EQ(summary.size(), 1u);
  EXPECT_EQ(summary[0]["documents"], 69);
  EXPECT_EQ(summary[0]["kept"], std::count(expected.begin(), expected.end(), '\n'));
  EXPECT_GT(summary[0]["cut"].get<double>(), summary[0]["median_kept"].get<double>());
  EXPECT_GT(summary[0]["median"].get<double>(), summary[0]["median_kept"].get<double>());
}

// A killed run leaves the lines of any moment; the next one continues to the bytes of one run.
TEST_F(FilterTest, ScoresAreContinuedInsideAFile) {
  const std::string run = "filter m.kgl a.txt --scores-out s";
  ASSERT_EQ(folder_.Run(run).exit_status, 0);
  const std::string whole = folder_.Read("s/a.txt.scores.jsonl");
  const std::string again = folder_.Run(run).error;
  EXPECT_EQ(again.find("kinglet: a.txt is scored\n"), 0u) << again;
  for (size_t kill = 0; kill < 20; ++kill) {
    folder_.RunShell("rm s/*");
    folder_.Write("s/kinglet-scores.a.txt.part", whole.substr(0, whole.size() * kill / 19));
    const Outcome unfinished = folder_.Run("filter m.kgl a.txt --cut-from s --percentile 3");
    EXPECT_NE(unfinished.error.find("s: expected complete scores"), std::string::npos);
    EXPECT_EQ(folder_.Run(run).exit_status, 0);
    EXPECT_EQ(folder_.Read("s/a.txt.scores.jsonl"), whole) << kill;
    EXPECT_EQ(folder_.RunShell("ls s").out, "a.txt.scores.jsonl\n");
  }
  // Damaged lines are scored again, and so is a file that has changed.
  folder_.RunShell("rm s/*");
  std::string damaged = whole.substr(0, whole.size() / 2);
  damaged[whole.size() / 4] = '\0';
  folder_.Write("s/kinglet-scores.a.txt.part", damaged);
  EXPECT_EQ(folder_.Run(run).exit_status, 0);
  EXPECT_EQ(folder_.Read("s/a.txt.scores.jsonl"), whole);
  folder_.Write("a.txt", folder_.Read("a.txt") + "the w5\n");
  const Outcome changed = folder_.Run("filter m.kgl a.txt --cut-from s --percentile 3");
  EXPECT_NE(changed.error.find("scores of a.txt as it is now"), std::string::npos) << changed.error;
  EXPECT_EQ(folder_.Run(run).exit_status, 0);
  EXPECT_EQ(folder_.Run("filter m.kgl a.txt --cut-from s --percentile 30").out,
            folder_.Run("filter m.kgl a.txt --percentile 30").out);
  folder_.Write("s/a.txt.scores.jsonl", whole.substr(0, whole.size() - 9));
  EXPECT_NE(folder_.Run("filter m.kgl a.txt --cut-from s --percentile 3").exit_status, 0);
}

TEST_F(FilterTest, ProcessesShareAFolderOfScores) {
  std::string files;
  for (int i = 0; i < 6; ++i) {
    folder_.Write("part" + std::to_string(i), Joined(Documents(150)));
    files += " part" + std::to_string(i);
  }
  const std::string run = "kinglet filter m.kgl" + files + " --scores-out ";
  ASSERT_EQ(folder_.RunShell(run + "one").exit_status, 0);
  const Outcome both = folder_.RunShell("(" + run + "s; echo $?) 2> first & " + run +
                                        "s 2> second; echo $?; wait; diff -r one s");
  EXPECT_EQ(both.out, "0\n0\n") << both.error;
}

// Unknown words have one probability; their letters tell likely names from letters at random.
TEST_F(FilterTest, UnknownWordsCostTheirLetters) {
  folder_.Write("u.txt",
                "the w5 w6 w7\nthe w5 w66 w7\nthe w5 qxkjzvpq w7\nthe w5 \u0449\u0438 w7\n");
  const auto found = folder_.Run("filter m.kgl u.txt --annotate").Json();
  ASSERT_EQ(found.size(), 4u);
  const auto of = [&](size_t i, const char* key) { return found[i]["kinglet"][key].get<double>(); };
  EXPECT_EQ(of(1, "ppl"), of(2, "ppl"));
  EXPECT_GT(of(2, "bits_per_byte"), of(1, "bits_per_byte"));
  EXPECT_GT(of(3, "ppl_per_word"), of(1, "ppl_per_word"));
  // Without unknown words they are those of score.
  folder_.Write("k.txt", "the w5 w6 w7\n");
  const auto score = folder_.Run("score m.kgl --text k.txt --lines --json").Json().back();
  for (const char* key : {"bits_per_byte", "ppl_per_word", "ppl"}) {
    EXPECT_NEAR(of(0, key), score[key].get<double>(), 1e-6) << key;
  }
  // Without the unknown words: those of score, too.
  folder_.Write("p.txt", "the w5 w66 w7 qx\n");
  const auto of_score = folder_.Run("score m.kgl --text p.txt --lines --json").Json().back();
  const auto part = folder_.Run("filter m.kgl p.txt --annotate").Json()[0]["kinglet"];
  EXPECT_EQ(part["oov"], 2);
  EXPECT_NEAR(part["ppl_without_oov"].get<double>(), of_score["ppl_without_oov"].get<double>(),
              1e-6);
  EXPECT_EQ(of(1, "ppl_without_oov"), of(2, "ppl_without_oov"));
  EXPECT_EQ(of(0, "ppl_without_oov"), of(0, "ppl"));
  // The whole loss is the network's and the letters'.
  const auto scored = folder_.Run("filter m.kgl u.txt --scores-out s");
  ASSERT_EQ(scored.exit_status, 0) << scored.error;
  const auto line = nlohmann::json::parse(folder_.RunShell("sed -n 4p s/u.txt.scores.jsonl").out);
  const double bits =
      (line["nll_sum"].get<double>() + line["spelling"].get<double>()) / std::log(2);
  EXPECT_NEAR(of(2, "bits_per_byte"), bits / 19, 1e-6);
  EXPECT_EQ(line["bytes"], 19);
  // Letters at random come last though all documents may pass.
  EXPECT_EQ(folder_.Run("filter m.kgl u.txt --percentile 50 --max-oov 1").out,
            "the w5 w6 w7\nthe w5 w66 w7\n");
}

TEST_F(FilterTest, BucketsDivideDocuments) {
  const Outcome made = folder_.Run("filter m.kgl a.txt b.txt --buckets 30,60 -o out" + kAll);
  ASSERT_EQ(made.exit_status, 0) << made.error;
  const auto count = [&](const std::string& path) {
    const std::string text =
        folder_.Read("out/" + path + "/a.txt") + folder_.Read("out/" + path + "/b.txt");
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(count("head"), 21);  // the nearest rank of 69 documents
  EXPECT_EQ(count("head") + count("middle"), 42);
  EXPECT_EQ(count("head") + count("middle") + count("tail"), 69);
  EXPECT_EQ(folder_.Read("out/head/a.txt") + folder_.Read("out/head/b.txt"),
            folder_.Run("filter m.kgl a.txt b.txt --percentile 30" + kAll).out);
  const auto lines =
      folder_.Run("filter m.kgl a.txt b.txt --buckets 30,60 --annotate" + kAll).Json();
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const auto& line) { return line["kinglet"]["bucket"] == "head"; }),
            21);
  EXPECT_EQ(folder_.Run("filter m.kgl a.txt b.txt --buckets 30,60 -o out" + kAll)
                .error.find("kinglet: out/head/a.txt is done\n"),
            0u);
}

// The network scores what the n-gram model ranks best; the other documents count, and rank last.
TEST_F(FilterTest, AnNgramModelComesFirst) {
  std::string words = "-2\t<unk>\n-99\t<s>\n-1\t</s>\n-0.7\tthe\n";
  for (int i = 3; i < 30; ++i)
    words += "-1." + std::to_string(i) + "\tw" + std::to_string(i) + "\n";
  folder_.Write("m.arpa", "\\data\\\nngram 1=31\n\n\\1-grams:\n" + words + "\n\\end\\\n");
  ASSERT_EQ(folder_.Run("ngram m.arpa -o m.kng").exit_status, 0);
  const auto lines = folder_.Run("ngram m.kng --text a.txt --json").Json();
  const auto annotated = folder_.Run("filter m.kgl a.txt --annotate").Json();
  std::vector<double> ngram, network;
  for (size_t i = 0; i < documents_.size(); ++i) {
    ngram.push_back(-lines[i]["logprob"].get<double>() /
                    static_cast<double>(documents_[i].size() + 1));
    network.push_back(annotated[i]["kinglet"]["bits_per_byte"].get<double>());
  }
  std::vector<double> order = ngram;
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < documents_.size(); ++i) {
    if (ngram[i] > order[35] + 1e-9) network[i] = INFINITY;  // 60 percent of 60 documents stay
  }
  order = network;
  std::sort(order.begin(), order.end());
  std::string some, best;
  for (size_t i = 0; i < documents_.size(); ++i) {
    if (!std::isinf(network[i])) some += documents_[i] + "\n";
    if (network[i] <= order[17]) best += documents_[i] + "\n";
  }
  const std::string run = "filter m.kgl a.txt --stage1 m.kng --keep 60" + kAll;
  const Outcome kept = folder_.Run(run);
  EXPECT_EQ(kept.out, some) << kept.error;
  EXPECT_NE(kept.error.find("omitted: 24 by the n-gram model (--keep 60)"), std::string::npos);
  EXPECT_EQ(folder_.Run(run + " --percentile 30").out, best);
  EXPECT_EQ(folder_.Run(run + " --percentile 100").out, some);
  ASSERT_EQ(folder_.Run(run + " --buckets 30,90 -o out").exit_status, 0);
  EXPECT_EQ(folder_.Read("out/head/a.txt"), best);
  const std::string tail = folder_.Read("out/tail/a.txt");
  EXPECT_EQ(std::count(tail.begin(), tail.end(), '\n'), 24);
}

// Each value's documents get what a run of their own with their model gives, in the input's order.
TEST_F(FilterTest, AMemberChoosesTheModel) {
  folder_.WriteModel("other.kgl", TinyMicronet({.cache_capacity = 2}));
  folder_.Write("models.json", R"({"en":"m.kgl","de":"other.kgl","at":"./other.kgl"})");
  const std::map<std::string, std::string> models = {
      {"en", "m.kgl"}, {"de", "other.kgl"}, {"at", "other.kgl"}, {"fi", ""}};
  std::map<std::string, std::string> own;
  std::string all;
  auto next = models.begin();
  for (const std::string& document : documents_) {
    const std::string& value = next->first;
    const std::string line = R"({"x":{"language":3},"text":")" + document +
                             R"(","about":{"x":[{"language":"no"}],"language":")" + value +
                             "\"}}\n";
    all += line;
    own[value] += line;
    if (++next == models.end()) next = models.begin();
  }
  folder_.Write("all.jsonl", all);
  folder_.Write("none.jsonl", own["fi"]);
  const std::string run = "filter all.jsonl --field text --route about.language=models.json";
  const auto sorted = [](const std::string& lines) {
    std::vector<std::string> parts;
    std::istringstream stream(lines);
    for (std::string line; std::getline(stream, line);) parts.push_back(line);
    std::sort(parts.begin(), parts.end());
    return parts;
  };
  ASSERT_EQ(folder_.Run(run + " --scores-out s --unrouted drop").exit_status, 0);
  for (const std::string bound :
       {"--percentile 40", "--max-ppl 24", "--annotate", "--buckets 30,60 --annotate"}) {
    std::string expected;
    for (const auto& [value, model] : models) {
      folder_.Write("own.jsonl", own[value]);
      if (model.empty()) continue;
      const std::string part =
          folder_.Run("filter " + model + " own.jsonl --field text " + bound + kAll).out;
      expected += part;
    }
    EXPECT_FALSE(expected.empty());
    const std::string options = " --unrouted drop " + bound + kAll;
    const std::string found = folder_.Run(run + options + " --lanes 3").out;
    EXPECT_EQ(sorted(found), sorted(expected)) << bound;
    EXPECT_EQ(folder_.Run(run + options + " --cut-from s").out, found) << bound;
  }
  // Documents without a model are refused, dropped, or kept where they are.
  const Outcome refused = folder_.Run(run + " --max-ppl 1e9");
  EXPECT_TRUE(refused.IsRefusal()) << refused.error;
  EXPECT_NE(refused.error.find("all.jsonl: line 4: expected a text \"about.language\" that has a "
                               "model in models.json (--unrouted keeps or drops others), found "
                               "\"fi\""),
            std::string::npos)
      << refused.error;
  EXPECT_EQ(folder_.Run(run + " --max-ppl 1e9 --unrouted keep" + kAll).out, all);
  EXPECT_EQ(folder_.Run(run + " --max-ppl 1e-9 --unrouted keep" + kAll).out, own["fi"]);
  const auto kept = folder_.Run(run + " --annotate --unrouted keep").Json();
  ASSERT_EQ(kept.size(), 60u);
  EXPECT_TRUE(kept[3]["kinglet"].is_null());
  ASSERT_EQ(folder_.Run(run + " --buckets 50 --unrouted keep -o out" + kAll).exit_status, 0);
  EXPECT_EQ(folder_.Read("out/unrouted/all.jsonl"), own["fi"]);
  // A value has to be among those that were ranked.
  folder_.Write("at.jsonl", own["at"]);
  const Outcome unranked =
      folder_.Run(run + " --unrouted drop --percentile 50 --reference at.jsonl" + kAll);
  EXPECT_NE(unranked.error.find("some documents of at.jsonl have, too, found \"de\""),
            std::string::npos)
      << unranked.error;
  const auto refuse = [&](const std::string& arguments, const std::string& part) {
    const Outcome outcome = folder_.Run("filter all.jsonl --annotate " + arguments);
    EXPECT_TRUE(outcome.IsRefusal()) << outcome.error;
    EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
  };
  refuse("--field text --route language", "expected NAME=MODELS.json");
  refuse("--route language=models.json", "expected --field NAME");
  refuse("--field text --route language=missing.json", "missing.json: open");
  refuse("m.kgl --field text --unrouted keep", "--route with --unrouted");
  for (const std::string wrong :
       {"{}", "[]", "3", R"({"en":3})", R"({"en":"m.kgl","en":"m.kgl"})", "{\"en\":", ""}) {
    folder_.Write("wrong.json", wrong);
    refuse("--field text --route language=wrong.json",
           "--route: wrong.json: expected an object of texts");
  }
}

// The records of a WET file by warcio are the objects that warcio reads (data/warc/make.py).
TEST_F(FilterTest, RecordsBecomeObjects) {
  const std::string data = KINGLET_TEST_DATA "/warc/sample";
  const std::string all = " --field text --annotate";
  const auto expected = folder_.Run("filter m.kgl " + data + ".jsonl" + all).Json();
  EXPECT_EQ(folder_.Run("filter m.kgl " + data + ".warc.wet.gz" + all).Json(), expected);
  EXPECT_EQ(expected.size(), 4u);
  const std::string whole = folder_.RunShell("gzip -dc " + data + ".warc.wet.gz").out;
  // Another type of record, other bytes, a truncated record.
  const size_t other = whole.find("WARC-Type: conversion", whole.size() / 2);
  const size_t again = whole.rfind("WARC/1.0");
  ASSERT_LT(other, whole.size());
  folder_.Write("o.wet", std::string(whole).replace(other, 21, "WARC-Type: response"));
  folder_.Write("b.wet", std::string(whole).replace(again, 4, "warc"));
  folder_.Write("t.wet", whole.substr(0, whole.size() - 9));
  folder_.Write("plain.wet", whole);
  const auto refuse = [&](const std::string& arguments, const std::string& part) {
    const Outcome outcome = folder_.Run("filter m.kgl --max-ppl 1 " + arguments);
    EXPECT_TRUE(outcome.IsRefusal()) << outcome.error;
    EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
  };
  refuse("plain.wet", "plain.wet: first bytes: expected --field text");
  refuse("o.wet --field text",
         "expected a record of type conversion, as WET files have "
         "(--skip-bad omits others), found response");
  refuse("b.wet --field text", "expected a record, which begins with WARC/1.0, found \"warc/1.0");
  refuse("t.wet --field text", "expected the whole record, found the end within it");
  EXPECT_EQ(folder_.Run("filter m.kgl o.wet --skip-bad" + all).Json().size(), 3u);
  const std::string bounded = "filter m.kgl plain.wet --skip-bad --max-line 100" + all;
  EXPECT_EQ(folder_.Run(bounded).Json().size(), 3u);
}

// Rules of CCNet and datatrove are tested with converters/texts/corpus_text.h.
TEST_F(FilterTest, TextsAreRewrittenForScores) {
  folder_.Write("r.jsonl", "{\"text\":\"The W5\\u0301 1,5\\n\u2014\"}\n");
  for (const auto& [rules, text] :
       {std::pair("ccnet", "the w0 0,0\\n - "), std::pair("datatrove", "the w0 0\\n - ")}) {
    const std::string run = " --field text --annotate --normalise ";
    const auto found = folder_.Run("filter m.kgl r.jsonl" + run + rules).Json();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0]["text"], "The W5\u0301 1,5\n\u2014");
    folder_.Write("e.jsonl", "{\"text\":\"" + std::string(text) + "\"}\n");
    const auto expected = folder_.Run("filter m.kgl e.jsonl --field text --annotate").Json();
    EXPECT_EQ(found[0]["kinglet"], expected[0]["kinglet"]);
  }
}

TEST_F(FilterTest, ResultsArePacked) {
  const std::string run = "filter m.kgl a.txt b.txt --percentile 50 -o ";
  ASSERT_EQ(folder_.Run(run + "plain").exit_status, 0);
  ASSERT_EQ(folder_.Run(run + "gz --pack gz").exit_status, 0);
  ASSERT_EQ(folder_.Run(run + "zst --pack zst").exit_status, 0);
  EXPECT_EQ(folder_.RunShell("ls gz zst").out,
            "gz:\na.txt.gz\nb.txt.gz\nkinglet-filter.json\n\n"
            "zst:\na.txt.zst\nb.txt.zst\nkinglet-filter.json\n");
  for (const std::string name : {"a.txt", "b.txt"}) {
    EXPECT_EQ(folder_.RunShell("gzip -dc gz/" + name + ".gz").out, folder_.Read("plain/" + name));
    EXPECT_EQ(folder_.Run("filter m.kgl --max-ppl 1e9 zst/" + name + ".zst" + kAll).out,
              folder_.Read("plain/" + name));
  }
  EXPECT_EQ(folder_.Run(run + "gz --pack gz").error.find("kinglet: gz/a.txt.gz is done\n"), 0u);
}

TEST_F(FilterTest, LongLinesAreBounded) {
  const std::string run = "filter m.kgl d.txt --max-ppl 1e9 --max-line 99" + kAll;
  for (const size_t length : {99, 100, 70000, 200000}) {
    for (const std::string end : {"\n", "\nthe w6\n", ""}) {
      folder_.Write("d.txt", "the w5\n" + std::string(length, 'x') + end);
      const Outcome outcome = folder_.Run(run + " --skip-bad");
      const std::string last = end == "\nthe w6\n" ? "the w6\n" : "";
      const std::string line = length > 99 ? "" : std::string(length, 'x') + "\n";
      EXPECT_EQ(outcome.out, "the w5\n" + line + last);
      EXPECT_EQ(outcome.error.find("kinglet: 1 bad lines were omitted\n") == 0, length > 99);
      const std::string refused = folder_.Run(run).error;
      EXPECT_EQ(refused.find("kinglet: d.txt: line 2: expected at most 99 bytes (--max-line allows "
                             "more, --skip-bad omits the line), found more") == 0,
                length > 99)
          << refused;
    }
  }
}

TEST_F(FilterTest, HostileLines) {
  // Of members of one name the last one counts, as with Python's json, also if it is no text.
  folder_.Write("d.jsonl",
                "{\"text\":\"w9\",\"text\":\"the w5\"}\n{\"text\":\"the\",\"text\":3}\n");
  const auto twice = folder_.Run("filter m.kgl d.jsonl --field text --annotate --skip-bad").Json();
  ASSERT_EQ(twice.size(), 1u);
  EXPECT_EQ(twice[0]["kinglet"],
            folder_.Run("filter m.kgl --annotate", "the w5\n").Json()[0]["kinglet"]);
  EXPECT_NE(folder_.Run("filter m.kgl d.jsonl --field text --annotate").error.find("line 2"),
            std::string::npos);
  // NUL stays in its line.
  const std::string nul("the \0 w5\n", 9);
  folder_.Write("n.txt", Joined(documents_) + nul);
  EXPECT_EQ(folder_.Run("filter m.kgl n.txt --max-ppl 1e9" + kAll).out, Joined(documents_) + nul);
  // Empty files have no documents, and no ranks.
  folder_.Write("e.txt", "");
  EXPECT_EQ(folder_.Run("filter m.kgl e.txt --annotate").out, "");
  EXPECT_EQ(folder_.Run("filter m.kgl e.txt a.txt --max-ppl 9" + kAll).out,
            folder_.Run("filter m.kgl a.txt --max-ppl 9" + kAll).out);
  EXPECT_TRUE(folder_.Run("filter m.kgl e.txt --percentile 9").IsRefusal());
  EXPECT_EQ(folder_.Run("filter m.kgl e.txt --scores-out s").exit_status, 0);
}

TEST_F(FilterTest, WrongUse) {
  const auto refused = [this](const std::string& arguments, int status, const std::string& part) {
    const Outcome outcome = folder_.Run(arguments);
    EXPECT_EQ(outcome.exit_status, status) << arguments;
    EXPECT_TRUE(outcome.IsRefusal()) << arguments << "\n" << outcome.error;
    EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
  };
  refused("filter m.kgl a.txt", 2, "--annotate or --scores-out, found none");
  refused("filter m.kgl --percentile 5", 2, "which can be read only once");
  refused("filter m.kgl a.txt --percentile 101", 2, "from 0 to 100");
  refused("filter m.kgl a.txt --max-ppl x", 2, "a number");
  refused("filter m.kgl --annotate -o out", 2, "expected FILES");
  refused("filter m.kgl a.txt ./a.txt --annotate -o out", 2, "files of different names");
  refused("filter m.kgl missing.txt --annotate", 1, "missing.txt: open");
  refused("filter m.kgl a.txt --stage1 m.kgl", 2, "--keep P");
  refused("filter m.kgl --stage1 m.kgl --keep 5", 2, "expected FILES, found standard input");
  refused("filter m.kgl a.txt --stage1 m.kgl --keep 5", 1, "m.kgl");
  refused("filter m.kgl a.txt --buckets 30", 2, "-o FOLDER or --annotate");
  refused("filter m.kgl a.txt --annotate --buckets 60,30", 2, "ascending percentages");
  refused("filter m.kgl a.txt --scores-out s --percentile 3", 2, "no other result");
  refused("filter m.kgl --scores-out s", 2, "expected FILES, found standard input");
  refused("filter m.kgl ./a.txt a.txt --scores-out s", 1, "files of different names");
  refused("filter m.kgl a.txt --scores-out .", 1, "a folder without the FILES");
  refused("filter m.kgl a.txt --cut-from none --percentile 3", 1, "a folder of scores");
  refused("filter m.kgl a.txt --annotate --pack gz", 2, "expected -o FOLDER");
  folder_.Write("t.parquet", "PAR1" + std::string(9, '\0'));
  refused("filter m.kgl t.parquet --annotate", 1, "found a Parquet table (`python3 -c");
  refused("filter m.kgl . --annotate", 1, ".: open");
  refused("filter m.kgl a.txt --annotate -o a.txt", 1, "a.txt: expected a folder");
  folder_.WriteModel("ids.kgl", TinyMicronet({.vocabulary = false}));
  refused("filter ids.kgl a.txt --annotate", 1, "a model with a vocabulary");
}

}  // namespace
}  // namespace kinglet::filter_test
