// `kinglet rescore` as its users run it.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <map>
#include <set>

#include "tests/support/fail_each_allocation.h"
#include "tests/support/model_builder.h"
#include "tests/tools/run_command.h"

namespace kinglet::rescore_test {
namespace {

class RescoreTest : public testing::Test {
 protected:
  RescoreTest() {
    TinyOptions options;
    options.cache_capacity = 5;
    folder_.WriteModel("m.kgl", TinyMicronet(options));
    folder_.Write("lists.tsv",
                  "a\t-1\tw3 w4 w5\na\t-2\tw3 w4 w6\nb\t-1\tw9\na\t-3\tw3 never\nb\t-1.5\t\n");
    folder_.Write("lists.txt", "a-1 w3 w4 w5\na-2 w3 w4 w6\na-7 w3 never\nb-1 w9\nb-2\n");
    folder_.Write("scores.txt", "a-1 -1\na-2 -2\na-7 -3\nb-1 -1\nb-2 -1.5\n");
    folder_.Write("lists.jsonl",
                  "{\"utt\":\"a\",\"score\":-1,\"text\":\"w3 w4 w5\"}\n"
                  "{\"utt\":\"a\",\"score\":-2,\"text\":\"w3 w4 w6\"}\n"
                  "{\"utt\":\"b\",\"score\":-1,\"text\":\"w9\"}\n"
                  "{\"utt\":\"a\",\"score\":-3,\"text\":\"w3 never\"}\n"
                  "{\"utt\":\"b\",\"score\":-1.5,\"text\":\"\"}\n");
    folder_.Write("alone.txt", "w3 w4 w5\nw3 w4 w6\nw3 never\nw9\n\n");
    folder_.Write("references.txt", "a\tw3 w4 w6\nb\tw9 w9\n");
  }
  CommandFolder folder_;
};

TEST_F(RescoreTest, HypothesesAreScoredAsLinesAre) {
  const auto alone = folder_.Run("score m.kgl --lines --text alone.txt --json").Json();
  for (const char* more : {"", " --lanes 3", " --lanes 40 --threads 2"}) {
    const auto lines =
        folder_.Run("rescore m.kgl lists.tsv --all --json" + std::string(more)).Json();
    ASSERT_EQ(lines.size(), 5u + 1u);
    const std::map<std::pair<std::string, int>, size_t> indices = {
        {{"a", 1}, 0}, {{"a", 2}, 1}, {{"a", 3}, 2}, {{"b", 1}, 3}, {{"b", 2}, 4}};
    for (size_t i = 0; i < 5; ++i) {
      const auto& line = lines[i];
      EXPECT_EQ(line["utt"], i < 3 ? "a" : "b");
      EXPECT_EQ(line["rank"], i < 3 ? i + 1 : i - 2);
      const auto& one = alone[indices.at({line["utt"], line["hypothesis"]})];
      EXPECT_EQ(line["logprob"], one["logprob"]);
      EXPECT_EQ(line["tokens"], one["tokens"]);
      EXPECT_EQ(line["oov"], one["oov"]);
      EXPECT_NEAR(line["score"].get<double>(),
                  line["given"].get<double>() + line["logprob"].get<double>(), 1e-6);
      if (i != 0 && i != 3) {
        EXPECT_LE(line["score"], lines[i - 1]["score"]);
      }
    }
    const auto& summary = lines.back();
    EXPECT_EQ(summary["utterances"], 2);
    EXPECT_EQ(summary["hypotheses"], 5);
    EXPECT_EQ(summary["tokens"], 4 + 4 + 3 + 2 + 1);
    // <eos> w3 w4 w5, w6, never; <eos> w9.
    EXPECT_EQ(summary["tokens_stepped"], 6 + 2);
    EXPECT_EQ(summary["oov"], 1);
    EXPECT_NE(summary["protocol"].get<std::string>().find("cache 5 normalised; digest"),
              std::string::npos);
  }
}

TEST_F(RescoreTest, TheThreeFormatsSayTheSame) {
  const std::string expected = folder_.Run("rescore m.kgl lists.tsv --all").out;
  EXPECT_EQ(folder_.Run("rescore m.kgl lists.jsonl --all").out, expected);
  EXPECT_EQ(folder_.Run("rescore m.kgl lists.txt --scores scores.txt --all").out, expected);
  // A file may mix the lines of its utterances.
  const std::string in_order =
      "a\t-1\tw3 w4 w5\na\t-2\tw3 w4 w6\na\t-3\tw3 never\nb\t-1\tw9\nb\t-1.5\t\n";
  folder_.Write("ordered.tsv", in_order);
  EXPECT_EQ(folder_.Run("rescore m.kgl ordered.tsv --all").out, expected);
  EXPECT_EQ(folder_.Run("rescore m.kgl --all --format tsv", in_order).out, expected);
  EXPECT_EQ(folder_.Run("rescore m.kgl - --all --lanes 3", in_order).out, expected);
  const Outcome mixed = folder_.Run("rescore m.kgl - --all", folder_.Read("lists.jsonl"));
  EXPECT_EQ(mixed.exit_status, 1);
  EXPECT_NE(mixed.error.find("standard input: line 4: expected the lines of each utterance one "
                             "after the other, or a file of them in place of a pipe, found"),
            std::string::npos)
      << mixed.error;
  // The output is a list that the command can read.
  folder_.Write("again.tsv", expected);
  EXPECT_EQ(folder_.Run("rescore m.kgl again.tsv --weight 0").out,
            folder_.Run("rescore m.kgl lists.tsv").out);
  const auto numbers = folder_.Run("rescore m.kgl lists.txt --all --json").Json();
  EXPECT_TRUE(numbers[0]["given"].is_null());
  std::set<int> found;
  for (size_t i = 0; i < 3; ++i) found.insert(numbers[i]["hypothesis"].get<int>());
  EXPECT_EQ(found, (std::set<int>{1, 2, 7}));
}

// A hypothesis without a score would count as one with the score 0, the best of most recognisers.
TEST_F(RescoreTest, AllHypothesesOfAListHaveAScoreOrNone) {
  folder_.Write("some.jsonl", R"({"utt":"a","score":-1,"text":"w3"}
{"utt":"a","text":"w4"}
)");
  folder_.RunShell(
      "mkdir -p n/1best_recog n/2best_recog; echo 'a w3' > n/1best_recog/text; "
      "echo 'a -1' > n/1best_recog/score; echo 'a w4' > n/2best_recog/text");
  for (const std::string lists : {"some.jsonl", "n", "- < some.jsonl"}) {
    const Outcome outcome = folder_.RunShell("kinglet rescore m.kgl " + lists, "");
    EXPECT_EQ(outcome.exit_status, 1) << lists << outcome.out;
    EXPECT_TRUE(outcome.IsRefusal()) << outcome.error;
    EXPECT_NE(outcome.error.find("a: expected a score for each hypothesis, or for none, found "
                                 "hypothesis 2 without one (add the scores that are missing)"),
              std::string::npos)
        << outcome.error;
  }
}

TEST_F(RescoreTest, Weights) {
  const auto best = [&](const std::string& weights) {
    const Outcome outcome = folder_.Run("rescore m.kgl lists.tsv --json " + weights);
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    return outcome.Json()[0];
  };
  EXPECT_EQ(best("--weight 0")["hypothesis"], 1);
  EXPECT_EQ(best("--weight 0")["score"], -1);
  EXPECT_EQ(best("--weight 0 --given-weight -1")["hypothesis"], 3);
  EXPECT_EQ(best("--length-weight 1000")["tokens"], 4);
  EXPECT_EQ(best("--length-weight=-1000")["tokens"], 3);
}

TEST_F(RescoreTest, WordErrorsAndTuning) {
  const auto summary =
      folder_.Run("rescore m.kgl lists.tsv --weight 0 --json --references references.txt")
          .Json()
          .back();
  EXPECT_EQ(summary["words"], 5);
  EXPECT_EQ(summary["errors"], 1 + 1);
  EXPECT_NEAR(summary["wer"].get<double>(), 0.4, 1e-9);
  EXPECT_EQ(summary["wer_given"], summary["wer"]);
  EXPECT_NEAR(summary["wer_oracle"].get<double>(), 0.2, 1e-9);
  const Outcome outcome = folder_.Run("rescore m.kgl lists.tsv --tune references.txt");
  const auto tuned = outcome.Json();
  ASSERT_EQ(tuned.size(), 1u) << outcome.error;
  EXPECT_LE(tuned[0]["wer"], summary["wer"]);
  std::string weights;
  for (const auto& [option, key] : {std::pair("--given-weight=", "given_weight"),
                                    {"--weight=", "weight"},
                                    {"--length-weight=", "length_weight"}}) {
    weights += " " + std::string(option) + tuned[0][key].dump();
  }
  const auto again =
      folder_.Run("rescore m.kgl lists.tsv --json --references references.txt" + weights)
          .Json()
          .back();
  EXPECT_EQ(again["errors"], tuned[0]["errors"]);
  // The command that it ends with, with names that a shell would read otherwise.
  folder_.Write("it's a list.tsv", folder_.Read("lists.tsv"));
  const auto quoted =
      folder_.Run("rescore m.kgl --format tsv \"it's a list.tsv\" --tune references.txt").Json();
  for (const std::string command : {tuned[0]["command"], quoted[0]["command"]}) {
    EXPECT_TRUE(command.starts_with("kinglet rescore m.kgl ")) << command;
    const auto answer = folder_.RunShell(command + " --json --references references.txt").Json();
    EXPECT_EQ(answer.back()["errors"], tuned[0]["errors"]) << command;
  }
  const Outcome people = folder_.Run("rescore m.kgl lists.tsv --references references.txt");
  EXPECT_EQ(people.Lines().size(), 2u);
  EXPECT_NE(people.error.find("; word error rate "), std::string::npos) << people.error;
}

constexpr const char* kArpa =
    "\\data\\\nngram 1=6\nngram 2=2\n\n\\1-grams:\n-1\t<s>\t-0.5\n-1.5\t</s>\n-2\t<unk>\n"
    "-1\tw3\t-0.25\n-1.25\tw4\n-3\tw6\n\n\\2-grams:\n-0.5\t<s> w3\n-0.125\tw3 w4\n\n\\end\\\n";

TEST_F(RescoreTest, NgramsAreAdded) {
  folder_.Write("m.arpa", kArpa);
  EXPECT_EQ(folder_.Run("ngram m.arpa -o m.kng").exit_status, 0);
  // log10 of "w3 w4 w5", "w3 w4 w6", "w3 never", by hand.
  const std::map<int, double> log10s = {
      {1, -0.5 - 0.125 - 2 - 1.5}, {2, -0.5 - 0.125 - 3 - 1.5}, {3, -0.5 - 0.25 - 2 - 1.5}};
  const auto lines =
      folder_
          .Run(
              "rescore m.kgl lists.tsv --all --json --weight 2 --unknown-weight -7 --ngram "
              "m.kng --ngram-weight 0.5 --ngram m.arpa --ngram-weight=-0.125")
          .Json();
  for (size_t i = 0; i < 3; ++i) {
    const auto& line = lines[i];
    const double ngram = log10s.at(line["hypothesis"]) * std::log(10.0);
    EXPECT_NEAR(line["ngram_logprobs"][0].get<double>(), ngram, 1e-6);
    EXPECT_EQ(line["ngram_logprobs"][0], line["ngram_logprobs"][1]);
    EXPECT_NEAR(line["score"].get<double>(),
                line["given"].get<double>() + 2 * line["logprob"].get<double>() -
                    7 * line["oov"].get<double>() + 0.375 * ngram,
                1e-6);
  }
  const auto tuned =
      folder_.Run("rescore m.kgl lists.tsv --ngram m.kng --unknown-weight 0 --tune references.txt")
          .Json()[0];
  EXPECT_EQ(tuned["ngram_weights"].size(), 1U);
  EXPECT_TRUE(tuned["unknown_weight"].is_number());
  EXPECT_EQ(tuned["wer_ngrams"].size(), 1U);
  const std::string command = tuned["command"];
  const auto again = folder_.RunShell(command + " --json --references references.txt").Json();
  EXPECT_EQ(again.back()["errors"], tuned["errors"]) << command;
  EXPECT_EQ(again.back()["wer_ngrams"], tuned["wer_ngrams"]);
  const Outcome people =
      folder_.Run("rescore m.kgl lists.tsv --ngram m.kng --references references.txt");
  EXPECT_NE(people.error.find(", n-grams alone "), std::string::npos) << people.error;
}

TEST_F(RescoreTest, NgramsAreMixed) {
  folder_.Write("m.arpa", kArpa);
  const auto with = [&](const std::string& options) {
    return folder_
        .Run("rescore m.kgl lists.tsv --all --json --given-weight 0 --mix m.arpa " + options)
        .Json();
  };
  // Of the network alone, of the n-grams alone, and between.
  const auto network = with("--share 0"), ngrams = with("--share 1"), mixed = with("--share 0.25"),
             half = with("");
  const auto added = folder_.Run("rescore m.kgl lists.tsv --all --json --ngram m.arpa").Json();
  std::map<std::string, double> sums;
  for (const auto& line : added) {
    if (line.contains("rank")) {
      sums[line["text"].get<std::string>()] = line["ngram_logprobs"][0].get<double>();
    }
  }
  std::map<std::string, double> between;
  for (const auto& line : mixed) {
    if (line.contains("rank")) between[line["text"]] = line["mixed_logprob"].get<double>();
  }
  for (const auto& line : network) {
    if (!line.contains("rank")) continue;
    EXPECT_NEAR(line["mixed_logprob"].get<double>(), line["logprob"].get<double>(), 1e-5);
    const double words = line["tokens"].get<double>();
    EXPECT_GE(between.at(line["text"]),
              line["logprob"].get<double>() + words * std::log(0.75) - 1e-6);
  }
  for (const auto& line : ngrams) {
    if (!line.contains("rank")) continue;
    EXPECT_NEAR(line["mixed_logprob"].get<double>(), sums.at(line["text"]), 1e-5);
    EXPECT_EQ(line["score"], line["mixed_logprob"]);
  }
  EXPECT_EQ(half, with("--share 0.5"));
  const auto tuned =
      folder_.Run("rescore m.kgl lists.tsv --mix m.arpa --tune references.txt").Json()[0];
  ASSERT_EQ(tuned["shares"].size(), 1U);
  EXPECT_EQ(tuned["wer_ngrams"].size(), 1U);
  const std::string command = tuned["command"];
  const auto again = folder_.RunShell(command + " --json --references references.txt").Json();
  EXPECT_EQ(again.back()["errors"], tuned["errors"]) << command;
}

TEST_F(RescoreTest, PhrasesAreExpected) {
  folder_.Write("names.txt", "w3 w4\t1.5\nnever\n");
  const auto lines =
      folder_.Run("rescore m.kgl lists.tsv --all --json --context names.txt --context-weight 2")
          .Json();
  size_t seen = 0;
  for (const auto& line : lines) {
    if (!line.contains("rank")) continue;
    const std::string text = line["text"];
    const double bonus =
        (text.find("w3 w4") != text.npos ? 3 : 0) + (text.find("never") != text.npos ? 1 : 0);
    seen += bonus > 0 ? 1 : 0;
    EXPECT_EQ(line["context"].get<double>(), bonus) << text;
    EXPECT_NEAR(line["score"].get<double>(),
                line["given"].get<double>() + line["logprob"].get<double>() + 2 * bonus, 1e-5);
  }
  EXPECT_GE(seen, 3U);
  const auto tuned =
      folder_.Run("rescore m.kgl lists.tsv --context names.txt --tune references.txt").Json()[0];
  EXPECT_TRUE(tuned["context_weight"].is_number());
  EXPECT_NE(tuned["command"].get<std::string>().find(" --context names.txt --context-weight="),
            std::string::npos);
}

// A program that writes a list into a pipe gets its answer once the next list begins.
TEST_F(RescoreTest, AnswersEachListOfAPipe) {
  const Outcome outcome = folder_.RunShell(
      "mkfifo in; kinglet rescore m.kgl - < in > out & exec 3> in; "
      "printf 'a\t-1\tw3\n' >&3; for list in 1 2; do printf \"$list\t-1\tw4\n\" >&3; "
      "for i in $(seq 300); do [ $(wc -l < out) -ge $list ] && break; sleep 0.1; done; "
      "wc -l < out; done; exec 3>&-; wait; wc -l < out");
  EXPECT_EQ(outcome.out, "1\n2\n3\n") << outcome.error;
}

TEST_F(RescoreTest, MemoryDoesNotGrowWithTheLists) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer keeps freed memory";
  const auto peak = [&](int lists) {  // KiB, of all programs that were run so far
    const Outcome outcome = folder_.RunShell(
        "seq " + std::to_string(lists) +
        " | sed 's/.*/utt-&\t-1\tw3 w4 w5 w6 w7 w8 w9 w10/; p; s/\t-1/\t-2/' > big.tsv; "
        "kinglet rescore m.kgl big.tsv --lanes 16 > /dev/null");
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    rusage usage{};
    ::getrusage(RUSAGE_CHILDREN, &usage);
    return usage.ru_maxrss;
  };
  const long small = peak(4000);
  EXPECT_LT(peak(60'000), small + 8 * 1024);  // 5.5 MB of lists, and 40 bytes for each utterance
}

TEST_F(RescoreTest, Refusals) {
  const auto refused = [&](const std::string& arguments, int status, const char* message) {
    const Outcome outcome = folder_.Run("rescore " + arguments);
    EXPECT_EQ(outcome.exit_status, status) << arguments << "\n" << outcome.error;
    EXPECT_NE(outcome.error.find(message), std::string::npos) << outcome.error;
    EXPECT_EQ(outcome.out, "");
  };
  folder_.Write("empty.txt", "\n");
  folder_.Write("one.txt", "a\tw3\n");
  ModelDraft draft = TinyMicronet();
  draft.vocabulary.clear();
  folder_.WriteModel("ids.kgl", draft);
  refused("m.kgl empty.txt", 1, "empty.txt: lists: expected at least one hypothesis, found none");
  refused("m.kgl none.txt", 1, "none.txt");
  refused("m.kgl lists.txt --format tsv", 1, "line 1: expected an utterance, a score and a text");
  refused("m.kgl lists.tsv --format csv", 2, "--format");
  refused("m.kgl lists.tsv --weight nan", 2, "expected --weight as a number");
  refused("m.kgl lists.tsv --weight inf", 2, "--weight: expected a finite number");
  refused("m.kgl lists.tsv --references one.txt", 1, "a reference for each list, found none for b");
  refused("m.kgl lists.tsv --references references.txt --tune references.txt", 2, "--tune");
  for (const char* twice : {"- --scores -", "--references -", "--tune -", "- --tune -"}) {
    refused("m.kgl " + std::string(twice), 2, "standard input once");
  }
  refused("ids.kgl lists.tsv", 1, "a model with a vocabulary");
  refused("m.kgl lists.tsv --ngram m.kgl", 1, "a model file that is converted already");
  refused("m.kgl lists.tsv --ngram none.kng", 1, "none.kng");
  refused("m.kgl lists.tsv --ngram-weight 1", 2,
          "--ngram-weight: expected one for each of the 0 --ngram, or none, found 1");
  refused("m.kgl lists.tsv --ngram m.kng --ngram-weight x", 2,
          "--ngram-weight: expected a finite number, found \"x\"");
  refused("m.kgl lists.tsv --mix m.kng --share 1.5", 2,
          "--share: expected 0 or more, and at most 1 in all, found 1.500000 in all");
  refused("m.kgl lists.tsv --share 0.5", 2, "expected one for each of the 0 --mix, or none");
  folder_.Write("names.txt", "w3\tmuch\n");
  refused("m.kgl lists.tsv --context names.txt", 1, "names.txt: line 1: expected PHRASE");
  refused("m.kgl lists.tsv --context-weight 2", 2, "--context");
  refused("m.kgl --context -", 2, "standard input once");
  refused("m.kgl --ngram -", 2, "standard input once");
  refused("m.kgl lists.tsv --unknown-weight inf", 2, "--unknown-weight: expected a finite number");
}

}  // namespace
}  // namespace kinglet::rescore_test
