// Conversions for which memory runs out: one error that reports it, nothing written, and the next
// conversion makes the same file as always. Also other code that writes a recipe.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_file.h"
#include "converters/convert.h"
#include "converters/planning/plan_recipe.h"
#include "converters/recipe/recipe_skeleton.h"
#include "tests/converters/synthetic.h"
#include "tests/support/fail_each_allocation.h"

namespace kinglet::convert_faults_test {
namespace {

// How many allocations of a conversion fail in turn: all, with KINGLET_FAULT_PLACES=all in the
// environment.
int64_t Places() {
  const char* const wanted = std::getenv("KINGLET_FAULT_PLACES");
  if (wanted != nullptr && std::string(wanted) == "all") return INT64_MAX - 1;
  return kSanitized ? 60 : 200;
}

// One processor, so that conversions use one thread and allocate in the same order every time.
class OneProcessor {
 public:
  OneProcessor() {
    EXPECT_EQ(sched_getaffinity(0, sizeof before_, &before_), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
      if (!CPU_ISSET(processor, &before_)) continue;
      CPU_SET(processor, &one);
      break;
    }
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  }
  ~OneProcessor() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

std::string Data(const std::string& name) { return std::string(KINGLET_TEST_DATA) + "/" + name; }

class ConvertWithoutMemory : public testing::Test {
 protected:
  ConvertWithoutMemory() {
    options_.output = folder_.Path("m.kgl");
    std::string words;
    for (int i = 0; i < 60; ++i) words += "w" + std::to_string(i) + "\n";
    words_ = folder_.Write("words", words + "<eos>\n");
    text_ = folder_.Write("text", "w1 w5 w59 w1 w7\nw2 w3 w58\n");
  }

  void ExpectSafe(const char* what) {
    const Result<ConvertSummary> expected = Convert(options_);
    ASSERT_TRUE(expected.ok()) << what << ": " << expected.status().message();
    std::filesystem::remove(options_.output);
    const std::vector<std::string> files = folder_.Names();
    std::string message;
    message.reserve(1000);
    const int64_t places = FailEachAllocation(
        what,
        [&]() -> kinglet_status {
          try {
            const Result<ConvertSummary> made = Convert(options_);
            if (!made.ok()) {
              message.assign(made.status().message(), 0, 900);
              return made.status().code();
            }
            unlink(options_.output.c_str());
            message.assign("another file");
            return made->digest == expected->digest ? KINGLET_OK : KINGLET_INTERNAL;
          } catch (const std::bad_alloc&) {  // not even memory for the error, as tools/main.cc
            return KINGLET_OUT_OF_MEMORY;
          }
        },
        [&] { ASSERT_EQ(folder_.Names(), files) << message; },
        {.repeatable = true, .places = Places(), .uses_libzip = true});
    EXPECT_GT(places, 500) << message;
    if (HasFailure()) ADD_FAILURE() << message;
  }
  const TemporaryFolder folder_;
  std::string words_, text_;
  ConvertOptions options_;
  const OneProcessor one_processor_;
};

TEST_F(ConvertWithoutMemory, ACalibratedLstm) {
  options_.checkpoint = Data("kinglet-torch/full/model.pt");
  options_.vocabulary = words_;
  options_.bits = 9;
  options_.prune = 0.3;
  options_.calibration_text = text_;
  options_.round_by = RoundBy::kFeedback;
  ExpectSafe("calibrated and pruned LSTM");
}

TEST_F(ConvertWithoutMemory, ATableByARecipeWithGoldenValues) {
  options_.checkpoint = Data("kinglet-torch/dpq-sx/model.pt");
  options_.golden = Data("kinglet-torch/dpq-sx/golden_f64.tsv");
  options_.ids = Data("kinglet-torch/dpq-sx/tokens.txt");
  ExpectSafe("DPQ table, golden values");
}

TEST_F(ConvertWithoutMemory, AFolderOfMicroNet) {
  options_.checkpoint = Data("micronet-variants/8bit-pruned-zip");
  ExpectSafe("folder of a MicroNet");
}

TEST_F(ConvertWithoutMemory, AFairseqModel) {
  options_.checkpoint = Data("fairseq-variants/args-characters-adaptive");
  ExpectSafe("fairseq");
}

TEST_F(ConvertWithoutMemory, ASpeechModelWithItsTokenizer) {
  options_.checkpoint = Data("speech-lm-variants/speechbrain-transformer-pre");
  ExpectSafe("SpeechBrain");
}

TEST_F(ConvertWithoutMemory, ASafetensorsFileWithItsTokenizer) {
  options_.checkpoint = Data("bert/classifier-3");
  options_.bits = 8;
  ExpectSafe("BERT");
}

TEST_F(ConvertWithoutMemory, AModelOfBytePieces) {
  options_.checkpoint = Data("gpt2/with-tokenizer");
  ExpectSafe("GPT-2");
}

TEST_F(ConvertWithoutMemory, ATranslationModel) {
  options_.checkpoint = Data("opennmt/plain");
  ExpectSafe("OpenNMT");
}

// --- recipes that are written

// `make` gives a text or an error; every text must equal the first text.
template <class Make>
void ExpectSafeText(const char* what, const Make& make) {
  const Result<std::string> expected = make();
  ASSERT_TRUE(expected.ok()) << what << ": " << expected.status().message();
  const int64_t places = FailEachAllocation(
      what,
      [&]() -> kinglet_status {
        try {
          const Result<std::string> made = make();
          if (!made.ok()) return made.status().code();
          return *made == *expected ? KINGLET_OK : KINGLET_INTERNAL;
        } catch (const std::bad_alloc&) {
          return KINGLET_OUT_OF_MEMORY;
        }
      },
      [] {}, {.repeatable = true, .places = Places(), .uses_libzip = true});
  EXPECT_GT(places, 50) << what;
}

TEST(RecipesWithoutMemory, ASkeleton) {
  for (const char* name : {"kinglet-torch/dpq-sx/model.pt", "kinglet-torch/full/model.pt"}) {
    ExpectSafeText(name, [name]() -> Result<std::string> {
      KINGLET_ASSIGN_OR_RETURN(const CheckpointFile source, OpenCheckpointFile(Data(name)));
      return RecipeSkeleton(InputOf(source, source.tensors));
    });
  }
}

TEST(RecipesWithoutMemory, APlan) {
  const TemporaryFolder folder;
  const std::string base = folder.Write(
      "base.json", R"({"tables": {"x": [1, {"y": []}]}, "passes": [{"pass": "half"}]})");
  SensitivityRecord record;
  record.rest = {"bias of a layer that has a long name"};
  record.groups = {{"a*", {"a1", "a2"}, 4, 4, 16}, {"c", {"c"}, 4, 4, 16}};
  CompressionPlan plan;
  plan.groups = {{0.5, 4, {}, 0, 0}, {{}, {}, CodesChange{2, 8}, 0, 0}};
  const PlanQuantisers quantisers = {.calibration = "a text", .percentile = 99.5};
  ExpectSafeText("plan", [&] { return PlanRecipe(record, plan, quantisers, base); });
}

}  // namespace
}  // namespace kinglet::convert_faults_test
