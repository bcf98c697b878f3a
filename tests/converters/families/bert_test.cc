// Conversion of BERT against answers of an independent program (tests/data/bert, made by
// make_variants.py there). If the environment variable KINGLET_CHECKPOINTS names a folder, its BERT
// checkpoints, which Hugging Face's code wrote, are converted too; bert-mlm is compared layer by
// layer.
#include "converters/families/bert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "converters/convert.h"
#include "converters/sources/input_file.h"
#include "converters/sources/numpy_tensors.h"
#include "converters/texts/token_file.h"
#include "runtime/masked_text.h"
#include "tests/converters/synthetic.h"

namespace kinglet::bert_test {
namespace {

namespace fs = std::filesystem;
const std::string kVariants = KINGLET_TEST_DATA "/bert/";

// A line number, then numbers.
struct Answer {
  uint64_t line;
  std::vector<double> numbers;
};
std::vector<Answer> Answers(const std::string& path) {
  std::vector<Answer> answers;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    std::istringstream fields(text);
    Answer answer{};
    fields >> answer.line;
    for (double number = 0; fields >> number;) answer.numbers.push_back(number);
    answers.push_back(std::move(answer));
  }
  return answers;
}

struct Converted {
  TemporaryFolder folder;
  std::vector<MaskedText> texts;
  std::string path() const { return folder.Path("m.kgl"); }
  std::unique_ptr<Session> Open(const char* backend) const {
    ModelOptions options;
    options.backend = backend;
    return *Session::Create(*Model::Open(path(), options));
  }
};

// Converts a folder's checkpoint; its texts come from tokens.txt and segments.txt.
std::unique_ptr<Converted> ConvertFolder(const std::string& folder,
                                         const std::string& checkpoint = "",
                                         const std::string& recipe = "") {
  auto converted = std::make_unique<Converted>();
  ConvertOptions options;
  options.checkpoint = checkpoint.empty() ? folder : checkpoint;
  options.vocabulary = folder + "/vocab.txt";
  options.recipe = recipe;
  options.output = converted->path();
  const auto summary = Convert(options);
  EXPECT_TRUE(summary.ok()) << folder << ": " << summary.status().message();
  if (!summary.ok()) return nullptr;
  EXPECT_EQ(summary->family, "bert");
  auto ids = *ReadIdLines(folder + "/tokens.txt"),
       segments = *ReadIdLines(folder + "/segments.txt");
  for (size_t i = 0; i < ids.size(); ++i) converted->texts.push_back({ids[i], segments[i]});
  return converted;
}

// The largest difference to golden.tsv: line, position, id, numbers, of which the last is in
// float64.
double LargestDifference(const Converted& converted, const std::string& golden, Session& session) {
  double largest = 0;
  const auto answers = Answers(golden);
  EXPECT_FALSE(answers.empty()) << golden;
  for (const Answer& answer : answers) {
    const MaskedText& text = converted.texts[answer.line];
    const auto position = static_cast<uint64_t>(answer.numbers[0]);
    EXPECT_EQ(text.ids[position], answer.numbers[1]);
    const auto found = MaskedLogProbability(text, position, 4, session);
    EXPECT_TRUE(found.ok()) << found.status().message();
    largest = std::max(largest, std::abs(*found - answer.numbers.back()));
  }
  return largest;
}

double LargestDifference(const std::vector<double>& found, std::span<const double> expected) {
  EXPECT_EQ(found.size(), expected.size());
  double largest = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(found[i] - expected[i]));
  }
  return largest;
}

double PooledDifference(const Converted& converted, const std::string& path, Session& session) {
  double largest = 0;
  for (const Answer& answer : Answers(path)) {
    const MaskedText& text = converted.texts[answer.line];
    std::vector<double> pooled(session.pooled_width());
    EXPECT_TRUE(session.Encode(text.ids, text.segments, 0).ok());
    EXPECT_TRUE(session.Pooled(pooled).ok());
    largest = std::max(largest, LargestDifference(pooled, answer.numbers));
  }
  return largest;
}

// scores.tsv: of a text, or all starts and then all ends.
double ScoreDifference(const Converted& converted, const std::string& path, Session& session) {
  const bool spans = session.model().plan().reading->scores_spans;
  double largest = 0;
  for (const Answer& answer : Answers(path)) {
    const MaskedText& text = converted.texts[answer.line];
    EXPECT_TRUE(session.Encode(text.ids, text.segments, 0).ok());
    std::vector<double> scores(session.scores()), all;
    if (spans) {
      all.resize(2 * text.ids.size());
      for (size_t i = 0; i < text.ids.size(); ++i) {
        EXPECT_TRUE(session.Scores(scores, i).ok());
        all[i] = scores[0];
        all[text.ids.size() + i] = scores[1];
      }
    } else {
      EXPECT_TRUE(session.Scores(scores).ok());
      all = scores;
    }
    largest = std::max(largest, LargestDifference(all, answer.numbers));
  }
  return largest;
}

struct Backend {
  const char* name;
  double tolerance;
};
constexpr Backend kBackends[] = {{"ref64", 1e-12}, {"ref", 1e-5}, {"cpu", 1e-5}};

TEST(Bert, VariantsEqualAnIndependentProgram) {
  size_t variants = 0;
  for (const auto& entry : fs::directory_iterator(kVariants)) {
    if (!entry.is_directory()) continue;
    const std::string folder = entry.path().string();
    SCOPED_TRACE(folder);
    const auto converted = ConvertFolder(folder);
    ASSERT_NE(converted, nullptr);
    ++variants;
    for (const Backend& backend : kBackends) {
      const auto session = converted->Open(backend.name);
      if (fs::exists(folder + "/golden.tsv")) {
        EXPECT_LE(LargestDifference(*converted, folder + "/golden.tsv", *session),
                  backend.tolerance);
      }
      if (fs::exists(folder + "/pooled.tsv")) {
        EXPECT_LE(PooledDifference(*converted, folder + "/pooled.tsv", *session),
                  backend.tolerance);
      }
      if (fs::exists(folder + "/scores.tsv")) {
        EXPECT_LE(ScoreDifference(*converted, folder + "/scores.tsv", *session), backend.tolerance);
      }
    }
  }
  EXPECT_EQ(variants, 11u);
}

TEST(Bert, ATiedDecoderIsStoredOnce) {
  const auto tables = [](const std::string& variant) {
    const auto converted = ConvertFolder(kVariants + variant);
    size_t count = 0;
    const auto file = *ModelFile::Open(converted->path());
    for (const TensorView& tensor : file->tensors()) {
      count += tensor.shape == Shape{13, 8} ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(tables("mlm-tied"), 1u);
  EXPECT_EQ(tables("mlm-gamma-beta"), 1u);  // stores the decoder, with equal values
  EXPECT_EQ(tables("mlm-untied"), 2u);
}

TEST(Bert, NoGoldenValuesAndNoCalibrationYet) {
  const TemporaryFolder folder;
  for (const bool golden : {true, false}) {
    ConvertOptions options;
    options.checkpoint = kVariants + "mlm-tied";
    options.output = folder.Path("m.kgl");
    options.vocabulary = kVariants + "mlm-tied/vocab.txt";
    if (golden) {
      options.golden = kVariants + "mlm-tied/golden.tsv";
      options.ids = kVariants + "mlm-tied/tokens.txt";
    } else {
      options.calibration_text = kVariants + "mlm-tied/tokens.txt";
      options.bits = 9;
    }
    EXPECT_EQ(Convert(options).status().message(),
              "convert: " + std::string(golden ? "golden" : "calibrate") +
                  ": expected none for a masked model, whose activations stay floats and whose "
                  "answers `fill` and `embed` print, found one");
    EXPECT_TRUE(folder.Names().empty());
  }
}

TEST(Bert, Refusals) {
  const TemporaryFolder folder;
  const std::string from = kVariants + "mlm-tied";
  const std::string config = *ReadWholeFile(from + "/config.json");
  const std::string weights = *ReadWholeFile(from + "/model.safetensors");
  const auto message = [&](const std::string& changed_config, const std::string& changed_weights) {
    folder.Write("config.json", changed_config);
    folder.Write("model.safetensors", changed_weights);
    ConvertOptions options;
    options.checkpoint = folder.path();
    options.output = folder.Path("m.kgl");
    const auto summary = Convert(options);
    EXPECT_FALSE(summary.ok());
    EXPECT_FALSE(fs::exists(options.output));
    return summary.ok() ? std::string() : summary.status().message();
  };
  const auto with = [](std::string text, const std::string& what, const std::string& by) {
    const size_t at = text.find(what);
    EXPECT_NE(at, text.npos) << what;
    return text.replace(at, what.size(), by);
  };
  const auto refused = [&](const std::string& what, const std::string& by,
                           const std::string& expected) {
    const std::string found = message(with(config, what, by), weights);
    EXPECT_NE(found.find(expected), found.npos) << found;
  };
  refused("\"gelu\"", "\"gelu_new\"",
          "hidden_act: expected gelu, relu, silu or swish, found 'gelu_new'");
  refused("\"absolute\"", "\"relative_key\"",
          "position_embedding_type: expected absolute, found 'relative_key'");
  refused("\"model_type\"", "\"is_decoder\": true, \"model_type\"",
          "is_decoder: expected false, found true");
  refused("\"num_attention_heads\": 2", "\"num_attention_heads\": 3",
          "hidden_size: expected a multiple of num_attention_heads, 3, found 8");
  refused("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 0",
          "num_hidden_layers: expected 1 to");
  refused("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3",
          "bert.encoder.layer.2.attention.self.query.weight");
  refused("\"intermediate_size\": 10", "\"intermediate_size\": 9",
          "bert.encoder.layer.0.intermediate.dense.weight");
  refused("\"vocab_size\": 13", "\"vocab_size\": 14", "bert.embeddings.word_embeddings.weight");
  refused("\"vocab_size\": 13", "\"vocab_size\": -1", "vocab_size: expected 1 to");
  const std::string renamed =
      with(weights, "cls.predictions.transform.dense.bias", "cls.predictions.transform.dense.bIas");
  EXPECT_NE(message(config, renamed).find("cls.predictions.transform.dense.bias"),
            std::string::npos);
}

std::string Checkpoints() {
  const char* const root = std::getenv("KINGLET_CHECKPOINTS");
  return root == nullptr ? "" : std::string(root) + "/";
}

TEST(Bert, OriginalsEqualTheirGoldenValues) {
  const std::string root = Checkpoints();
  if (root.empty()) GTEST_SKIP() << "KINGLET_CHECKPOINTS is not set";
  const struct {
    const char *folder, *file, *recipe;
  } models[] = {{"bert-mlm", "", ""},
                {"bert-mlm", "/model.safetensors", ""},
                {"bert-mlm", "/pytorch_model.bin", ""},
                {"reference-bert-dpq", "/model.pt", "/recipes/reference-bert-dpq.json"}};
  for (const auto& model : models) {
    const std::string folder = root + model.folder;
    if (!fs::exists(folder)) GTEST_SKIP() << "no " << folder;
    const std::string file = *model.file != 0 ? folder + model.file : "";
    const std::string recipe =
        *model.recipe != 0 ? KINGLET_EXAMPLES + std::string(model.recipe) : "";
    const auto converted = ConvertFolder(folder, file, recipe);
    ASSERT_NE(converted, nullptr);
    for (const Backend& backend : {Backend{"ref64", 1e-6}, Backend{"cpu", 1e-4}}) {
      const double found =
          LargestDifference(*converted, folder + "/golden.tsv", *converted->Open(backend.name));
      EXPECT_LE(found, backend.tolerance);
      RecordProperty(model.folder + std::string("_") + backend.name, std::to_string(found));
    }
  }
  const std::string folder = root + "bert-classifier";
  const auto converted = ConvertFolder(folder);
  ASSERT_NE(converted, nullptr);
  for (const Backend& backend : {Backend{"ref64", 1e-6}, Backend{"cpu", 1e-4}}) {
    const auto session = converted->Open(backend.name);
    EXPECT_LE(PooledDifference(*converted, folder + "/golden_pooled.tsv", *session),
              backend.tolerance);
    std::vector<double> scores(3);
    for (const Answer& answer : Answers(folder + "/golden_classes.tsv")) {
      const MaskedText& text = converted->texts[answer.line];
      ASSERT_TRUE(session->Encode(text.ids, text.segments, 0).ok());
      ASSERT_TRUE(session->Scores(scores).ok());
      EXPECT_NEAR(scores[static_cast<size_t>(answer.numbers[0])], answer.numbers.back(),
                  backend.tolerance);
    }
  }
}

// hidden_f64.npz: the vectors of two texts after the embedding and after each layer.
TEST(Bert, LayersOfAnOriginalEqualItsHiddenStates) {
  const std::string folder = Checkpoints() + "bert-mlm";
  if (!fs::exists(folder + "/hidden_f64.npz")) GTEST_SKIP() << "KINGLET_CHECKPOINTS is not set";
  const auto converted = ConvertFolder(folder);
  ASSERT_NE(converted, nullptr);
  const auto session = converted->Open("ref64");
  const auto file = std::make_shared<const InputFile>(*InputFile::Open(folder + "/hidden_f64.npz"));
  const auto hidden = NpzTensors(file);
  ASSERT_TRUE(hidden.ok()) << hidden.status().message();
  const Plan& plan = session->model().plan();
  const auto buffer =
      std::find_if(plan.buffers.begin(), plan.buffers.end(),
                   [](const BufferSpec& spec) { return spec.name == "text.hidden"; });
  const auto id = static_cast<BufferId>(buffer - plan.buffers.begin());
  size_t compared = 0;
  for (size_t item = 0; item < 2; ++item) {
    for (size_t layer = 0; layer <= 3; ++layer) {
      const std::string name = "item" + std::to_string(item) + ".hidden" + std::to_string(layer);
      const auto tensor = std::find_if(hidden->begin(), hidden->end(),
                                       [&](const SourceTensor& each) { return each.name == name; });
      ASSERT_NE(tensor, hidden->end()) << name;
      const auto expected = ReadFinite(*tensor);
      ASSERT_TRUE(expected.ok()) << expected.status().message();
      const std::string step =
          layer == 3 ? "text.store" : "text.layers." + std::to_string(layer) + ".hidden.store";
      std::vector<double> found(expected->size());
      session->set_observer([&](const Step& run, std::span<const StreamFrame> frames) {
        if (run.name != step) return;
        for (const StreamFrame& frame : frames) {
          const Slot& slot = session->model().layout()[id];
          std::copy_n(slot.At<const double>(frame), slot.count,
                      found.begin() + static_cast<ptrdiff_t>(frame.position * slot.count));
        }
      });
      const MaskedText& text = converted->texts[item];
      ASSERT_EQ(found.size(), text.ids.size() * 48);
      ASSERT_TRUE(session->Encode(text.ids, text.segments, 0).ok());
      // The reader gives float32.
      for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], (*expected)[i], 1e-6);
      compared += found.size();
    }
  }
  EXPECT_GT(compared, 5000u);
}

}  // namespace
}  // namespace kinglet::bert_test
