#include "runtime/model.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "format/writer.h"
#include "runtime/session.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/transformer_builder.h"
#ifdef KINGLET_HAVE_CPU_BACKEND
#include "kernels/cpu/cpu.h"
#endif

namespace kinglet::model_test {
namespace {

std::vector<std::byte> Bytes() {
  TinyOptions options;
  options.cache_capacity = 8;
  return *SerialiseModel(TinyMicronet(options));
}

TEST(Model, BindsOneKernelPerNodeOnEveryBackend) {
  for (const Backend& backend : Backends()) {
    ModelOptions options;
    options.backend = std::string(backend.name);
    const auto model = Model::FromBytes(Bytes(), options);
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ((*model)->kernels().size(), (*model)->plan().nodes.size());
    EXPECT_EQ((*model)->backend().name, backend.name);
    for (const Kernel& kernel : (*model)->kernels()) EXPECT_TRUE(static_cast<bool>(kernel));
  }
}

TEST(Model, RefusesAnUnknownBackend) {
  ModelOptions options;
  options.backend = "gpu";
  EXPECT_EQ(Model::FromBytes(Bytes(), options).status().code(), KINGLET_UNSUPPORTED);
}

TEST(Model, RefusesAMissingFile) {
  const auto model = Model::Open("no/such/model.kgl", {});
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), KINGLET_NOT_FOUND);
  EXPECT_NE(model.status().message().find("no/such/model.kgl"), std::string::npos);
}

TEST(Model, TheMemoryLimitCoversFileWeightsAndSessions) {
  const auto bytes = Bytes();
  for (const Backend& backend : Backends()) {
    ModelOptions options{.backend = std::string(backend.name)};
    const auto measured = Model::FromBytes(bytes, options);
    ASSERT_TRUE(measured.ok());
    const uint64_t model_bytes = MemoryBudget::kNoLimit - (*measured)->budget()->left();
    EXPECT_GT(model_bytes, bytes.size());
    for (const uint64_t limit :
         {uint64_t{0}, uint64_t{bytes.size() - 1}, uint64_t{bytes.size()}, model_bytes - 1}) {
      options.memory_limit = limit;
      const auto refused = Model::FromBytes(bytes, options);
      ASSERT_FALSE(refused.ok()) << limit;
      EXPECT_EQ(refused.status().code(), KINGLET_OUT_OF_MEMORY);
      EXPECT_NE(refused.status().message().find("memory limit"), std::string::npos);
    }
    const uint64_t lane = Session::BytesPerLane(**measured);
    options.memory_limit = model_bytes + 3 * lane;
    const auto model = Model::FromBytes(bytes, options);
    ASSERT_TRUE(model.ok());
    auto two = Session::Create(*model, {.lanes = 2});
    ASSERT_TRUE(two.ok());
    EXPECT_EQ(Session::Create(*model, {.lanes = 2}).status().code(), KINGLET_OUT_OF_MEMORY);
    EXPECT_TRUE(Session::Create(*model).ok());  // and destroyed
    *two = nullptr;
    EXPECT_TRUE(Session::Create(*model, {.lanes = 3}).ok());
  }
}

// A file of a few hundred kB whose rows of relative positions take more than a file of this size
// may take without a limit. With a higher limit the file can be opened.
TEST(Model, WithoutALimitTheFileBoundsWhatOpeningTakes) {
  TinyTransformerOptions large;
  large.layers = 1;
  large.width = 64;
  large.heads = 1;
  large.key_size = 72;
  large.window = 1 << 18;
  const auto bytes = *SerialiseModel(TinyTransformer(large));
  ASSERT_LT(bytes.size(), 150'000u);
  for (const Backend& backend : Backends()) {
    ModelOptions options{.backend = std::string(backend.name)};
    if (backend.name == "ref" || backend.name == "ref64") options.memory_limit = 1 << 20;
    const auto refused = Model::FromBytes(bytes, options);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), KINGLET_OUT_OF_MEMORY);
    EXPECT_NE(refused.status().message().find("memory limit"), std::string::npos);
  }
  ModelOptions options;
  options.memory_limit = uint64_t{128} << 20;
  const auto model = Model::FromBytes(bytes, options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const uint64_t rows = uint64_t{1} << 18;
  EXPECT_GT((*model)->budget()->limit() - (*model)->budget()->left(), rows * 73 * sizeof(float));
}

TEST(Model, TheMemoryLimitCoversStates) {
  const auto bytes = Bytes();
  const auto measured = Model::FromBytes(bytes, {});
  ASSERT_TRUE(measured.ok());
  const uint64_t lane = Session::BytesPerLane(**measured);
  const uint64_t pages = PageCount((*measured)->layout());
  ModelOptions options;
  options.memory_limit = MemoryBudget::kNoLimit - (*measured)->budget()->left() + lane +
                         (2 * pages + 1) * sizeof(StatePage);
  const auto model = Model::FromBytes(bytes, options);
  ASSERT_TRUE(model.ok());
  auto session = *Session::Create(*model);
  // Tokens that change every page, kept until the limit is reached.
  std::vector<State> kept;
  Status status;
  std::vector<double> before(session->model().vocabulary_size()), after(before.size());
  for (int save = 0; save < 100 && status.ok(); ++save) {
    for (uint32_t token = 0; token < 20; ++token) {
      ASSERT_TRUE(session->StepToken((token * 7 + static_cast<uint32_t>(save)) % 5).ok());
    }
    ASSERT_TRUE(session->LogProbabilities(std::span<double>(before)).ok());
    auto state = session->Save();
    status = state.status();
    if (state.ok()) kept.push_back(*std::move(state));
  }
  EXPECT_EQ(status.code(), KINGLET_OUT_OF_MEMORY);
  EXPECT_NE(status.message().find("memory limit"), std::string::npos) << status.message();
  EXPECT_GE(kept.size(), 2u);
  // The lane is as it was, and saves again when states are gone.
  ASSERT_TRUE(session->LogProbabilities(std::span<double>(after)).ok());
  EXPECT_EQ(after, before);
  kept.pop_back();
  const auto saved = session->Save();
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  EXPECT_EQ(saved->position(), session->position());
  // Memory that was freed no longer counts.
  kept.clear();
  session.reset();
  const auto roomy = Session::Create(*model);
  EXPECT_TRUE(roomy.ok());
}

TEST(Model, LogsWhatItOpenedAndWhatIsSlow) {
  std::vector<std::string> lines, warnings;
  ModelOptions options;
  options.log = [&](LogLevel level, const std::string& line) {
    (level == LogLevel::kWarning ? warnings : lines).push_back(line);
  };
  const auto model = Model::FromBytes(Bytes(), options);
  ASSERT_TRUE(model.ok());
  ASSERT_TRUE(Session::Create(*model).ok());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].find((*model)->file().digest()), std::string::npos);
  EXPECT_NE(lines[1].find("lanes 1"), std::string::npos);
  EXPECT_TRUE(warnings.empty());
}

// The file's memory releases weights that the vector kernels copy into their own layout, unless the
// file has other users. Both models compute the same.
TEST(Model, StoresTheWeightsOfAFloatModelOnce) {
  TinyRecurrentOptions tiny;
  tiny.vocabulary_size = 3000;
  tiny.inputs = 64;
  tiny.units = 200;
  tiny.tails = 0;
  tiny.input_coding = TinyCoding{4, {50, 60, 70, 80}};
  tiny.head_coding = TinyCoding{3, {900}};
  const auto bytes = *SerialiseModel(TinyRecurrent(tiny));
  const auto held = [](const Model& model) {
    return MemoryBudget::kNoLimit - model.budget()->left();
  };
  const auto own = *Model::FromBytes(bytes, {});
  const std::shared_ptr<const ModelFile> file = *ModelFile::FromBytes(bytes);
  const auto shared = *Model::FromFile(file, {});
  EXPECT_EQ(file->held_bytes(), bytes.size());
  EXPECT_GT(held(*shared), 1.9 * static_cast<double>(bytes.size()));
#ifdef KINGLET_HAVE_CPU_BACKEND
  if (cpu::SupportedTargets().front() != cpu::Target::kScalar) {
    EXPECT_LT(own->file().held_bytes(), bytes.size() / 10);
    EXPECT_LT(held(*own), 1.1 * static_cast<double>(bytes.size()));
  }
#endif
  const auto first = *Session::Create(own), second = *Session::Create(shared);
  std::vector<double> a(3000), b(3000);
  for (const uint32_t word : {5u, 2999u, 17u}) {
    ASSERT_TRUE(first->StepToken(word).ok() && second->StepToken(word).ok());
    ASSERT_TRUE(first->LogProbabilities(a).ok() && second->LogProbabilities(b).ok());
    EXPECT_EQ(a, b);
  }
}

}  // namespace
}  // namespace kinglet::model_test
