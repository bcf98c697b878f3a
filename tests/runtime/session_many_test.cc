// A given text of one stream: every log-probability and state is that of single steps.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/session.h"
#include "runtime/text_block.h"
#include "tests/runtime/session_fixture.h"
#include "tests/support/define_builder.h"
#include "tests/support/device_backends.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/recurrent_translation_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/support/translation_builder.h"

namespace kinglet::session_many_test {
namespace {

struct NamedDraft {
  std::string name;
  ModelDraft draft;
  bool has_source = false;
};

// Windows and caches are shorter than a text block, which so wraps around them several times.
std::vector<NamedDraft> Drafts() {
  std::vector<NamedDraft> drafts;
  for (const bool quantised : {false, true}) {
    const std::string suffix = quantised ? ", 9 bits" : ", float32";
    TinyOptions micronet;
    micronet.quantised = quantised;
    micronet.cache_capacity = 7;
    drafts.push_back({"MicroNet" + suffix, TinyMicronet(micronet)});
    micronet.cache_capacity = 1;
    micronet.window = 1;
    drafts.push_back({"MicroNet with one slot" + suffix, TinyMicronet(micronet)});
    micronet.cache_capacity = 50;
    micronet.window = 40;
    drafts.push_back({"MicroNet, long memory" + suffix, TinyMicronet(micronet)});
    // Several chunks of a cache whose keys take 9 bits, as do the window's keys and values.
    micronet.cache_capacity = 150;
    micronet.width = 40;
    micronet.heads = 5;
    micronet.key_size = 8;
    micronet.value_size = 24;
    drafts.push_back({"MicroNet, long cache" + suffix, TinyMicronet(micronet)});
    for (const TinyPositions positions : {TinyPositions::kSlots, TinyPositions::kRelative,
                                          TinyPositions::kAbsolute, TinyPositions::kTable}) {
      for (const bool masked : {false, true}) {
        TinyTransformerOptions options;
        options.positions = positions;
        options.quantised = quantised;
        options.bits = quantised ? 9 : 0;
        ModelDraft draft = TinyTransformer(options);
        if (masked) {
          for (Block& block : draft.description.blocks) {
            if (auto* decoder = std::get_if<TransformerDecoder>(&block)) decoder->masked_token = 2;
          }
        }
        drafts.push_back({"Transformer " + std::to_string(static_cast<int>(positions)) +
                              (masked ? ", masked" : "") + suffix,
                          std::move(draft)});
      }
    }
    for (const RecurrentCell cell :
         {RecurrentCell::kLstm, RecurrentCell::kGru, RecurrentCell::kTanh, RecurrentCell::kQrnn}) {
      TinyRecurrentOptions options;
      options.cells = {cell, cell};
      options.quantised = quantised;
      options.bits = quantised ? 9 : 0;
      options.cache_capacity = 5;
      drafts.push_back(
          {"recurrent " + std::to_string(static_cast<int>(cell)) + suffix, TinyRecurrent(options)});
      if (cell != RecurrentCell::kLstm) continue;
      options.projected = 5;
      drafts.push_back({"projected LSTM" + suffix, TinyRecurrent(options)});
    }
    TinyTranslationOptions translation;
    translation.quantised = quantised;
    translation.bits = quantised ? 9 : 0;
    drafts.push_back({"translation" + suffix, TinyTranslation(translation), true});
    TinyRecurrentTranslationOptions recurrent;
    recurrent.quantised = quantised;
    drafts.push_back({"recurrent translation" + suffix, TinyRecurrentTranslation(recurrent), true});
  }
  drafts.push_back({"kept DeFINE rows", TinyDefine()});
  return drafts;
}

void Begin(Session& session, bool has_source) {
  if (!has_source) return;
  const Status encoded = session.Encode(std::vector<uint32_t>{4, 2, 7});
  ASSERT_TRUE(encoded.ok()) << encoded.message();
}

bool SameBits(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

struct Single {
  std::vector<double> log_probabilities;
  std::vector<State> states;  // after each token
};

Single StepByStep(const std::shared_ptr<const Model>& model, std::span<const uint32_t> ids,
                  bool has_source, const SessionOptions& options = {}) {
  const auto session = Start(model, options);
  Begin(*session, has_source);
  Single single;
  for (size_t i = 0; i < ids.size(); ++i) {
    double log_probability = std::numeric_limits<double>::quiet_NaN();
    if (i > 0) log_probability = *session->LogProbability(ids[i]);
    single.log_probabilities.push_back(log_probability);
    EXPECT_TRUE(session->StepToken(ids[i]).ok());
    single.states.push_back(*session->Save());
  }
  return single;
}

std::vector<uint32_t> TextOf(const Model& model, size_t longest) {
  const uint64_t positions = PositionsOf(model.file().description()).value_or(longest);
  return Tokens(std::min<uint64_t>(longest, positions), model.vocabulary_size());
}

// The text in parts of these sizes, in turn.
void CheckParts(const NamedDraft& of, const std::string& backend, std::vector<size_t> sizes,
                const SessionOptions& options) {
  SCOPED_TRACE(of.name + ", " + backend + ", parts of " + std::to_string(sizes.front()));
  const auto model = Open(of.draft, backend);
  const std::vector<uint32_t> ids = TextOf(*model, 150);
  const Single single = StepByStep(model, ids, of.has_source, {.empty_cache = options.empty_cache});
  const auto session = Start(model, options);
  Begin(*session, of.has_source);
  size_t part = 0;
  for (size_t at = 0; at < ids.size();) {
    const size_t count = std::min(sizes[part++ % sizes.size()], ids.size() - at);
    std::vector<double> out(count);
    uint64_t processed = 99;
    const Status status = session->StepMany(std::span(ids).subspan(at, count), out, processed);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(processed, count);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(SameBits(out[i], single.log_probabilities[at + i]))
          << at + i << ": " << out[i] << ", " << single.log_probabilities[at + i];
    }
    at += count;
    ASSERT_EQ(session->position(), at);
    if (count == 0) continue;
    ASSERT_TRUE(*session->Save() == single.states[at - 1]) << at;
  }
}

TEST(SessionMany, EveryModelHasTheBitsOfSingleSteps) {
  for (const NamedDraft& draft : Drafts()) {
    for (const Backend& backend : Backends()) {
      const std::string name(backend.name);
      CheckParts(draft, name, {1000}, {});
      CheckParts(draft, name, {1, 33, 0, 7, 64, 2}, {.lanes = 2});
    }
    CheckParts(draft, "cpu", {1000}, {.lanes = 9, .threads = 2});
    CheckParts(draft, "cpu", {31}, {.empty_cache = EmptyCache::kNormalised, .threads = 2});
  }
}

TEST(SessionMany, WithoutQueriesTheStateIsTheSame) {
  for (const bool quantised : {false, true}) {
    const auto model = Open(TinyMicronet({.quantised = quantised, .cache_capacity = 7}), "cpu");
    const auto ids = Tokens(77, 23);
    const Single single = StepByStep(model, ids, false);
    const auto session = Start(model);
    uint64_t processed = 0;
    ASSERT_TRUE(session->StepMany(ids, {}, processed).ok());
    EXPECT_EQ(processed, ids.size());
    EXPECT_TRUE(*session->Save() == single.states.back());
  }
}

TEST(SessionMany, ScoringLeavesTheLastTokenOut) {
  for (const NamedDraft& draft : Drafts()) {
    SCOPED_TRACE(draft.name);
    const auto model = Open(draft.draft, "cpu");
    for (const size_t size : {0u, 1u, 2u, 33u, 34u, 70u}) {
      const std::vector<uint32_t> ids = TextOf(*model, size);
      const Single single = StepByStep(model, ids, draft.has_source);
      const auto session = Start(model);
      Begin(*session, draft.has_source);
      std::vector<double> out(std::max<size_t>(ids.size(), 1) - 1);
      uint64_t processed = 99;
      ASSERT_TRUE(session->ScoreMany(ids, out, processed).ok());
      ASSERT_EQ(processed, out.size());
      for (size_t i = 0; i < out.size(); ++i) {
        ASSERT_TRUE(SameBits(out[i], single.log_probabilities[i + 1])) << i;
      }
      if (processed > 0) {
        ASSERT_TRUE(*session->Save() == single.states[processed - 1]) << size;
      }
    }
  }
}

TEST(SessionMany, RefusesBeforeAnythingRuns) {
  const auto session = Start(Open(TinyMicronet({.cache_capacity = 7}), "cpu"), {.lanes = 2});
  uint64_t processed = 0;
  ASSERT_TRUE(session->StepMany(Tokens(5, 23), {}, processed).ok());
  const State before = *session->Save();
  std::vector<uint32_t> ids = Tokens(70, 23);
  ids[50] = 23;
  std::vector<double> out(70, 5.0);
  EXPECT_EQ(session->StepMany(ids, out, processed).code(), KINGLET_ID_OUT_OF_RANGE);
  EXPECT_EQ(processed, 0);
  EXPECT_EQ(out, std::vector<double>(70, 5.0));
  ids[50] = 0;
  EXPECT_EQ(session->StepMany(ids, std::span(out).first(69), processed).code(),
            KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session->StepMany(ids, out, processed, 2).code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_TRUE(*session->Save() == before);
  EXPECT_EQ(session->position(1), 0);
  const std::vector<std::vector<uint32_t>> texts = {{1, 2, 3}, {4, 23, 5}, {6, 7}};
  std::vector<double> numbers(5);
  const std::span<double> out_of(numbers);
  TextProgress done;
  const std::vector<ScoredText> scored = {{texts[0], 0, out_of.first(2)},
                                          {texts[1], 1, out_of.first(1)},
                                          {texts[2], 0, out_of.first(2)}};
  // Texts before the one that is refused are complete.
  EXPECT_EQ(session->ScoreTexts(scored, done, 1).code(), KINGLET_ID_OUT_OF_RANGE);
  EXPECT_EQ(done.texts, 1u);
  EXPECT_EQ(session->position(1), 2u);
  EXPECT_EQ(session->ScoreTexts(std::span(scored).subspan(2), done, 1).code(),
            KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session->ScoreTexts({}, done, 2).code(), KINGLET_INVALID_ARGUMENT);
  const auto translation = Start(Open(TinyTranslation(), "cpu"));
  EXPECT_EQ(translation->ScoreTexts({}, done).code(), KINGLET_UNSUPPORTED);
  EXPECT_EQ(translation->StepMany(std::vector<uint32_t>{2}, {}, processed).code(),
            KINGLET_NO_SOURCE_YET);
}

// Cancels before the n-th node for every n: complete text blocks are processed, and the text
// continues after them with the same bits.
TEST(SessionMany, CancelledInTheMiddleATextContinuesWithTheSameBits) {
  const auto model = Open(TinyMicronet({.quantised = true, .cache_capacity = 7}), "cpu");
  const auto ids = Tokens(70, 23);
  const Single single = StepByStep(model, ids, false);
  bool ended = false;
  for (size_t n = 0; !ended; n += 1 + n / 8) {
    const auto session = Start(model);
    size_t nodes = 0;
    session->set_observer({}, [&](const Node&, std::span<const StreamFrame>) {
      if (nodes++ == n) session->Cancel();
    });
    std::vector<double> out(ids.size());
    uint64_t processed = 0;
    const Status status = session->StepMany(ids, out, processed);
    ended = status.ok();
    ASSERT_TRUE(ended || status.code() == KINGLET_CANCELLED) << status.message();
    ASSERT_EQ(session->position(), processed);
    if (processed > 0) {
      ASSERT_TRUE(*session->Save() == single.states[processed - 1]) << n;
    }
    for (size_t i = 1; i < processed; ++i) ASSERT_EQ(out[i], single.log_probabilities[i]);
    if (ended) break;
    session->set_observer({});
    // A cancellation before the very last node may be seen only now.
    static_cast<void>(session->TakeCancellation("test"));
    uint64_t more = 0;
    const std::span<double> rest = std::span(out).subspan(processed);
    ASSERT_TRUE(session->StepMany(std::span(ids).subspan(processed), rest, more).ok());
    for (size_t i = 1; i < ids.size(); ++i) ASSERT_EQ(out[i], single.log_probabilities[i]) << n;
    ASSERT_TRUE(*session->Save() == single.states.back());
  }
}

TEST(SessionMany, WithoutRoomForATextBlockTokensGoOneByOne) {
  const auto bytes = SerialiseModel(TinyMicronet({.quantised = true, .cache_capacity = 7}));
  const auto ids = Tokens(70, 23);
  const auto roomy = Model::FromBytes(*bytes, {});
  const Single single = StepByStep(*roomy, ids, false);
  ModelOptions options;
  const auto open = [&](uint64_t limit) {
    options.memory_limit = limit;
    return Model::FromBytes(*bytes, options);
  };
  // The least limit for a session, which leaves no memory for a text block.
  uint64_t limit = 1024;
  while (!open(limit).ok() || !Session::Create(*open(limit)).ok()) limit += 1024;
  const auto model = *open(limit);
  const auto session = Start(model);
  ASSERT_LT(model->budget()->left(), TextBlock::Bytes(*model, TextBlock::TokensTogether(*model)));
  std::vector<double> out(ids.size());
  uint64_t processed = 0;
  ASSERT_TRUE(session->StepMany(ids, out, processed).ok());
  for (size_t i = 1; i < ids.size(); ++i) ASSERT_EQ(out[i], single.log_probabilities[i]);
}

TEST(SessionMany, AnEmulatedDeviceHasTheCall) {
  static const Backend kEmulated = EmulatedCuda();
  const auto bytes = SerialiseModel(TinyMicronet({.quantised = true, .cache_capacity = 7}));
  ModelOptions options;
  options.own_backend = &kEmulated;
  const auto device = Model::FromBytes(*bytes, options);
  ASSERT_TRUE(device.ok()) << device.status().message();
  const auto ids = Tokens(40, 23);
  const Single single = StepByStep(*Model::FromBytes(*bytes, {}), ids, false);
  const auto session = Start(*device);
  std::vector<double> out(ids.size());
  uint64_t processed = 0;
  ASSERT_TRUE(session->StepMany(ids, out, processed).ok());
  for (size_t i = 1; i < ids.size(); ++i) ASSERT_EQ(out[i], single.log_probabilities[i]);
}

}  // namespace
}  // namespace kinglet::session_many_test
