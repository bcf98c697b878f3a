// The C++17 header as its users have it: without exceptions, over the shared library. The library's
// own classes are in this program too, and do not get in its way.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kinglet/kinglet.hpp"
#include "tests/runtime/c_api/c_tests.h"

#if __cplusplus >= 202002L || defined(__cpp_exceptions)
#error "this test is to be compiled as C++17 without exceptions"
#endif

// kinglet_hpp_test_runtime.cc
extern "C" double LogProbabilityByTheLibrarysOwnSession(const uint32_t* ids, size_t count,
                                                        uint32_t word);

bool SameVersionInCxx11();  // kinglet_h_cxx11.cc

namespace {

using kinglet::Beam;
using kinglet::Model;
using kinglet::Ngrams;
using kinglet::Result;
using kinglet::Scorer;
using kinglet::Session;
using kinglet::State;
using kinglet::Status;
using kinglet::TextToken;

static_assert(!std::is_copy_constructible_v<Model> && std::is_nothrow_move_constructible_v<Model>);
static_assert(!std::is_copy_constructible_v<Session> && std::is_nothrow_move_assignable_v<Session>);
static_assert(!std::is_copy_constructible_v<Beam> && std::is_nothrow_move_assignable_v<Beam>);
static_assert(std::is_copy_constructible_v<State> && std::is_copy_assignable_v<State>);

Model OpenModel(test_model which, const kinglet::ModelOptions& options = {}) {
  const test_bytes bytes = TestModel(which);
  Result<Model> model = Model::OpenMemory(bytes.data, bytes.size, options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(*model);
}

TEST(KingletHpp, Models) {
  kinglet::ModelOptions options;
  options.backend = "ref";
  const Model model = OpenModel(TEST_MODEL_CACHE, options);
  EXPECT_EQ(*model.VocabularySize(), uint32_t{TEST_WORDS});
  EXPECT_TRUE(*model.HasWords());
  EXPECT_EQ(model.StartToken().status().code(), KINGLET_UNSUPPORTED);
  EXPECT_EQ(model.Positions().status().code(), KINGLET_UNSUPPORTED);
  const kinglet::Model positioned = OpenModel(TEST_MODEL_POSITIONS);
  EXPECT_EQ(*positioned.StartToken(), 2u);
  EXPECT_EQ(*positioned.Positions(), 5u);
  EXPECT_EQ(*model.TokenText(3), "w3");
  const std::vector<std::string> texts = *model.TokenTexts();
  ASSERT_EQ(texts.size(), size_t{TEST_WORDS});
  EXPECT_EQ(texts[0], "the");
  EXPECT_EQ(texts[TEST_WORDS - 1], *model.TokenText(TEST_WORDS - 1));
  EXPECT_EQ(*model.SpecialToken(KINGLET_TOKEN_UNKNOWN), 2U);
  EXPECT_EQ(*positioned.SpecialToken(KINGLET_TOKEN_BEGIN), 2U);
  EXPECT_EQ(*model.FindToken("the"), 0U);
  EXPECT_EQ(model.FindToken("").status().code(), KINGLET_UNKNOWN_WORD);
  EXPECT_EQ(model.FindToken({}).status().code(), KINGLET_UNKNOWN_WORD);
  EXPECT_EQ(model.TokenText(TEST_WORDS).status().code(), KINGLET_ID_OUT_OF_RANGE);
  EXPECT_EQ(model.Digest()->size(), 32U);
  EXPECT_EQ(*model.Backend(), "ref");
  EXPECT_GT(*model.LaneBytes(), 0U);
  EXPECT_GT(*model.StateBytes(), 0U);

  const Result<Model> none = Model::Open("no/such/model.kgl");
  EXPECT_EQ(none.status().code(), KINGLET_NOT_FOUND);
  EXPECT_NE(none.status().message().find("no/such/model.kgl"), std::string::npos);
  const char* const path = TestFile(TestModel(TEST_MODEL_IDS_ONLY));
  const Result<Model> from_file = Model::Open(path);
  EXPECT_EQ(std::remove(path), 0);
  ASSERT_TRUE(from_file.ok()) << from_file.status().message();
  EXPECT_FALSE(*from_file->HasWords());
  EXPECT_EQ(from_file->TokenTexts().status().code(), KINGLET_UNSUPPORTED);
}

TEST(KingletHpp, SessionsAnswerWhatTheLibrarysOwnDo) {
  Result<Session> session = [] {
    const Model model = OpenModel(TEST_MODEL_CACHE);
    return Session::Create(model);  // outlives the model's handle
  }();
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(session->LogProbability(0).status().code(), KINGLET_NO_TOKEN_YET);
  std::vector<uint32_t> ids;
  for (uint32_t t = 0; t < 15; ++t) {
    ids.push_back(7 * t % TEST_WORDS);
    ASSERT_TRUE(session->Step(ids.back()).ok());
    const std::vector<float> all = *session->LogProbabilities();
    const std::vector<float> probabilities = *session->Probabilities();
    ASSERT_EQ(all.size(), size_t{TEST_WORDS});
    for (uint32_t word = 0; word < TEST_WORDS; word += 11) {
      const double expected = LogProbabilityByTheLibrarysOwnSession(ids.data(), ids.size(), word);
      EXPECT_EQ(*session->LogProbability(word), expected);
      EXPECT_EQ(double{all[word]}, expected);
      EXPECT_NEAR(double{probabilities[word]}, std::exp(expected), 1e-6);
    }
    const uint32_t some[] = {22, 1, 22};
    EXPECT_EQ(*session->LogProbabilitiesOf(some, 3),
              (std::vector<double>{double{all[22]}, double{all[1]}, double{all[22]}}));
    const std::vector<kinglet::Candidate> best = *session->TopK(3);
    ASSERT_EQ(best.size(), 3U);
    EXPECT_GE(best[0].log_probability, best[1].log_probability);
    EXPECT_EQ(best[2].log_probability, double{all[best[2].id]});
    EXPECT_LT(*session->Draw(t), uint32_t{TEST_WORDS});
    kinglet::DrawOptions options;
    options.temperature = 0;
    EXPECT_EQ(*session->Draw(1, options), best[0].id);
    float into[TEST_WORDS];
    ASSERT_TRUE(session->LogProbabilities(into, TEST_WORDS).ok());
    EXPECT_EQ(std::vector<float>(into, into + TEST_WORDS), all);
    ASSERT_TRUE(session->Probabilities(into, TEST_WORDS).ok());
    EXPECT_EQ(std::vector<float>(into, into + TEST_WORDS), probabilities);
  }
  EXPECT_EQ(*session->Position(), 15U);
  EXPECT_TRUE(session->TopK(0)->empty());
  EXPECT_EQ(session->TopK(UINT32_MAX)->size(), size_t{TEST_WORDS});
  ASSERT_TRUE(session->Step(1).ok());
  EXPECT_EQ(session->LastWork()->clusters_opened, 0U);
  ASSERT_TRUE(session->LogProbabilities().ok());
  EXPECT_GT(session->LastWork()->clusters_opened, 1U);
}

TEST(KingletHpp, QueriesThatLookForWords) {
  const Model model = OpenModel(TEST_MODEL_CACHE);
  Session session = *Session::Create(model);
  EXPECT_EQ(session.Rank(0).status().code(), KINGLET_NO_TOKEN_YET);
  ASSERT_TRUE(session.Step(0).ok());
  const std::vector<kinglet::Candidate> all = *session.TopK(TEST_WORDS);
  const std::vector<float> p = *session.Probabilities();
  EXPECT_EQ(session.TopP(1)->size(), size_t{TEST_WORDS});
  EXPECT_EQ(session.TopP(1e-9)->front().id, all.front().id);
  EXPECT_EQ(session.TopP(0).status().code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(*session.Rank(all[4].id), 5U);
  const uint32_t allowed[] = {3, 1, 3};
  EXPECT_EQ(session.TopKAllowed(allowed, 3, 9)->size(), 2U);
  EXPECT_EQ(*session.ProbabilityAllowed(allowed, 3), double{p[1]} + double{p[3]});
  EXPECT_EQ(session.TopKWithPrefix("th", 9)->front().id, 0U);
  EXPECT_EQ(*session.ProbabilityOfPrefix("th"), double{p[0]});
  EXPECT_EQ(*session.ProbabilityOfPrefix("no such word"), 0);
  EXPECT_EQ(session.TopKWithPrefix({}, TEST_WORDS)->size(), size_t{TEST_WORDS});
  const auto next = *session.NextCharacters("<");  // <eos>, <unk>
  ASSERT_EQ(next.size(), 2U);
  EXPECT_EQ(next[1].first, uint32_t{'u'});
  EXPECT_EQ(next[1].second, double{p[2]});
  EXPECT_EQ(*session.ProbabilityOfText(" th", 10), double{p[0]});
  EXPECT_EQ(session.ProbabilityOfText(" w3 w4 w5", 1).status().code(), KINGLET_TOO_MANY_STEPS);
  EXPECT_EQ(session.NextCharactersOfText(" th", 10)->front().first, uint32_t{'e'});
  EXPECT_EQ(session.WordsOfText(" th", 2, 4, 10)->front().text, " the");
  const auto interval = *session.Interval(7);
  EXPECT_EQ(interval.second, session.Interval(8)->first);
  EXPECT_EQ(*session.WordAt(static_cast<uint32_t>(interval.first)), 7U);
}

TEST(KingletHpp, DrawsAndGeneratedText) {
  const Model model = OpenModel(TEST_MODEL_CACHE);
  Session session = std::move(*Session::Create(model));
  kinglet::DrawOptions draw;
  EXPECT_EQ(draw.temperature, 1);
  EXPECT_EQ(draw.top_p, 1);
  kinglet::GenerationOptions options;
  options.tokens = 6;
  options.seed = 3;
  options.draw = &draw;
  kinglet::Generation generation = std::move(*kinglet::Generation::Create(model, {4, 5}, options));
  EXPECT_FALSE(*generation.Ended());
  while (*generation.Next()) {
  }
  EXPECT_TRUE(*generation.Ended());
  EXPECT_EQ(generation.Ended(1).status().code(), KINGLET_INVALID_ARGUMENT);
  ASSERT_TRUE(session.Step(4).ok());
  ASSERT_TRUE(session.Step(5).ok());
  std::vector<uint32_t> drawn;
  for (int i = 0; i < 6; ++i) {
    drawn.push_back(*session.Draw(3, draw));
    const uint32_t lane = 0;
    const uint64_t seed = 3;
    EXPECT_EQ(session.DrawLanes(&lane, &seed, 1)->front(), drawn.back());
    ASSERT_TRUE(session.Step(drawn.back()).ok());
  }
  EXPECT_EQ(*generation.Ids(), drawn);
  const std::string first = drawn[0] == 1 ? "\n" : " " + *model.TokenText(drawn[0]);
  EXPECT_EQ(generation.Text()->rfind(first, 0), 0U) << *generation.Text();
  draw.top_p = 0;
  EXPECT_EQ(session.Draw(3, draw).status().code(), KINGLET_INVALID_ARGUMENT);
}

// Everything that a coder makes of the bytes, which it gets in pieces.
template <class Bytes>
std::vector<unsigned char> Coded(kinglet::Result<kinglet::Coder> coder, const Bytes& bytes,
                                 size_t piece) {
  std::vector<unsigned char> all;
  const auto take = [&] {
    for (size_t before = all.size() + 1; before != all.size();) {
      before = all.size();
      const auto next = coder->Take(piece);
      EXPECT_TRUE(next.ok()) << next.status().message();
      if (next.ok()) all.insert(all.end(), next->begin(), next->end());
    }
  };
  for (size_t at = 0; at < bytes.size(); at += piece) {
    EXPECT_TRUE(coder->Add(bytes.data() + at, std::min(piece, bytes.size() - at)).ok());
    take();
  }
  EXPECT_TRUE(coder->Finish().ok());
  take();
  return all;
}

TEST(KingletHpp, Archives) {
  using kinglet::Coder;
  const Model model = OpenModel(TEST_MODEL_CACHE);
  kinglet::CoderOptions options;
  options.block_size = 1024;
  std::string text;
  while (text.size() < 3000) text += "the w3 w4 unheard, ";
  const auto archive = Coded(Coder::Compressor(model, options), text, 500);
  EXPECT_LT(archive.size(), text.size() / 3);
  const auto restored = Coded(Coder::Decompressor(model), archive, 77);
  EXPECT_EQ(std::string(restored.begin(), restored.end()), text);
  options.block_size = 1;
  EXPECT_EQ(Coder::Compressor(model, options).status().code(), KINGLET_INVALID_ARGUMENT);

  options = {};
  options.salvage = 1;
  Coder coder = std::move(*Coder::Decompressor(model, options));
  ASSERT_TRUE(coder.Add(archive.data(), archive.size() - 25).ok());
  ASSERT_TRUE(coder.Finish().ok());
  for (const size_t block : {1024, 1024, 0}) EXPECT_EQ(coder.Take()->size(), block);
  EXPECT_NE(coder.Damages()->find("after block 2"), std::string::npos) << *coder.Damages();
  ASSERT_TRUE(coder.Cancel().ok());
  EXPECT_EQ(coder.Take().status().code(), KINGLET_CANCELLED);
  const Coder moved = std::move(coder);
  EXPECT_EQ(coder.Finish().code(), KINGLET_INVALID_ARGUMENT);  // NOLINT: moved from on purpose
}

TEST(KingletHpp, Typing) {
  const Model model = OpenModel(TEST_MODEL_CACHE);
  kinglet::Typing typing = std::move(*kinglet::Typing::Create(model));
  kinglet::Session session = std::move(*kinglet::Session::Create(model));
  ASSERT_TRUE(session.Step(0).ok());
  ASSERT_TRUE(typing.Prepare(session).ok());
  kinglet::TypingInput input;
  for (const char letter : {'w', '1', '6'}) {
    input.AddTouch({{static_cast<char32_t>(letter), 0.25}});
  }
  input.RemoveTouch();
  input.AddTouch({{'5', 0.5}, {'6', 3}});
  input.options().finished = 1;
  const auto found = typing.Find(session, input, 3);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_TRUE(found->complete);
  EXPECT_EQ(found->candidates[0].text, "w15");
  EXPECT_EQ(found->candidates[0].cost, 1);
  EXPECT_NEAR(found->candidates[0].log_probability, *session.LogProbability(15), 1e-4);
  EXPECT_EQ(typing.Find(session, input, 3000)->candidates[0].text, "w15");
  ASSERT_TRUE(typing.SetBlocked({"w3", "W15"}).ok());
  EXPECT_NE(typing.Find(session, input, 3)->candidates[0].text, "w15");
  ASSERT_TRUE(typing.SetBlocked({}).ok());
  ASSERT_TRUE(typing.SetAllowed({"w16"}).ok());
  EXPECT_EQ(typing.Find(session, input, 3)->candidates[0].text, "w16");
  ASSERT_TRUE(typing.SetAllowed({}).ok());

  ASSERT_TRUE(typing.SetWeights(0.5, 0.001).ok());
  ASSERT_TRUE(typing.Learn("the", "w15s").ok());
  ASSERT_TRUE(typing.Learn("the", "W").ok());
  const auto words = typing.List();
  ASSERT_TRUE(words.ok() && words->size() == 2u);
  EXPECT_EQ((*words)[1].text, "w15s");
  EXPECT_EQ((*words)[1].uses, 1u);
  input.options().finished = 0;
  input.SetBefore("The");
  EXPECT_EQ(typing.Find(session, input, 1)->candidates[0].kind, KINGLET_TYPING_USER_WORD);
  EXPECT_EQ(*typing.Unlearn("w15s"), 1u);
  EXPECT_NE(typing.Find(session, input, 1)->candidates[0].text, "w15s");
  ASSERT_TRUE(typing.Forget().ok());
  EXPECT_TRUE(typing.List()->empty());
  EXPECT_EQ(typing.OpenWords("/").code(), KINGLET_IO_ERROR);
  EXPECT_EQ(kinglet::Typing::Create(OpenModel(TEST_MODEL_IDS_ONLY)).status().code(),
            KINGLET_UNSUPPORTED);
}

TEST(KingletHpp, Embeddings) {
  kinglet::Embedding embedding =
      std::move(*kinglet::Embedding::Create(OpenModel(TEST_MODEL_CLASSIFIER)));
  EXPECT_EQ(*embedding.Width(), 6U);
  EXPECT_EQ(*embedding.Classes(), 4U);
  const uint32_t ids[] = {22, 3};
  const std::vector<float> both = *embedding.Vectors(ids, 2);
  ASSERT_EQ(both.size(), 12U);
  EXPECT_EQ(*embedding.Vector(3), std::vector<float>(both.begin() + 6, both.end()));
  EXPECT_TRUE(embedding.Vectors(nullptr, 0)->empty());
  EXPECT_EQ(embedding.Vector(TEST_WORDS).status().code(), KINGLET_ID_OUT_OF_RANGE);
  const kinglet::ClassScores scores = *embedding.Classify(ids, 2);
  double sum = 0;
  for (const double value : scores.log_probabilities) sum += std::exp(value);
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_NEAR(scores.logits.at(3) - scores.logits.at(0),
              scores.log_probabilities.at(3) - scores.log_probabilities.at(0), 1e-5);
  EXPECT_EQ(embedding.Classify(nullptr, 0).status().code(), KINGLET_INVALID_ARGUMENT);
  const kinglet::Embedding taken = std::move(embedding);
  EXPECT_EQ(*taken.Width(), 6U);
  EXPECT_EQ(embedding.Width().status().code(), KINGLET_INVALID_ARGUMENT);
}

TEST(KingletHpp, Text) {
  const Model model = OpenModel(TEST_MODEL_TEXT);
  const std::vector<TextToken> tokens = *model.Tokenize("the w3");
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_EQ(tokens[1].id, 3u);
  EXPECT_EQ(tokens[1].begin, 4u);
  EXPECT_TRUE(model.Tokenize("")->empty());
  EXPECT_EQ(*model.Detokenize({0, 3}), "the w3");
  EXPECT_EQ(*model.Detokenize({}), "");
  EXPECT_EQ(model.Detokenize({99}).status().code(), KINGLET_ID_OUT_OF_RANGE);
}

TEST(KingletHpp, Sources) {
  const Model model = OpenModel(TEST_MODEL_TRANSLATION);
  EXPECT_EQ(*model.SourceVocabularySize(), uint32_t{TEST_SOURCE_WORDS});
  EXPECT_EQ(*model.FindSourceToken("s12"), 12U);
  EXPECT_EQ(model.FindSourceToken("").status().code(), KINGLET_UNKNOWN_WORD);
  Session session = std::move(*Session::Create(model));
  const uint32_t source[] = {1, 12, 0};
  EXPECT_EQ(session.Step(2).code(), KINGLET_NO_SOURCE_YET);
  ASSERT_TRUE(session.Encode(source, 3).ok());
  ASSERT_TRUE(session.Step(2).ok());
  EXPECT_TRUE(session.LogProbability(3).ok());
  EXPECT_EQ(session.Encode(source, 3, 1).code(), KINGLET_INVALID_ARGUMENT);
}

TEST(KingletHpp, MaskedModels) {
  const Model model = OpenModel(TEST_MODEL_MASKED);
  EXPECT_EQ(*model.LongestSource(), 9u);
  EXPECT_EQ(*model.PooledWidth(), 8u);
  EXPECT_EQ(*model.ScoreCount(), 3u);
  EXPECT_EQ(*model.TextSegments("t5 [MASK] ||| t7"), (std::vector<uint32_t>{0, 0, 0, 0, 1, 1}));
  Session session = std::move(*Session::Create(model));
  EXPECT_EQ(session.LookAt(0).code(), KINGLET_NO_SOURCE_YET);
  const uint32_t ids[] = {2, 5, 4, 3, 7, 3}, segments[] = {0, 0, 0, 0, 1, 1};
  ASSERT_TRUE(session.Read(ids, segments, 6).ok());
  ASSERT_TRUE(session.LookAt(2).ok());
  EXPECT_TRUE(session.LogProbability(5).ok());
  const std::vector<double> pooled = *session.Pooled();
  ASSERT_EQ(pooled.size(), 8u);
  EXPECT_EQ(session.Scores()->size(), 3u);
  ASSERT_TRUE(session.Read(ids, nullptr, 6).ok());
  EXPECT_NE(*session.Pooled(), pooled);
  Session plain = std::move(*Session::Create(OpenModel(TEST_MODEL_CACHE)));
  EXPECT_EQ(plain.Pooled().status().code(), KINGLET_UNSUPPORTED);
  EXPECT_EQ(plain.Scores().status().code(), KINGLET_UNSUPPORTED);
  EXPECT_EQ(*OpenModel(TEST_MODEL_CACHE).LongestSource(), 0u);
}

TEST(KingletHpp, LanesAndStates) {
  const Model model = OpenModel(TEST_MODEL_CACHE);
  kinglet::SessionOptions options;
  options.lanes = 2;
  Session session = std::move(*Session::Create(model, options));
  EXPECT_EQ(*session.Lanes(), 2U);
  const uint32_t lanes[] = {1, 0}, ids[] = {4, 5};
  ASSERT_TRUE(session.StepLanes(lanes, ids, 2).ok());
  EXPECT_NE(*session.LogProbabilities(0), *session.LogProbabilities(1));
  ASSERT_TRUE(session.Fork(0, 1).ok());
  EXPECT_EQ(*session.LogProbabilities(0), *session.LogProbabilities(1));
  const uint32_t parents[] = {KINGLET_NO_PARENT, 0};
  Session tree = std::move(*Session::Create(model, options));
  const std::vector<double> values = *tree.ScoreTree(parents, ids, 2);
  ASSERT_TRUE(tree.Step(4).ok());
  EXPECT_EQ(values, (std::vector<double>{0, *tree.LogProbability(5)}));
  EXPECT_EQ(tree.ScoreTree(ids, ids, 2).status().code(), KINGLET_INVALID_ARGUMENT);

  Beam beam = std::move(*Beam::Create(model));
  const uint64_t start = *beam.Begin();
  const uint64_t four = *beam.Step(start, 4);
  const std::vector<uint64_t> next = *beam.Step(std::vector<uint64_t>(2, four).data(), ids, 2);
  EXPECT_EQ(*beam.Step(four, 5), next[1]);
  EXPECT_EQ(*beam.Tokens(next[1]), (std::vector<uint32_t>{4, 5}));
  EXPECT_EQ(beam.LogProbability(&four, ids + 1, 1)->front(), values[1]);
  ASSERT_TRUE(tree.Step(5).ok());
  EXPECT_EQ(*beam.LogProbabilities(&next[1], 1), *tree.LogProbabilities());
  EXPECT_EQ((*beam.TopK(next.data(), 2, 3))[1][0].id, (*tree.TopK(3))[0].id);
  EXPECT_TRUE(*beam.Save(next[1]) == *tree.Save());
  EXPECT_EQ(*beam.Stepped(), 3U);
  EXPECT_EQ(beam.Begin(*tree.Save()).status().code(), KINGLET_OK);
  ASSERT_TRUE(beam.Hold({four}).ok() && beam.Drop({four, four}).ok());
  EXPECT_EQ(beam.Drop({four}).code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_TRUE(beam.Cancel().ok());

  const char* const file = TestNgramFile();
  const Ngrams ngrams = std::move(*Ngrams::Open(file));
  std::remove(file);
  kinglet_ngram_state words_before = *ngrams.Begin();
  EXPECT_NEAR(*ngrams.Score(words_before, *ngrams.Word("w3")), -0.25 * std::log(10), 1e-7);
  Scorer scorer = std::move(*Scorer::Create(model, 0, 0));
  ASSERT_TRUE(scorer.AddNgrams(ngrams, KINGLET_NGRAMS_ADDED, 2).ok());
  ASSERT_TRUE(scorer.AddPhrase({3, 4}, 1).ok());
  kinglet::BeamOptions with_scorer;
  with_scorer.scorer = scorer.get();
  Beam scored = std::move(*Beam::Create(model, with_scorer));
  const uint64_t three = *scored.Step(*scored.Step(*scored.Begin(), 1), 3);
  const uint32_t next_word = 4;
  EXPECT_NEAR(scored.LogProbability(&three, &next_word, 1)->front(), 1, 1e-6);

  const State first = *session.Save(0);
  ASSERT_TRUE(session.Cancel().ok());
  EXPECT_EQ(session.Step(6).code(), KINGLET_CANCELLED);
  ASSERT_TRUE(session.Step(6).ok());
  const State second = *session.Save(0);
  const State copy = first;  // NOLINT: a copy is what is tested
  EXPECT_TRUE(first == copy && first != second);
  EXPECT_EQ(*first.Hash(), *copy.Hash());
  EXPECT_EQ(*first.Position(), 1U);
  const std::vector<float> before = *session.LogProbabilities(1);
  ASSERT_TRUE(session.Restore(copy, 0).ok());
  EXPECT_EQ(*session.LogProbabilities(0), before);

  const std::vector<unsigned char> bytes = *second.Write();
  EXPECT_EQ(bytes.size(), *second.Bytes());
  const Result<State> read = State::Read(model, bytes.data(), bytes.size());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(*read == second);
  EXPECT_EQ(State::Read(model, bytes.data(), bytes.size() - 1).status().code(), KINGLET_CORRUPT);
  const Model other = OpenModel(TEST_MODEL_OTHER);
  EXPECT_EQ(State::Read(other, bytes.data(), bytes.size()).status().code(), KINGLET_MISMATCH);
  ASSERT_TRUE(session.Reset().ok());
  EXPECT_EQ(*session.Position(), 0U);
}

TEST(KingletHpp, WhatWasMovedFromIsRefused) {
  Model model = OpenModel(TEST_MODEL_PLAIN);
  const Model taken = std::move(model);
  EXPECT_EQ(model.VocabularySize().status().code(),  // NOLINT: use after move is tested
            KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(model.Digest().status().code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(Session::Create(model).status().code(), KINGLET_INVALID_ARGUMENT);
  Session session = std::move(*Session::Create(taken));
  State state = *session.Save();
  const Session moved_to = std::move(session);
  const State kept = std::move(state);
  EXPECT_EQ(session.Step(0).code(), KINGLET_INVALID_ARGUMENT);  // NOLINT
  EXPECT_EQ(session.Save().status().code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(state.Write().status().code(), KINGLET_INVALID_ARGUMENT);  // NOLINT
  EXPECT_FALSE(state == kept);
  EXPECT_TRUE(kept.Write().ok());
}

TEST(KingletH, CompilesAsCxx11) { EXPECT_TRUE(SameVersionInCxx11()); }

}  // namespace
