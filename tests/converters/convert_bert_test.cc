// Conversion of BERT models against float64 results: tests/data/bert (made by its make_variants.py)
// and, if the environment variable KINGLET_CHECKPOINTS names a folder, the hidden vectors of its
// bert-mlm, which the original program computed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "converters/checkpoints/numpy_tensors.h"
#include "converters/convert.h"
#include "converters/texts/token_file.h"
#include "kernels/backend.h"
#include "runtime/masked_text.h"
#include "runtime/session.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/test_checkpoints.h"

namespace kinglet::convert_bert_test {
namespace {

namespace fs = std::filesystem;
using Numbers = std::vector<double>;

ConvertOptions OptionsOf(const std::string& folder) {
  ConvertOptions options;
  options.checkpoint = folder;
  options.vocabulary = folder + "/vocab.txt";
  return options;
}

const KeptConversion& ConvertedBert(const std::string& folder) {
  const KeptConversion& kept = ConvertOnce(folder, OptionsOf(folder));
  EXPECT_TRUE(kept.summary.ok()) << folder << ": " << kept.summary.status().message();
  return kept;
}

std::unique_ptr<Session> SessionOn(const std::string& path, const std::string& backend) {
  ModelOptions options;
  options.backend = backend;
  const auto model = Model::Open(path, options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *Session::Create(*model);
}

std::vector<MaskedText> TextsOf(const std::string& folder) {
  const auto ids = *ReadIdLines(folder + "/tokens.txt");
  const auto segments = *ReadIdLines(folder + "/segments.txt");
  EXPECT_EQ(ids.size(), segments.size());
  std::vector<MaskedText> texts;
  for (size_t i = 0; i < ids.size(); ++i) texts.push_back({ids[i], segments[i]});
  return texts;
}

// The values of each line; empty if there is no such file.
std::vector<Numbers> RowsOf(const std::string& path) {
  std::vector<Numbers> rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    rows.emplace_back();
    for (double number = 0; words >> number;) rows.back().push_back(number);
  }
  return rows;
}

// The largest difference between a session's results and a folder's files.
class Distance {
 public:
  Distance(const std::string& folder, Session& session)
      : folder_(folder), texts_(TextsOf(folder)), session_(session) {}

  double OfAll() {
    MaskedWords();
    Pooled();
    Scores();
    return largest_;
  }

 private:
  void Add(double answer, double expected) {
    EXPECT_TRUE(std::isfinite(answer));
    largest_ = std::max(largest_, std::abs(answer - expected));
  }

  void MaskedWords() {
    const std::vector<Numbers> rows = RowsOf(folder_ + "/golden.tsv");
    const Result<MaskTokens> words = MaskTokensOf(session_.model(), "test");
    EXPECT_EQ(words.ok(), !rows.empty());
    if (rows.empty()) return;
    size_t row = 0;
    for (size_t line = 0; line < texts_.size(); ++line) {
      const MaskedText& text = texts_[line];
      for (size_t position = 0; position < text.ids.size(); ++position) {
        const uint32_t id = text.ids[position];
        if (!IsScored(id, *words)) continue;
        ASSERT_LT(row, rows.size());
        const Numbers& golden = rows[row++];
        ASSERT_EQ(Numbers(golden.begin(), golden.begin() + 3),
                  (Numbers{static_cast<double>(line), static_cast<double>(position),
                           static_cast<double>(id)}));
        const auto answer = MaskedLogProbability(text, position, words->mask, session_);
        ASSERT_TRUE(answer.ok()) << answer.status().message();
        Add(*answer, golden[3]);
      }
    }
    EXPECT_EQ(row, rows.size());
  }

  void Pooled() {
    const std::vector<Numbers> rows = RowsOf(folder_ + "/golden_pooled.tsv");
    ASSERT_EQ(session_.pooled_width() > 0, !rows.empty());
    for (const Numbers& golden : rows) {
      const MaskedText& text = texts_.at(static_cast<size_t>(golden[0]));
      ASSERT_TRUE(session_.Encode(text.ids, text.segments, 0).ok());
      Numbers answer(session_.pooled_width());
      ASSERT_TRUE(session_.Pooled(answer).ok());
      ASSERT_EQ(answer.size(), golden.size() - 1);
      for (size_t i = 0; i < answer.size(); ++i) Add(answer[i], golden[i + 1]);
    }
  }

  void Scores() {
    const std::vector<Numbers> rows = RowsOf(folder_ + "/golden_scores.tsv");
    ASSERT_EQ(session_.scores() > 0, !rows.empty());
    for (const Numbers& golden : rows) {
      const MaskedText& text = texts_.at(static_cast<size_t>(golden[0]));
      ASSERT_TRUE(session_.Encode(text.ids, text.segments, 0).ok());
      Numbers answer(session_.scores());
      const Status status = session_.Scores(answer, static_cast<uint64_t>(golden[1]));
      ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_EQ(answer.size(), golden.size() - 2);
      for (size_t i = 0; i < answer.size(); ++i) Add(answer[i], golden[i + 2]);
    }
  }

  const std::string folder_;
  const std::vector<MaskedText> texts_;
  Session& session_;
  double largest_ = 0;
};

class ConvertBert : public testing::TestWithParam<std::string> {};

TEST_P(ConvertBert, TheAnswersOfAnotherProgram) {
  const auto& [options, summary] = ConvertedBert(GetParam());
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary->family, "bert");
  for (const auto& [backend, tolerance] :
       {std::pair("ref64", 1e-6), std::pair("ref", 1e-4), std::pair("cpu", 1e-4)}) {
    const auto session = SessionOn(options.output, backend);
    const double largest = Distance(GetParam(), *session).OfAll();
    EXPECT_LT(largest, tolerance) << backend;
    RecordProperty(std::string(backend) + "_largest_billionths", std::to_string(largest * 1e9));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConvertBert, testing::ValuesIn(CheckpointFolders("bert")),
                         FolderTestName);

// A tied table is stored once, whether or not the checkpoint has a copy of it.
TEST(ConvertBertFiles, TiedTablesAreStoredOnce) {
  for (const auto& [name, own] :
       {std::pair("mlm-tied", false), std::pair("mlm-tied-copies", false),
        std::pair("mlm-gamma-beta", false), std::pair("mlm-untied", true)}) {
    const auto& [options, summary] = ConvertedBert(KINGLET_TEST_DATA "/bert/" + std::string(name));
    ASSERT_TRUE(summary.ok());
    const auto file = *ModelFile::Open(options.output);
    const bool stored = std::any_of(
        file->tensors().begin(), file->tensors().end(),
        [](const TensorView& tensor) { return tensor.name == "cls.predictions.decoder.weight"; });
    EXPECT_EQ(stored, own) << name;
  }
}

// A text's results do not depend on the text that the session read before.
TEST(ConvertBertFiles, TextsLeaveNothingBehind) {
  const std::string folder = KINGLET_TEST_DATA "/bert/pretraining";
  const std::string path = ConvertedBert(folder).options.output;
  const std::vector<MaskedText> texts = TextsOf(folder);
  const auto used = SessionOn(path, "cpu");
  for (size_t i = texts.size(); i-- > 0;) {
    const auto fresh = SessionOn(path, "cpu");
    std::vector<Numbers> answers;
    for (Session* session : {used.get(), fresh.get()}) {
      ASSERT_TRUE(session->Encode(texts[i].ids, texts[i].segments, 0).ok());
      Numbers pooled(session->pooled_width()), words(session->model().vocabulary_size());
      ASSERT_TRUE(session->Pooled(pooled).ok());
      ASSERT_TRUE(session->LookAt(texts[i].ids.size() - 1).ok());
      ASSERT_TRUE(session->LogProbabilities(std::span<double>(words)).ok());
      pooled.insert(pooled.end(), words.begin(), words.end());
      answers.push_back(pooled);
    }
    EXPECT_EQ(answers[0], answers[1]) << i;
  }
}

// All words at each position, in an order that is not the text's, with texts in two lanes.
TEST(ConvertBertFiles, LanesAndPositionsKeepApart) {
  const std::string folder = KINGLET_TEST_DATA "/bert/mlm-three-segments";
  const std::string path = ConvertedBert(folder).options.output;
  const std::vector<MaskedText> texts = TextsOf(folder);
  const auto alone = SessionOn(path, "cpu");
  const auto both = *alone->CreateAlike(2);
  const std::vector<size_t> lines = {3, 5};
  for (uint32_t lane = 0; lane < 2; ++lane) {
    const MaskedText& text = texts.at(lines[lane]);
    ASSERT_EQ(text.ids.size(), 13U);
    ASSERT_TRUE(both->Encode(text.ids, text.segments, lane).ok());
  }
  const size_t words = both->model().vocabulary_size();
  for (size_t i = 0; i < 13; ++i) {
    for (uint32_t lane = 0; lane < 2; ++lane) {
      const uint64_t position = (5 * i + 7 * lane) % 13;
      const MaskedText& text = texts[lines[lane]];
      Numbers expected(words), found(words);
      ASSERT_TRUE(alone->Encode(text.ids, text.segments, 0).ok());
      ASSERT_TRUE(alone->LookAt(position).ok());
      ASSERT_TRUE(alone->LogProbabilities(std::span<double>(expected)).ok());
      ASSERT_TRUE(both->LookAt(position, lane).ok());
      ASSERT_TRUE(both->LogProbabilities(std::span<double>(found), lane).ok());
      EXPECT_EQ(found, expected) << position;
    }
  }
}

// Weights of 12 bits change little; `ref` and `cpu` still agree in every bit.
TEST(ConvertBertFiles, QuantisedFormsStayNear) {
  for (const char* variant : {"mlm-tied", "pretraining", "classifier-3", "question-answering"}) {
    const std::string folder = KINGLET_TEST_DATA "/bert/" + std::string(variant);
    const TemporaryFolder work;
    ConvertOptions options = OptionsOf(folder);
    options.output = work.Path("m.kgl");
    options.bits = 12;
    const auto summary = Convert(options);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    const double exact = Distance(folder, *SessionOn(options.output, "ref")).OfAll();
    EXPECT_GT(exact, 1e-6) << variant;
    EXPECT_LT(exact, 0.2) << variant;
    EXPECT_EQ(Distance(folder, *SessionOn(options.output, "cpu")).OfAll(), exact) << variant;
  }
}

// Lines of text that give a folder's texts, and each of them with each token masked.
std::string TextOf(const std::string& folder) {
  std::vector<std::string> words;
  std::ifstream vocabulary(folder + "/vocab.txt");
  for (std::string word; std::getline(vocabulary, word);) words.push_back(word);
  constexpr uint32_t kSeparator = 3, kMask = 4;
  std::string lines;
  for (const MaskedText& text : TextsOf(folder)) {
    for (size_t masked = 0; masked + 1 < text.ids.size(); ++masked) {
      for (size_t i = 1; i + 1 < text.ids.size(); ++i) {
        const bool second = text.ids[i] == kSeparator;
        const std::string& word = words[i == masked && !second ? kMask : text.ids[i]];
        lines += second ? " |||" : word.starts_with("##") ? word.substr(2) : " " + word;
      }
      lines += "\n";
    }
  }
  return lines;
}

// Activations too, calibrated on text; `ref` and `cpu` still agree in every bit.
TEST(ConvertBertFiles, CalibratedFormsStayNear) {
  for (const char* variant : {"mlm-tied", "pretraining", "classifier-3", "question-answering"}) {
    const std::string folder = KINGLET_TEST_DATA "/bert/" + std::string(variant);
    const TemporaryFolder work;
    const std::string text = work.Write("text.txt", TextOf(folder));
    for (const auto& [bits, bound] : {std::pair(7, 1.0), std::pair(10, 0.25), std::pair(14, 0.1)}) {
      ConvertOptions options = OptionsOf(folder);
      options.tokenizer = options.vocabulary;
      options.output = work.Path("m.kgl");
      options.bits = bits;
      options.calibration_text = text;
      const auto summary = Convert(options);
      ASSERT_TRUE(summary.ok()) << summary.status().message();
      const auto session = SessionOn(options.output, "ref");
      EXPECT_TRUE(FindBlock<MaskedModel>(session->model().file().description())->stack.output);
      const double exact = Distance(folder, *session).OfAll();
      EXPECT_LT(exact, bound) << variant << " " << bits;
      EXPECT_EQ(Distance(folder, *SessionOn(options.output, "cpu")).OfAll(), exact) << variant;
    }
  }
}

// vocab.txt next to the checkpoint is what its text is tokenized by, and its words.
TEST(ConvertBertFiles, AFolderHasItsTokenizer) {
  const TemporaryFolder work;
  ConvertOptions options = OptionsOf(KINGLET_TEST_DATA "/bert/mlm-tied");
  const auto words = [&] {
    options.output = work.Path("m.kgl");
    const auto summary = Convert(options);
    EXPECT_TRUE(summary.ok()) << summary.status().message();
    const auto model = *Model::Open(options.output, {});
    return model->text() == nullptr ? 0 : model->vocabulary()->size();
  };
  options.vocabulary.clear();
  EXPECT_EQ(words(), 31u);
  // A file has what is named with it.
  options.checkpoint += "/model.safetensors";
  EXPECT_EQ(words(), 0u);
}

// A tokenizer of another kind leaves a model of ids and a note. One that cannot be read this time
// is an error, as it may be read the next time and make another model file.
TEST(ConvertBertFiles, ATokenizerNextToItIsOfAnotherKindOrUnreadable) {
  const TemporaryFolder work;
  const fs::path folder = work.Path("model");
  fs::copy(KINGLET_TEST_DATA "/bert/mlm-tied", folder);
  const fs::path tokenizer = folder / "vocab.txt";
  ConvertOptions options;
  options.checkpoint = folder.string();
  options.output = work.Path("m.kgl");
  std::ofstream(tokenizer) << "{\"model\": {\"type\": \"WordLevel\"}}";
  const auto other = Convert(options);
  ASSERT_TRUE(other.ok()) << other.status().message();
  EXPECT_NE(other->notes.back().find("the model has ids only"), std::string::npos);
  fs::remove(tokenizer);
  fs::create_symlink("/proc/self/mem", tokenizer);  // a plain file; its first byte cannot be read
  fs::remove(options.output);
  EXPECT_EQ(Convert(options).status().code(), KINGLET_IO_ERROR);
  EXPECT_FALSE(fs::exists(options.output));
}

TEST(ConvertBertFiles, CalibrationNeedsATokenizer) {
  const TemporaryFolder work;
  ConvertOptions options = OptionsOf(KINGLET_TEST_DATA "/bert/mlm-tied");
  options.output = work.Path("m.kgl");
  options.bits = 9;
  options.calibration_text = work.Write("text.txt", "w6\n");
  EXPECT_NE(Convert(options).status().message().find("--tokenizer vocab.txt"), std::string::npos);
  options.tokenizer = options.vocabulary;
  options.calibration_text = work.Write("text.txt", "\n");
  EXPECT_NE(Convert(options).status().message().find("at least one word"), std::string::npos);
  options.calibration_text = work.Write("text.txt", "w6 w6 w6 w6 w6 w6 w6 w6 w6 w6 w6 w6\n");
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_NE(summary->notes.back().find("1 of 1 lines of"), std::string::npos);
}

TEST(ConvertBertFiles, GoldenValuesAreReplayedAndCarried) {
  const std::string folder = KINGLET_TEST_DATA "/bert/pretraining";
  const TemporaryFolder work;
  ConvertOptions options = OptionsOf(folder);
  options.output = work.Path("m.kgl");
  options.golden = folder + "/golden.tsv";
  options.ids = folder + "/tokens.txt";
  options.segments = folder + "/segments.txt";
  options.tolerance = 1e-6;
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(*summary->golden_positions, RowsOf(options.golden).size());
  EXPECT_LT(summary->golden_largest_difference, 1e-12);
  EXPECT_TRUE((*ModelFile::Open(options.output))->description().golden.has_value());

  const auto refused = [&](const std::string& part) {
    const Status status = Convert(options).status();
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  };
  options.segments.clear();
  refused("; without --segments all segment numbers are 0");
  options.vocabulary.clear();
  options.checkpoint += "/model.safetensors";  // a folder has its words
  refused("golden: expected a vocabulary with [MASK] (--vocab vocab.txt), found ids only");
  options.golden.clear();
  options.ids.clear();
  options.segments = folder + "/segments.txt";
  refused("segments: expected --golden with them, found none");
}

TEST(ConvertBertFiles, TextsThatTheModelCannotRead) {
  const auto session =
      SessionOn(ConvertedBert(KINGLET_TEST_DATA "/bert/mlm-tied").options.output, "ref64");
  std::vector<uint32_t> ids(11, 5);
  ASSERT_TRUE(session->Encode(ids, {}, 0).ok());
  ids.push_back(5);  // the model has 11 positions
  Status status = session->Encode(ids, {}, 0);
  EXPECT_EQ(status.code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_NE(status.message().find("1 to 11 tokens, found 12"), std::string::npos)
      << status.message();
  EXPECT_EQ(session->Encode({}, {}, 0).code(), KINGLET_INVALID_ARGUMENT);
  ids.resize(3);
  const std::vector<uint32_t> segments = {0, 1, 2};
  status = session->Encode(ids, segments, 0);
  EXPECT_EQ(status.code(), KINGLET_ID_OUT_OF_RANGE) << status.message();
  EXPECT_EQ(session->Encode(ids, std::span(segments).first(2), 0).code(), KINGLET_INVALID_ARGUMENT);
  ids[1] = 31;
  EXPECT_EQ(session->Encode(ids, {}, 0).code(), KINGLET_ID_OUT_OF_RANGE);
  // The text that was read first is still readable after all others.
  EXPECT_TRUE(session->LookAt(10).ok());
  EXPECT_EQ(session->LookAt(11).code(), KINGLET_INVALID_ARGUMENT);
}

// [layer][token][element], the embedding's output as layer 0.
using HiddenVectors = std::vector<std::vector<Numbers>>;

HiddenVectors HiddenOf(const MaskedText& text, size_t layers, Session& session) {
  const Model& model = session.model();
  const auto& buffers = model.plan().buffers;
  const auto hidden = std::find_if(buffers.begin(), buffers.end(), [](const BufferSpec& buffer) {
    return buffer.name == "text.hidden";
  });
  EXPECT_NE(hidden, buffers.end());
  const Slot& slot = model.layout()[static_cast<BufferId>(hidden - buffers.begin())];
  HiddenVectors seen(layers + 1, std::vector<Numbers>(text.ids.size()));
  session.set_observer([&](const Node& step, std::span<const StreamFrame> frames) {
    std::optional<size_t> layer;
    if (step.name == "text.store") layer = layers;
    for (size_t i = 0; i < layers; ++i) {
      if (step.name == "text.layers." + std::to_string(i) + ".hidden.store") layer = i;
    }
    if (!layer) return;
    for (const StreamFrame& frame : frames) {
      Numbers& vector = seen[*layer].at(frame.position);
      for (uint64_t i = 0; i < slot.count; ++i) {
        vector.push_back(model.backend().real_bytes == 8 ? slot.At<double>(frame)[i]
                                                         : double{slot.At<float>(frame)[i]});
      }
    }
  });
  EXPECT_TRUE(session.Encode(text.ids, text.segments, 0).ok());
  session.set_observer({});
  return seen;
}

TEST(ConvertBertFiles, EachLayerGivesTheOriginalsVectors) {
  const char* const place = std::getenv("KINGLET_CHECKPOINTS");
  const std::string folder = std::string(place == nullptr ? "" : place) + "/bert-mlm";
  if (place == nullptr || !fs::exists(folder)) GTEST_SKIP() << "no folder bert-mlm";
  const auto& [options, summary] = ConvertedBert(folder);
  ASSERT_TRUE(summary.ok());
  constexpr size_t kOriginalLayers = 3;
  const std::string name = folder + "/hidden_f64.npz";
  const auto arrays =
      NpzTensors(std::make_shared<const InputFile>(std::move(*InputFile::Open(name))));
  ASSERT_TRUE(arrays.ok()) << arrays.status().message();
  const std::vector<MaskedText> texts = TextsOf(folder);
  for (const auto& [backend, tolerance] : {std::pair("ref64", 1e-6), std::pair("cpu", 1e-4)}) {
    const auto session = SessionOn(options.output, backend);
    for (size_t i = 0; i < 2; ++i) {
      const HiddenVectors seen = HiddenOf(texts[i], kOriginalLayers, *session);
      for (size_t layer = 0; layer <= kOriginalLayers; ++layer) {
        const std::string array = "item" + std::to_string(i) + ".hidden" + std::to_string(layer);
        const auto tensor =
            std::find_if(arrays->begin(), arrays->end(),
                         [&](const CheckpointTensor& each) { return each.name == array; });
        ASSERT_NE(tensor, arrays->end()) << array;
        const std::vector<float> values = *tensor->values();  // rounded to float32
        double largest = 0;
        size_t at = 0;
        for (const Numbers& vector : seen[layer]) {
          for (const double element : vector) {
            ASSERT_LT(at, values.size());
            largest = std::max(largest, std::abs(element - double{values[at++]}));
          }
        }
        EXPECT_EQ(at, values.size()) << array;
        EXPECT_LT(largest, tolerance) << backend << " " << array;
        RecordProperty(backend + ("_" + array + "_billionths"), std::to_string(largest * 1e9));
      }
    }
  }
}

}  // namespace
}  // namespace kinglet::convert_bert_test
