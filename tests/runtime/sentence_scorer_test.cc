#include "runtime/sentence_scorer.h"

#include <gtest/gtest.h>

#include "tests/support/model_builder.h"
#include "tests/support/transformer_builder.h"

namespace kinglet::sentence_scorer_test {
namespace {

using Sentence = std::vector<uint32_t>;

std::shared_ptr<const Model> ModelOf(const ModelDraft& draft) {
  return *Model::FromFile(*ModelFile::FromBytes(*SerialiseModel(draft)), {});
}

// log p of the sentences' tokens, in order.
std::vector<std::vector<double>> Score(const std::shared_ptr<const Model>& model,
                                       const std::vector<Sentence>& streams, uint32_t lanes,
                                       uint32_t threads = 1) {
  auto scorer = *SentenceScorer::Create(model, {.lanes = lanes, .threads = threads});
  std::vector<std::vector<double>> scored;
  for (int round = 0; round < 2; ++round) {  // a scorer may be used again
    scored.clear();
    size_t taken = 0;
    const Status status = scorer.Run(
        [&](SentenceStream& stream) {
          if (taken == streams.size()) return false;
          stream.tokens = streams[taken++];
          return true;
        },
        [&](uint64_t index, std::span<const ScoredToken> tokens) {
          EXPECT_EQ(index, scored.size());
          scored.emplace_back();
          for (const ScoredToken& token : tokens) scored.back().push_back(token.log_probability);
          return Status();
        },
        [](uint64_t index, size_t) { return "line " + std::to_string(index); });
    EXPECT_TRUE(status.ok()) << status.message();
  }
  return scored;
}

TEST(SentenceScorer, AsManySessionsWouldScore) {
  const auto model = ModelOf(TinyTransformer());
  const std::vector<Sentence> streams = {{1, 2, 3}, {},     {4}, {5, 6}, {7, 8, 9, 10, 11, 12, 13},
                                         {1, 2, 3}, {16, 0}};
  const auto expected = Score(model, streams, 1);
  ASSERT_EQ(expected.size(), streams.size());
  for (size_t i = 0; i < streams.size(); ++i) {
    const auto session = *Session::Create(model);
    std::vector<double> alone;
    for (size_t t = 0; t + 1 < streams[i].size(); ++t) {
      ASSERT_TRUE(session->StepToken(streams[i][t]).ok());
      alone.push_back(*session->LogProbability(streams[i][t + 1]));
    }
    EXPECT_EQ(expected[i], alone) << i;
  }
  for (const uint32_t lanes : {2u, 3u, 7u, 64u}) {
    EXPECT_EQ(Score(model, streams, lanes), expected) << lanes;
    EXPECT_EQ(Score(model, streams, lanes, 2), expected) << lanes;
  }
  EXPECT_TRUE(Score(model, {}, 3).empty());
}

TEST(SentenceScorer, EveryWayGivesTheSameValues) {
  const auto model = ModelOf(TinyTransformer());
  std::vector<SentenceStream> streams;
  std::vector<uint32_t> tokens;
  for (uint32_t i = 0; i < 70; ++i) tokens.push_back(i * 7 % 17);
  // Equal streams, beginnings of others, none, and more tokens than go together.
  for (const size_t size : {70u, 40u, 0u, 1u, 2u, 40u, 70u, 33u}) {
    streams.push_back({std::nullopt, {tokens.begin(), tokens.begin() + size}, size > 60 ? 5u : 0u});
  }
  streams[1].tokens[20] = 16;
  auto scorer = *SentenceScorer::Create(model, {.lanes = 3});
  using Values = std::vector<std::vector<double>>;
  const auto name = [](uint64_t index, size_t) { return std::to_string(index); };
  const std::vector<size_t> all = {0, 1, 2, 3, 4, 5, 6, 7};
  using Way = Status (SentenceScorer::*)(std::span<const SentenceStream>, std::span<const size_t>,
                                         const SentenceScorer::Sink&, const SentenceScorer::Name&);
  const auto values_of = [&](Way run) {
    Values values(streams.size());
    const auto sink = [&](uint64_t index, std::span<const ScoredToken> scored) {
      for (const ScoredToken& token : scored) values[index].push_back(token.log_probability);
      return Status();
    };
    const Status status = (scorer.*run)(streams, all, sink, name);
    EXPECT_TRUE(status.ok()) << status.message();
    return values;
  };
  const Values in_lanes = values_of(&SentenceScorer::RunInLanes);
  EXPECT_EQ(in_lanes[0].size(), 64u);
  EXPECT_EQ(in_lanes[4].size(), 1u);
  EXPECT_EQ(values_of(&SentenceScorer::RunInTurn), in_lanes);
  EXPECT_EQ(values_of(&SentenceScorer::RunAsTree), in_lanes);
}

TEST(SentenceScorer, EveryWayNamesTheStreamThatIsRefused) {
  const auto model = ModelOf(TinyTransformer());
  auto scorer = *SentenceScorer::Create(model, {.lanes = 2});
  const std::vector<SentenceStream> streams = {{{}, {1, 2, 3}, 0}, {{}, {1, 2, 99, 4}, 0}};
  const auto ignore = [](uint64_t, std::span<const ScoredToken>) { return Status(); };
  const auto name = [](uint64_t index, size_t) { return "line " + std::to_string(index + 1); };
  const std::vector<size_t> all = {0, 1};
  for (const Status& status :
       {scorer.RunInLanes(streams, all, ignore, name), scorer.RunInTurn(streams, all, ignore, name),
        scorer.RunAsTree(streams, all, ignore, name)}) {
    EXPECT_EQ(status.code(), KINGLET_ID_OUT_OF_RANGE);
    EXPECT_TRUE(status.message().starts_with("line 2: ")) << status.message();
  }
}

TEST(SentenceScorer, ErrorsNameTheSentence) {
  const auto model = ModelOf(TinyTransformer());
  auto scorer = *SentenceScorer::Create(model, {.lanes = 2});
  size_t taken = 0;
  const auto name = [](uint64_t index, size_t at) {
    return "line " + std::to_string(index + 1) + ", token " + std::to_string(at);
  };
  const auto next = [&](SentenceStream& stream) {
    stream.tokens = {1, taken == 1 ? 99u : 2u};
    return taken++ < 3;
  };
  const auto ignore = [](uint64_t, std::span<const ScoredToken>) { return Status(); };
  const Status status = scorer.Run(next, ignore, name);
  EXPECT_EQ(status.code(), KINGLET_ID_OUT_OF_RANGE);
  EXPECT_TRUE(status.message().starts_with("line 2, token 1: ")) << status.message();
  taken = 2;
  const auto stop = [](uint64_t, std::span<const ScoredToken>) {
    return Status(KINGLET_IO_ERROR, "full");
  };
  EXPECT_EQ(scorer.Run(next, stop, name).code(), KINGLET_IO_ERROR);
}

TEST(SentenceFrame, TheFamilysTokensAndOtherwiseTheVocabularys) {
  ModelDraft draft = TinyTransformer();
  for (uint32_t i = 0; i < 17; ++i) draft.vocabulary.push_back("w" + std::to_string(i));
  const auto frame_of = [](const ModelDraft& from) {
    const auto model = ModelOf(from);
    return FrameOf(model->file().description(), model->vocabulary());
  };
  EXPECT_FALSE(frame_of(draft).begin || frame_of(draft).end);
  draft.vocabulary[5] = "</s>";
  EXPECT_EQ(frame_of(draft).begin, 5u);
  EXPECT_EQ(frame_of(draft).end, 5u);
  draft.vocabulary[6] = "<eos>";
  EXPECT_EQ(frame_of(draft).end, 6u);
  draft.description.start_token = 1;
  EXPECT_EQ(frame_of(draft).begin, 1u);
  EXPECT_EQ(frame_of(draft).end, 6u);
  draft.description.end_token = 2;
  EXPECT_EQ(frame_of(draft).end, 2u);
  EXPECT_EQ(Framed({1, 2}, Sentence{7, 8}), (Sentence{1, 7, 8, 2}));
  EXPECT_EQ(Framed({}, Sentence{7}), (Sentence{7}));
}

}  // namespace
}  // namespace kinglet::sentence_scorer_test
