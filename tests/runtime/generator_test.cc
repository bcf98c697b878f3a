#include "runtime/generator.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "format/digest.h"
#include "tests/runtime/session_fixture.h"

namespace kinglet::generator_test {
namespace {

using Ids = std::vector<uint32_t>;
using Streams = std::vector<Generator::Stream>;

Streams Generate(const std::shared_ptr<const Model>& model, const GenerationOptions& options,
                 const Ids& prompt) {
  auto generator = Generator::Create(model, options);
  EXPECT_TRUE(generator.ok()) << generator.status().message();
  if (!generator.ok()) return {};
  // In two parts.
  EXPECT_TRUE(generator->Feed(std::span(prompt).first(prompt.size() / 2)).ok());
  EXPECT_TRUE(generator->Feed(std::span(prompt).subspan(prompt.size() / 2)).ok());
  for (bool more = true; more;) {
    const auto next = generator->Next();
    EXPECT_TRUE(next.ok()) << next.status().message();
    more = next.ok() && *next;
  }
  EXPECT_FALSE(*generator->Next());  // there is nothing more
  return generator->streams();
}

// What a program draws with a session of its own.
Ids DrawAlone(const std::shared_ptr<const Model>& model, const GenerationOptions& options,
              const Ids& prompt, uint64_t seed) {
  const auto session = Start(model);
  for (const uint32_t id : prompt) EXPECT_TRUE(session->StepToken(id).ok());
  Ids drawn;
  for (uint64_t i = 0; i < options.tokens; ++i) {
    drawn.push_back(*session->Draw(seed, options.draw));
    EXPECT_TRUE(session->StepToken(drawn.back()).ok());
  }
  return drawn;
}

TEST(Generator, AStreamDoesNotDependOnOtherStreams) {
  for (const bool quantised : {false, true}) {
    const auto model = Open(TinyMicronet(WholeOptions(quantised)), "cpu");
    GenerationOptions options;
    options.tokens = 12;
    options.seed = 5;
    options.streams = 11;
    options.draw = {.temperature = 1.2, .top_k = 30, .top_p = 0.95, .excluded = {2}};
    const Ids prompt = {3, 1, 4};
    const Streams together = Generate(model, options, prompt);
    ASSERT_EQ(together.size(), 11u);
    for (uint32_t i = 0; i < options.streams; ++i) {
      EXPECT_EQ(together[i].ids, DrawAlone(model, options, prompt, SeedOfStream(5, i))) << i;
      EXPECT_TRUE(together[i].ended);
    }
    EXPECT_NE(together[0].ids, together[1].ids);
    for (const uint32_t streams : {1u, 2u}) {
      options.streams = streams;
      options.threads = 2;
      const Streams fewer = Generate(model, options, prompt);
      for (uint32_t i = 0; i < streams; ++i) {
        EXPECT_EQ(fewer[i].ids, together[i].ids);
        EXPECT_EQ(fewer[i].text, together[i].text);
      }
    }
  }
}

TEST(Generator, SeedsOfStreamsAreTheDocumentedOnes) {
  for (const uint64_t seed : {uint64_t{0}, uint64_t{7}, UINT64_MAX}) {
    EXPECT_EQ(SeedOfStream(seed, 0), seed);
    const std::array<uint64_t, 2> key = {seed, 3};
    EXPECT_EQ(SeedOfStream(seed, 3), Digest64(std::as_bytes(std::span<const uint64_t>(key))));
  }
}

TEST(Generator, TheTextIsTheDrawnTokens) {
  const auto model = Open(TinyMicronet(WholeOptions(true)), "cpu");
  GenerationOptions options;
  options.tokens = 40;
  const Streams streams = Generate(model, options, {3});
  std::string text;
  for (size_t i = 0; i < streams[0].ids.size(); ++i) {
    const uint32_t id = streams[0].ids[i];
    const bool after_line = i > 0 && streams[0].ids[i - 1] == 1;
    text += id == 1 ? "\n" : (after_line ? "" : " ") + model->vocabulary()->Word(id);
  }
  EXPECT_EQ(streams[0].text, text);
  // Up to the third token of it.
  const std::string token = model->vocabulary()->Word(streams[0].ids[2]);
  options.stop = token;
  const Streams stopped = Generate(model, options, {3});
  EXPECT_EQ(stopped[0].text, text.substr(0, text.find(token)));
  EXPECT_LE(stopped[0].ids.size(), 3u);
  EXPECT_TRUE(stopped[0].ended);
}

TEST(Generator, StreamsEndOneByOne) {
  const auto model = Open(TinyMicronet(WholeOptions(true)), "cpu");
  GenerationOptions options;
  options.tokens = 60;
  options.streams = 6;
  const Streams whole = Generate(model, options, {3});
  options.stop = " w1";  // w10 .. w19
  const Streams stopped = Generate(model, options, {3});
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(stopped[i].text, whole[i].text.substr(0, whole[i].text.find(" w1"))) << i;
    EXPECT_TRUE(std::equal(stopped[i].ids.begin(), stopped[i].ids.end(), whole[i].ids.begin()));
  }
}

TEST(Generator, AModelOfSentencesEndsWithItsEndToken) {
  ModelDraft draft = TinyMicronet(WholeOptions(true));
  draft.description.start_token = 1;
  draft.description.end_token = 1;
  const auto model = Open(draft, "cpu");
  GenerationOptions options;
  options.tokens = 1000;
  options.streams = 4;
  for (const auto& stream : Generate(model, options, {})) {
    ASSERT_LT(stream.ids.size(), 1000u);
    EXPECT_EQ(std::count(stream.ids.begin(), stream.ids.end(), 1u), 1);
    EXPECT_EQ(stream.ids.back(), 1u);
    EXPECT_EQ(stream.text.find('\n'), std::string::npos);
    EXPECT_NE(stream.text.substr(0, 1), " ");
  }
  // The start token comes before a prompt.
  options.tokens = 3;
  options.streams = 1;
  options.draw.excluded = {1};
  EXPECT_EQ(Generate(model, options, {5, 6})[0].ids,
            DrawAlone(model, options, {1, 5, 6}, options.seed));
}

TEST(Generator, WithoutAPromptATextBegins) {
  const auto model = Open(TinyMicronet(WholeOptions(true)), "cpu");
  GenerationOptions options;
  options.tokens = 5;
  const Streams streams = Generate(model, options, {});
  EXPECT_EQ(streams[0].ids, DrawAlone(model, options, {1}, 0));  // <eos>
  EXPECT_NE(streams[0].text.substr(0, 1), " ");
  TinyOptions ids_only = WholeOptions(true);
  ids_only.vocabulary = false;
  auto refused = Generator::Create(Open(TinyMicronet(ids_only), "cpu"), options);
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(refused->Next().status().code(), KINGLET_INVALID_ARGUMENT);
  ASSERT_TRUE(refused->Feed(Ids{3}).ok());
  EXPECT_TRUE(refused->Next().ok());
}

TEST(Generator, ErrorsAreThoseOfTheSession) {
  const auto model = Open(TinyMicronet(WholeOptions(true)), "cpu");
  GenerationOptions options;
  options.streams = 0;
  EXPECT_EQ(Generator::Create(model, options).status().code(), KINGLET_INVALID_ARGUMENT);
  options.streams = 1;
  options.draw.temperature = -1;
  auto generator = Generator::Create(model, options);
  ASSERT_TRUE(generator.ok());
  EXPECT_EQ(generator->Feed(Ids{3, 40}).code(), KINGLET_ID_OUT_OF_RANGE);
  EXPECT_EQ(generator->Next().status().code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_TRUE(generator->streams()[0].ids.empty());
}

}  // namespace
}  // namespace kinglet::generator_test
