// Words that a model's vocabulary lacks: read by their bytes, a word has the vector that a model
// with the word in its vocabulary gives it, and streams do not depend on how the word got there.
#include "runtime/spelt_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/device_program.h"
#include "runtime/accounting/meter.h"
#include "runtime/beam.h"
#include "runtime/embedder.h"
#include "runtime/prefix_tree.h"
#include "runtime/sentence_scorer.h"
#include "tests/runtime/session_fixture.h"
#include "tests/support/define_builder.h"
#include "tests/support/device_backends.h"

namespace kinglet::spelt_words_test {
namespace {

constexpr uint32_t kWords = 23, kUnknown = 1, kRenamed = 15;
const char* const kBackends[] = {"ref64", "ref", "cpu"};

ModelDraft Draft(int bits = 0, bool decoder = true) {
  return TinyDefine({.cache_rows = 3, .decoder = decoder, .bits = bits, .spells = true});
}

// The model without w15, whose id has another word.
ModelDraft Without(int bits = 0) {
  ModelDraft draft = Draft(bits);
  draft.vocabulary[kRenamed] = "another";
  return draft;
}

TEST(SpeltWords, HaveTheirIdOrANumberAboveAllIds) {
  const auto model = Open(Draft(), "ref");
  ASSERT_TRUE(model->spells());
  EXPECT_EQ(*model->Spell("w15"), kRenamed);
  EXPECT_EQ(*model->Spell("w3"), 3U);
  EXPECT_EQ(*model->Spell("new"), kWords);
  EXPECT_EQ(*model->Spell("abcdefg"), kWords + 1);
  EXPECT_EQ(*model->Spell("abcdefh"), kWords + 1);  // the same 6 bytes
  EXPECT_EQ(*model->Spell("new"), kWords);
  EXPECT_EQ(*model->Spell(std::string_view("\0", 1)), kWords + 2);
  EXPECT_EQ(model->TokenOf(kWords), kUnknown);
  EXPECT_EQ(model->TokenOf(7), 7U);
  EXPECT_TRUE(model->Reads(kWords + 2));
  EXPECT_FALSE(model->Reads(kWords + 3));
  EXPECT_EQ(model->Spell("").status().message(),
            "spelling: word: expected at least one byte, found none");
  const auto other = Open(TinyDefine(), "ref");
  EXPECT_EQ(other->Spell("new").status().message(),
            "model: spelling: expected a model that keeps a character CNN (convert "
            "--keep-characters N), found one without");
  EXPECT_EQ(other->Spell("new").status().code(), KINGLET_UNSUPPORTED);
}

TEST(SpeltWords, AModelNeedsTheirVocabulary) {
  ModelDraft ids_only = Draft();
  ids_only.vocabulary.clear();
  ModelDraft without = Draft();
  without.vocabulary[kUnknown] = "w1";
  for (const ModelDraft& draft : {ids_only, without}) {
    const auto refused = Model::FromBytes(*SerialiseModel(draft), {});
    EXPECT_EQ(refused.status().code(), KINGLET_INVALID_MODEL);
    EXPECT_TRUE(refused.status().message().starts_with("model: vocabulary: expected words, <unk>"))
        << refused.status().message();
  }
}

TEST(SpeltWords, AreReadAsWordsOfTheVocabulary) {
  for (const int bits : {0, 9}) {
    std::vector<double> of_ref;
    for (const std::string backend : kBackends) {
      const auto with = Open(Draft(bits), backend), without = Open(Without(bits), backend);
      const auto known = *Embedder::Create(with), spelt = *Embedder::Create(without);
      std::vector<double> expected(known->width()), vector(known->width());
      ASSERT_TRUE(known->Vector(kRenamed, std::span(expected)).ok());
      ASSERT_TRUE(spelt->Vector(*without->Spell("w15"), std::span(vector)).ok());
      EXPECT_EQ(vector, expected) << backend;
      if (backend == "ref") of_ref = vector;
      if (backend == "cpu") {
        EXPECT_EQ(vector, of_ref);
      }
    }
  }
}

// A stream with words of every kind, by every way of feeding it.
TEST(SpeltWords, StreamsOfThem) {
  std::vector<std::vector<double>> of_ref;
  std::vector<Backend> backends = {EmulatedCuda()};
  for (const char* const name : {"cpu", "ref64", "ref"}) backends.push_back(**FindBackend(name));
  std::reverse(backends.begin(), backends.end());  // ref first
  for (const Backend& backend : backends) {
    ModelOptions options;
    options.own_backend = &backend;
    const auto with = *Model::FromBytes(*SerialiseModel(Draft(9)), options);
    const auto without = *Model::FromBytes(*SerialiseModel(Without(9)), options);
    std::vector<uint32_t> ids, numbers;
    for (const std::string word : {"w3", "w15", "w12", "w15", "w1", "w15", "w20", "w7", "w15"}) {
      const uint32_t id = word == "w1" ? kUnknown : *with->Spell(word);
      ids.push_back(id);
      numbers.push_back(word == "w1" ? id : *without->Spell(word));
    }
    const auto known = Start(with), spelt = Start(without), many = Start(without);
    std::vector<double> predicted;
    for (size_t t = 0; t < ids.size(); ++t) {
      if (t > 0) predicted.push_back(*spelt->LogProbability(without->TokenOf(numbers[t])));
      ASSERT_TRUE(known->StepToken(ids[t]).ok());
      ASSERT_TRUE(spelt->StepToken(numbers[t]).ok());
      const std::vector<double> all = Full(*spelt);
      ASSERT_EQ(all, Full(*known)) << backend.name << " " << t;
      if (backend.name == "ref") of_ref.push_back(all);
      if (backend.real_bytes == sizeof(float)) {
        ASSERT_EQ(all, of_ref[t]) << backend.name << " " << t;
      }
    }
    std::vector<double> values(ids.size());
    uint64_t processed = 0;
    ASSERT_TRUE(many->StepMany(numbers, values, processed).ok());
    values.erase(values.begin());
    EXPECT_EQ(values, predicted) << backend.name;
    EXPECT_EQ(many->StepToken(kWords + 9).code(), KINGLET_ID_OUT_OF_RANGE);
    EXPECT_EQ(many->LogProbability(numbers[1]).status().code(), KINGLET_ID_OUT_OF_RANGE);

    // As a path of a tree, whose lanes take turns.
    std::vector<uint32_t> parents = {kNoParent};
    for (uint32_t node = 0; node + 1 < numbers.size(); ++node) parents.push_back(node);
    std::vector<double> nodes(numbers.size());
    ASSERT_TRUE(ScoreTree(parents, numbers, *many, nodes).ok());
    nodes.erase(nodes.begin());
    EXPECT_EQ(nodes, predicted) << backend.name;
  }
}

TEST(SpeltWords, SeveralLanes) {
  const auto model = Open(Without(9), "cpu");
  const std::vector<std::vector<std::string>> lines = {
      {"w12", "xyz"}, {"q", "q", "xyz", "w14"}, {}, {"w3"}, {"\xff\xfe", "w12", "q"}};
  std::vector<std::vector<double>> alone;
  for (const uint32_t lanes : {1U, 3U}) {
    auto scorer = *SentenceScorer::Create(model, {.lanes = lanes});
    size_t next = 0;
    std::vector<std::vector<double>> found;
    const Status ran = scorer.Run(
        [&](SentenceStream& stream) {
          if (next == lines.size()) return false;
          stream.tokens = {0};
          for (const std::string& word : lines[next]) stream.tokens.push_back(*model->Spell(word));
          ++next;
          return true;
        },
        [&](uint64_t, std::span<const ScoredToken> tokens) {
          std::vector<double>& values = found.emplace_back();
          for (const ScoredToken& token : tokens) values.push_back(token.log_probability);
          return Status();
        },
        [](uint64_t, size_t) { return std::string(); });
    ASSERT_TRUE(ran.ok()) << ran.message();
    if (lanes == 1) alone = found;
    EXPECT_EQ(found, alone);
  }
}

TEST(SpeltWords, TakeMemoryFromTheLimit) {
  const auto bytes = *SerialiseModel(Draft());
  ModelOptions options;
  options.memory_limit = uint64_t{1} << 20;
  const auto model = *Model::FromBytes(bytes, options);
  Status refused;
  uint32_t count = 0;
  while (refused.ok() && count < 100'000) {
    refused = model->Spell("x" + std::to_string(count)).status();
    if (refused.ok()) ++count;
  }
  EXPECT_EQ(refused.code(), KINGLET_OUT_OF_MEMORY);
  EXPECT_GT(count, 1000U);
  EXPECT_EQ(*model->Spell("x0"), kWords);  // those that are known stay
}

// 3 windows of a word of 2 bytes for filter 1, whose rows are 4 products, and 3 for filter 3, of
// 12; Map's scale; the layers; the embedding's scale.
TEST(SpeltWords, OperationsFollowTheWordsLength) {
  DefineUnit unit;
  unit.map_width = 12;
  DefineLayer highway{.in = 12, .out = 12};
  highway.residual = DefineLayer::Residual::kHighway;
  highway.activation = Activation::kRelu;
  unit.layers = {highway};
  ModelDraft draft = TinyDefine({.unit = unit, .decoder = false, .spells = true});
  draft.vocabulary[12] = "ab";
  draft.vocabulary[13] = "abcdefghi";
  const auto model = Open(draft, "ref");
  const Plan& plan = model->plan();
  const auto count = [&](uint32_t id) {
    return CountExecuted(plan, CountNonzeros(plan.weights), TraitsOf(model->backend()),
                         FullTrace(plan, std::vector<uint32_t>{id}))
        .operations;
  };
  const double layer = 12 * 24 + 2 * 12, scales = 12 + 12;
  EXPECT_EQ(count(12).multiplications, 3 * 5 * 4 + 3 * 7 * 12 + layer + scales);
  // All 6 bytes: 6 windows of one byte, 4 of three.
  EXPECT_EQ(count(13).multiplications, 6 * 5 * 4 + 4 * 7 * 12 + layer + scales);
  EXPECT_EQ(count(3).multiplications, 12);
}

}  // namespace
}  // namespace kinglet::spelt_words_test
