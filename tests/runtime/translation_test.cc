#include "runtime/translation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/session_fixture.h"
#include "tests/support/translation_builder.h"

namespace kinglet::translation_test {
namespace {

constexpr uint32_t kStart = 2, kEnd = 3;

struct Sequence {
  std::vector<uint32_t> ids;
  double log_probability = 0;
};

// log p of every word after a sequence, from a new stream.
std::vector<double> After(Session& session, const std::vector<uint32_t>& source,
                          const std::vector<uint32_t>& ids) {
  EXPECT_TRUE(session.Encode(source).ok());
  EXPECT_TRUE(session.StepToken(kStart).ok());
  for (const uint32_t id : ids) EXPECT_TRUE(session.StepToken(id).ok());
  return Full(session);
}

// The definition in runtime/translation.h without forks and top-k: steps every sequence again from
// its start and sorts all of its extensions.
std::vector<Translation> BeamByBruteForce(Session& session, const std::vector<uint32_t>& source,
                                          size_t beam, const TranslationOptions& options) {
  std::vector<Sequence> live = {{}};
  std::vector<Translation> finished;
  bool best_ended = false;
  const auto score = [&](double log_probability, size_t words) {
    const auto n = static_cast<double>(words);
    return options.penalty_form == LengthPenalty::kGnmt
               ? log_probability / std::pow((5 + n) / (5 + 1), options.length_penalty)
               : log_probability / std::pow(n, options.length_penalty);
  };
  for (uint32_t length = 1;; ++length) {
    struct Extension {
      size_t parent;
      uint32_t id;
      double log_probability;
    };
    std::vector<Extension> all;
    for (size_t i = 0; i < live.size(); ++i) {
      const std::vector<double> values = After(session, source, live[i].ids);
      for (uint32_t id = 0; id < values.size(); ++id) {
        all.push_back({i, id, live[i].log_probability + values[id]});
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const Extension& a, const Extension& b) {
      return a.log_probability > b.log_probability;
    });
    all.resize(std::min(all.size(), beam));
    std::vector<Sequence> next;
    for (const Extension& extension : all) {
      std::vector<uint32_t> ids = live[extension.parent].ids;
      if (extension.id == kEnd) {
        finished.push_back({ids, extension.log_probability,
                            score(extension.log_probability, ids.size() + 1), true});
        continue;
      }
      ids.push_back(extension.id);
      next.push_back({ids, extension.log_probability});
    }
    best_ended = best_ended || all.front().id == kEnd;
    live = next;
    if (length == options.max_length) {
      for (const Sequence& truncated : live) {
        finished.push_back({truncated.ids, truncated.log_probability,
                            score(truncated.log_probability, truncated.ids.size()), false});
      }
      break;
    }
    if (live.empty() || (best_ended && finished.size() >= options.n_best)) break;
  }
  std::stable_sort(finished.begin(), finished.end(),
                   [](const Translation& a, const Translation& b) { return a.score > b.score; });
  finished.resize(std::min<size_t>(finished.size(), options.n_best));
  return finished;
}

// A model that sometimes predicts the end token.
std::shared_ptr<const Model> EndingModel(uint64_t seed, const std::string& backend) {
  ModelDraft draft = TinyTranslation({.seed = seed});
  for (EncodedTensor& tensor : draft.tensors) {
    if (tensor.name == "crit.bias") std::get<DenseF32>(tensor.values).values[kEnd] += 1.0f;
  }
  return Open(draft, backend);
}

// Together each source has the translations that it has alone, with equal bits, in any number of
// lanes.
TEST(Translation, SourcesTogetherEqualEachAlone) {
  const std::vector<std::vector<uint32_t>> sources = {
      {4}, {1, 12, 0}, {9, 9, 2, 7, 3, 0, 5}, {99}, {5, 5}, {}, {2, 11, 4, 8}, {0}};
  for (const uint64_t seed : {1, 2, 3}) {
    const auto model = EndingModel(seed, seed == 2 ? "ref64" : "cpu");
    for (const uint32_t width : {1u, 3u}) {
      TranslationOptions options{kEnd, 6, 0.7};
      options.n_best = width;
      const auto alone = Start(model, {.lanes = width}), encoder = Start(model);
      for (const uint32_t lanes : {width, 2 * width, 3 * width + 1, 20u}) {
        const auto session = Start(model, {.lanes = lanes});
        const auto found = TranslateTogether(sources, width, options, *session, *encoder);
        ASSERT_TRUE(found.ok()) << found.status().message();
        ASSERT_EQ(found->size(), sources.size());
        for (size_t i = 0; i < sources.size(); ++i) {
          const auto expected = Translate(sources[i], options, *alone);
          const auto& answer = (*found)[i];
          ASSERT_EQ(answer.ok(), expected.ok()) << i;
          if (!expected.ok()) {
            EXPECT_EQ(answer.status().message(), expected.status().message());
            continue;
          }
          ASSERT_EQ(answer->size(), expected->size()) << i;
          for (size_t rank = 0; rank < expected->size(); ++rank) {
            const Translation &a = (*answer)[rank], &b = (*expected)[rank];
            EXPECT_EQ(a.ids, b.ids);
            EXPECT_EQ(a.log_probability, b.log_probability);
            EXPECT_EQ(a.score, b.score);
            EXPECT_EQ(a.finished, b.finished);
          }
        }
      }
      TranslationOptions wrong = options;
      wrong.max_length = 0;
      EXPECT_FALSE(TranslateTogether(sources, width, wrong, *alone, *encoder).ok());
    }
  }
}

TEST(Translation, EqualsABeamByBruteForce) {
  size_t finished = 0, truncated = 0, several = 0;
  for (const uint64_t seed : {1, 2, 3, 4}) {
    const auto model = EndingModel(seed, seed % 2 == 0 ? "ref64" : "cpu");
    const auto single = Start(model);
    for (const uint32_t beam : {1u, 2u, 3u, 5u, 40u}) {  // 40 is more than there are words
      const auto session = Start(model, {.lanes = beam});
      for (const std::vector<uint32_t>& source :
           {std::vector<uint32_t>{4}, {1, 12, 0}, {9, 9, 2, 7, 3, 0, 5}}) {
        for (const double penalty : {0.0, 1.0}) {
          TranslationOptions options{kEnd, 6, penalty};
          options.n_best = source.size() == 1 ? 1 : beam;
          if (source.size() == 3) options.penalty_form = LengthPenalty::kGnmt;
          const auto found = Translate(source, options, *session);
          ASSERT_TRUE(found.ok()) << found.status().message();
          const auto expected = BeamByBruteForce(*single, source, beam, options);
          ASSERT_EQ(found->size(), expected.size());
          for (size_t i = 0; i < expected.size(); ++i) {
            EXPECT_EQ((*found)[i].ids, expected[i].ids);
            EXPECT_EQ((*found)[i].log_probability, expected[i].log_probability);
            EXPECT_EQ((*found)[i].score, expected[i].score);
            EXPECT_EQ((*found)[i].finished, expected[i].finished);
          }
          finished += expected[0].finished;
          truncated += !expected[0].finished;
          several += expected.size() > 1;
        }
      }
    }
  }
  // Every kind of end occurred.
  EXPECT_GT(finished, 0u);
  EXPECT_GT(truncated, 0u);
  EXPECT_GT(several, 0u);
}

TEST(Translation, ABeamOfOneIsGreedy) {
  const auto model = EndingModel(1, "cpu");
  const auto session = Start(model), single = Start(model);
  const std::vector<uint32_t> source = {1, 12, 0};
  std::vector<uint32_t> greedy;
  while (greedy.size() < 9) {
    const std::vector<double> values = After(*single, source, greedy);
    const auto best = std::max_element(values.begin(), values.end()) - values.begin();
    if (best == kEnd) break;
    greedy.push_back(static_cast<uint32_t>(best));
  }
  EXPECT_EQ(Translate(source, {kEnd, 9, 0}, *session)->front().ids, greedy);
}

TEST(Translation, EquallyProbableWordsComeByLowerId) {
  ModelDraft draft = TinyTranslation();
  for (EncodedTensor& tensor : draft.tensors) {  // all words are equally probable
    auto* dense = std::get_if<DenseF32>(&tensor.values);
    if (dense != nullptr && (tensor.name == "word_emb" || tensor.name == "crit.bias")) {
      std::fill(dense->values.begin(), dense->values.end(), 0.0f);
    }
  }
  const auto session = Start(Open(draft, "ref"), {.lanes = 2});
  const auto found = Translate(std::vector<uint32_t>{1}, {kEnd, 3, 0, 2}, *session);
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].ids, (std::vector<uint32_t>{0, 0, 0}));
  EXPECT_EQ((*found)[1].ids, (std::vector<uint32_t>{0, 0, 1}));
  EXPECT_NEAR((*found)[0].log_probability, -3 * std::log(17.0), 1e-5);
}

TEST(Translation, Refusals) {
  const auto session = Start(Open(TinyTranslation(), "ref"));
  const std::vector<uint32_t> source = {1};
  const auto code = [&](const std::vector<uint32_t>& ids, const TranslationOptions& options) {
    return Translate(ids, options, *session).status().code();
  };
  EXPECT_EQ(code(source, {kEnd, 9, 0}), KINGLET_OK);
  EXPECT_EQ(code(source, {kEnd, 0, 0}), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(code(source, {kEnd, 10, 0}), KINGLET_INVALID_ARGUMENT);  // beyond the positions
  EXPECT_EQ(code(source, {17, 9, 0}), KINGLET_ID_OUT_OF_RANGE);
  EXPECT_EQ(code(source, {kEnd, 9, 0, 0}), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(code(source, {kEnd, 9, 0, 2}), KINGLET_INVALID_ARGUMENT);  // wider than the beam
  EXPECT_EQ(code(source, {kEnd, 9, -1}), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(code(source, {kEnd, 9, std::numeric_limits<double>::quiet_NaN()}),
            KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(code({}, {kEnd, 9, 0}), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(code({13}, {kEnd, 9, 0}), KINGLET_ID_OUT_OF_RANGE);
  session->Cancel();
  EXPECT_EQ(code(source, {kEnd, 9, 0}), KINGLET_CANCELLED);
  const auto language_model = Start(Open(TinyMicronet(), "ref"));
  EXPECT_EQ(Translate(source, {kEnd, 9, 0}, *language_model).status().code(), KINGLET_UNSUPPORTED);
}

}  // namespace
}  // namespace kinglet::translation_test
