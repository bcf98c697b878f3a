// The runtime's promises on trained models and real text: at 1,000 states of each model every query
// equals brute force; a saved state continues in another process; each lane of a batch equals a
// single stream. Models: the bundled one as float32 and at 9 bits, the two of tests/data, and
// every micronet-*, awd-lstm and pytorch-examples folder in the folder that the environment
// variable KINGLET_CHECKPOINTS names.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "converters/convert.h"
#include "converters/texts/token_file.h"
#include "runtime/session.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/test_checkpoints.h"
#include "tests/runtime/session_fixture.h"

namespace kinglet::real_text_test {
namespace {

const std::string kDemo = KINGLET_DEMO_DATA;

// Sanitizers make every token some ten times slower.
#if defined(KINGLET_SANITIZED)
constexpr size_t kStates = 20;
#else
constexpr size_t kStates = 1000;
#endif

struct Trained {
  std::string name, folder;
  bool to_nine_bits;
};

std::vector<Trained> TrainedModels() {
  std::vector<Trained> models = {{"bundled_float32", kDemo, false}, {"bundled_9bit", kDemo, true}};
  std::vector<std::string> parents = {KINGLET_TEST_DATA};
  if (const char* shared = std::getenv("KINGLET_CHECKPOINTS")) parents.push_back(shared);
  for (size_t i = 0; i < parents.size(); ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(parents[i])) {
      std::string name = entry.path().filename().string();
      const bool is_checkpoint =
          name.starts_with("micronet-") || name == "awd-lstm" || name == "pytorch-examples";
      if (!is_checkpoint || name == "micronet-variants" || !entry.is_directory()) continue;
      std::replace(name.begin(), name.end(), '-', '_');
      models.push_back({name + (i == 0 ? "" : "_shared"), entry.path().string(), false});
    }
  }
  return models;
}

// The path of the converted model.
const std::string& Converted(const Trained& trained) {
  ConvertOptions options;
  options.checkpoint = trained.folder;
  options.vocabulary = trained.folder + "/vocab.txt";
  if (trained.to_nine_bits) {
    options.bits = 9;
    options.calibration_text = kDemo + "/passage.txt";
  }
  const KeptConversion& kept = ConvertOnce(trained.name, options);
  EXPECT_TRUE(kept.summary.ok()) << kept.summary.status().message();
  return kept.options.output;
}

std::shared_ptr<const Model> OpenFile(const std::string& path, const std::string& backend) {
  auto model = Model::Open(path, {.backend = backend});
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *model;
}

// Words of Wikipedia as ids of the model; unknown words become <unk>.
std::vector<uint32_t> ReadRealText(const Vocabulary& vocabulary) {
  std::vector<uint32_t> ids;
  const Status read = ForEachWord(kDemo + "/calibration.txt", [&](std::string_view word) {
    const auto id = vocabulary.Find(word);
    ids.push_back(id ? *id : *vocabulary.Find("<unk>"));
    return Status();
  });
  EXPECT_TRUE(read.ok()) << read.message();
  return ids;
}

// How often a query of one kind opened each cluster.
class Openings {
 public:
  explicit Openings(std::string query) : query_(std::move(query)) {}
  void Count(const ClusterSet& clusters) {
    ++asked_;
    for (size_t i = 0; i < opened_.size(); ++i) opened_[i] += clusters.Contains(i) ? 1 : 0;
  }
  void Print(size_t clusters) const {
    std::printf("  %-24s", query_.c_str());
    for (size_t i = 1; i < clusters; ++i) {
      std::printf("  tail %zu: %5.1f %%", i, 100.0 * opened_[i] / asked_);
    }
    std::printf("\n");
  }

 private:
  std::string query_;
  double asked_ = 0;
  std::array<double, 64> opened_{};
};

class RealText : public testing::TestWithParam<Trained> {};

TEST_P(RealText, EveryQueryEqualsBruteForce) {
  const auto model = OpenFile(Converted(GetParam()), "cpu");
  const uint32_t size = model->vocabulary_size();
  const auto& clusters = model->plan().clusters;
  const auto ids = ReadRealText(*model->vocabulary());
  ASSERT_GT(ids.size(), kStates);

  const std::array<uint32_t, 4> ks = {1, 3, 10, 100};
  const std::array<double, 3> temperatures = {0.5, 1.0, 1.5};
  std::vector<Openings> top, samples;
  for (const uint32_t k : ks) top.emplace_back("top " + std::to_string(k));
  for (const double t : temperatures) samples.emplace_back("sample at " + std::to_string(t));
  Openings next("log p of the next word");

  const auto full = Start(model), lazy = Start(model);
  TestRandom random(1);
  std::vector<double> probabilities(size);
  for (size_t t = 0; t < kStates; ++t) {
    ASSERT_TRUE(full->StepToken(ids[t]).ok());
    const std::vector<double> all = Full(*full);
    std::vector<uint32_t> order(size);
    std::iota(order.begin(), order.end(), 0);
    const auto better = [&](uint32_t a, uint32_t b) {
      return all[a] != all[b] ? all[a] > all[b] : a < b;
    };
    const uint32_t most = std::min(size, ks.back());
    std::partial_sort(order.begin(), order.begin() + most, order.end(), better);
    const State state = *full->Save();
    // Each query anew, with nothing open.
    for (size_t j = 0; j < ks.size(); ++j) {
      ASSERT_TRUE(lazy->Restore(state).ok());
      const auto best = lazy->TopK(ks[j]);
      ASSERT_TRUE(best.ok());
      ASSERT_EQ(best->size(), std::min(size, ks[j]));
      for (size_t i = 0; i < best->size(); ++i) {
        ASSERT_EQ((*best)[i].id, order[i]) << "state " << t << " rank " << i;
        ASSERT_EQ((*best)[i].log_probability, all[order[i]]);
      }
      top[j].Count(lazy->last_work().clusters);
    }
    ASSERT_TRUE(lazy->Restore(state).ok());
    ASSERT_EQ(*lazy->LogProbability(ids[t + 1]), all[ids[t + 1]]);
    next.Count(lazy->last_work().clusters);
    const std::array<uint32_t, 4> words = {ids[t + 1], random.Below(size), ids[t + 1],
                                           random.Below(size)};
    std::array<double, 4> given;
    ASSERT_TRUE(lazy->Restore(state).ok());
    ASSERT_TRUE(lazy->LogProbabilitiesOf(words, given).ok());
    for (size_t i = 0; i < words.size(); ++i) ASSERT_EQ(given[i], all[words[i]]);
    for (size_t j = 0; j < temperatures.size(); ++j) {
      ASSERT_TRUE(lazy->Restore(state).ok());
      ASSERT_EQ(*lazy->Draw(t, {.temperature = temperatures[j]}),
                SampleByBruteForce<float>(all, clusters, t, t, temperatures[j]))
          << "state " << t;
      samples[j].Count(lazy->last_work().clusters);
    }
    ASSERT_TRUE(lazy->Probabilities(std::span<double>(probabilities)).ok());
    for (uint32_t w = 0; w < size; ++w) {
      ASSERT_EQ(probabilities[w], static_cast<double>(Exp(static_cast<float>(all[w]))));
    }
  }
  std::printf("%s: share of %zu steps that open each tail\n", GetParam().name.c_str(), kStates);
  next.Print(clusters.size());
  for (const Openings& openings : top) openings.Print(clusters.size());
  for (const Openings& openings : samples) openings.Print(clusters.size());
}

constexpr size_t kTokens = 2000;
constexpr size_t kEvery = 13;

uint64_t BitsOf(double log_probability) {
  uint64_t bits;
  std::memcpy(&bits, &log_probability, sizeof bits);
  return bits;
}

// Continues from the state for kEvery tokens; returns the bits of log p of each next word.
std::vector<uint64_t> Continue(Session& session, std::span<const uint32_t> ids, size_t from) {
  std::vector<uint64_t> bits;
  for (size_t t = from; t < std::min(from + kEvery, ids.size() - 1); ++t) {
    EXPECT_TRUE(session.StepToken(ids[t]).ok());
    bits.push_back(BitsOf(*session.LogProbability(ids[t + 1])));
  }
  return bits;
}

// The test below runs this one in a process of its own.
TEST(AnotherProcess, DISABLED_ContinuesFromTheStatesInAFolder) {
  const std::string folder = std::getenv("KINGLET_STATES");
  const auto model = OpenFile(std::getenv("KINGLET_STATES_MODEL"), "cpu");
  const auto ids = ReadRealText(*model->vocabulary());
  const auto session = Start(model);
  std::ofstream answers(folder + "/answers");
  for (size_t from = 0; from < kTokens; from += kEvery) {
    std::ifstream file(folder + "/" + std::to_string(from), std::ios::binary);
    const std::string blob((std::istreambuf_iterator<char>(file)), {});
    const auto state = State::ReadBlob(model, std::as_bytes(std::span<const char>(blob)));
    ASSERT_TRUE(state.ok()) << state.status().message();
    ASSERT_TRUE(session->Restore(*state).ok());
    for (const uint64_t bits : Continue(*session, std::span(ids).first(kTokens + 1), from)) {
      answers << bits << "\n";
    }
  }
}

TEST_P(RealText, SavedStatesContinueInAnotherProcess) {
  const TemporaryFolder folder;
  const std::string& file_of_model = Converted(GetParam());
  const auto model = OpenFile(file_of_model, "cpu");
  auto ids = ReadRealText(*model->vocabulary());
  ids.resize(kTokens + 1);
  const auto session = Start(model);
  std::vector<uint64_t> expected;
  for (size_t from = 0; from < kTokens; from += kEvery) {
    const State state = *session->Save();
    std::vector<std::byte> blob(state.BlobBytes());
    state.WriteBlob(blob);
    std::ofstream file(folder.Path(std::to_string(from)), std::ios::binary);
    file.write(reinterpret_cast<const char*>(blob.data()),
               static_cast<std::streamsize>(blob.size()));
    const auto bits = Continue(*session, ids, from);
    expected.insert(expected.end(), bits.begin(), bits.end());
  }
  ASSERT_EQ(expected.size(), kTokens);

  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::setenv("KINGLET_STATES", folder.Path("").c_str(), 1);
    ::setenv("KINGLET_STATES_MODEL", file_of_model.c_str(), 1);
    ::execl("/proc/self/exe", "real_text_test", "--gtest_also_run_disabled_tests",
            "--gtest_filter=AnotherProcess.*", "--gtest_brief=1", nullptr);
    ::_exit(127);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  std::ifstream answers(folder.Path("answers"));
  std::vector<uint64_t> found{std::istream_iterator<uint64_t>(answers), {}};
  EXPECT_EQ(found, expected);
}

TEST_P(RealText, SixtyFourLanesEqualSixtyFourStreams) {
  const auto model = OpenFile(Converted(GetParam()), "cpu");
  const auto ids = ReadRealText(*model->vocabulary());
  constexpr uint32_t kLanes = 64;
  constexpr size_t kLength = kStates / 25;
  std::vector<uint32_t> order(kLanes);
  std::iota(order.begin(), order.end(), 0);
  const auto lanes = Start(model, {.lanes = kLanes});
  std::vector<std::vector<uint64_t>> found(kLanes);
  for (size_t t = 0; t < kLength; ++t) {
    std::vector<uint32_t> step;
    for (size_t lane = 0; lane < kLanes; ++lane) step.push_back(ids[150 * lane + t]);
    ASSERT_TRUE(lanes->StepLanes(order, step).ok());
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const auto best = lanes->TopK(2, lane);
      ASSERT_TRUE(best.ok());
      found[lane].push_back((*best)[0].id);
      found[lane].push_back(BitsOf((*best)[1].log_probability));
      found[lane].push_back(BitsOf(*lanes->LogProbability(ids[150 * lane + t + 1], lane)));
    }
  }
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const auto single = Start(model);
    for (size_t t = 0; t < kLength; ++t) {
      ASSERT_TRUE(single->StepToken(ids[150 * lane + t]).ok());
      const auto best = single->TopK(2);
      ASSERT_EQ(found[lane][3 * t], (*best)[0].id);
      ASSERT_EQ(found[lane][3 * t + 1], BitsOf((*best)[1].log_probability));
      ASSERT_EQ(found[lane][3 * t + 2], BitsOf(*single->LogProbability(ids[150 * lane + t + 1])));
    }
    ASSERT_TRUE(*single->Save() == *lanes->Save(lane)) << lane;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RealText, testing::ValuesIn(TrainedModels()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace kinglet::real_text_test
