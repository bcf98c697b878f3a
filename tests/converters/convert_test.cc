#include "converters/convert.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <iterator>
#include <memory>

#include "converters/families/families.h"
#include "format/model_file.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "tests/converters/synthetic.h"

namespace kinglet::convert_test {
namespace {

// A training folder with a synthetic checkpoint, and options to convert it.
class ConvertTest : public testing::Test {
 protected:
  void Write(const SyntheticMicronet& model, bool bare = false) {
    options_.checkpoint = run_.Write("models/model-7.pth", model.LegacyFile(bare));
    run_.Write("config.yaml", model.ConfigText());
    std::string words = "the\n<eos>\n<unk>\n";
    for (int id = 3; id < 23; ++id) words += "w" + std::to_string(id) + "\n";
    words_ = run_.Write("vocab.txt", words);
    options_.output = out_.Path("model.kgl");
  }

  ConvertSummary ConvertWell() {
    auto summary = Convert(options_);
    EXPECT_TRUE(summary.ok()) << summary.status().message();
    return summary.ok() ? std::move(summary).value() : ConvertSummary{};
  }
  std::shared_ptr<const ModelFile> Open() const {
    auto file = ModelFile::Open(options_.output);
    EXPECT_TRUE(file.ok()) << file.status().message();
    return file.ok() ? std::move(file).value() : nullptr;
  }
  // A failure leaves neither the model nor a temporary file.
  std::string ExpectRefused(StatusCode code) {
    const Status status = Convert(options_).status();
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    EXPECT_TRUE(out_.Names().empty());
    return status.message();
  }
  // Golden values that the converted model itself gives, in `golden` and `ids`.
  void WriteGolden(double error) {
    const auto session =
        Session::Create(Model::Open(options_.output, {.backend = "ref64"}).value());
    std::string golden, ids = "1";
    uint32_t previous = 1;
    for (uint32_t position = 1; position < 80; ++position) {
      ASSERT_TRUE((*session)->StepToken(previous).ok());
      const uint32_t id = position * 7 % 23;
      char line[96];
      std::snprintf(line, sizeof(line), "%u\t%u\t%.17g\n", position, id,
                    (*session)->LogProbability(id).value() + (position == 70 ? error : 0));
      golden += line;
      ids += " " + std::to_string(id);
      previous = id;
    }
    options_.golden = run_.Write("golden.tsv", golden);
    options_.ids = run_.Write("tokens.txt", ids);
  }

  TemporaryFolder run_, out_;
  ConvertOptions options_;
  std::string words_;
};

TEST_F(ConvertTest, BothFormsOfTheFile) {
  const SyntheticMicronet model;
  std::vector<std::string> digests;
  for (const bool bare : {false, true}) {
    Write(model, bare);
    options_.vocabulary = words_;
    const ConvertSummary summary = ConvertWell();
    EXPECT_EQ(out_.Names(), std::vector<std::string>{"model.kgl"});
    EXPECT_EQ(summary.family, "neurips-micronet");
    const auto file = Open();
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(file->vocabulary()->Word(3), "w3");
    const Provenance& provenance = file->description().provenance;
    EXPECT_EQ(provenance.family, "neurips-micronet");
    EXPECT_EQ(provenance.source, "model-7.pth");
    EXPECT_EQ(provenance.source_digest.size(), 32U);
    EXPECT_TRUE(provenance.producer.starts_with("kinglet "));
    for (const TensorView& view : file->tensors()) {
      SyntheticMicronet copy = model;
      EXPECT_EQ(DecodedValues(view), copy.Get(view.name).values) << view.name;
    }
  }
}

TEST_F(ConvertTest, AFolderIsItsOnlyCheckpoint) {
  Write(SyntheticMicronet());
  options_.checkpoint = run_.path();
  ConvertWell();
  EXPECT_EQ(Open()->description().provenance.source, "model-7.pth");
  run_.Write("models/model-3.pth", "another step");
  EXPECT_EQ(Convert(options_).status().code(), KINGLET_INVALID_ARGUMENT);
}

TEST_F(ConvertTest, TheSameInputGivesTheSameFile) {
  Write(SyntheticMicronet({.bits = 9}));
  const ConvertSummary first = ConvertWell();
  options_.output = out_.Path("again.kgl");
  EXPECT_EQ(ConvertWell().digest, first.digest);
}

TEST_F(ConvertTest, QuantisedCheckpointsBecomeIntegers) {
  for (int bits = 2; bits <= 16; ++bits) {
    SyntheticMicronet model({.bits = bits});
    Write(model);
    const ConvertSummary summary = ConvertWell();
    EXPECT_TRUE(summary.notes.empty()) << bits << ": " << summary.notes.front();
    const auto file = Open();
    for (const TensorView& view : file->tensors()) {
      EXPECT_EQ(DecodedValues(view), model.Get(view.name).values) << view.name;
      const bool kept = view.name.find(".ln") != std::string::npos ||
                        view.name.find("pos_emb") != std::string::npos;
      ASSERT_EQ(view.quantised(), !kept) << view.name;
      if (!kept) {
        EXPECT_EQ(std::get<PackedView>(view.values).bits, bits);
      }
    }
  }
}

TEST_F(ConvertTest, TensorsThatAreNotQuantisedStayFloatAndAreNoted) {
  SyntheticMicronet model({.bits = 9});
  model.Get("layers.0.out.weight").values[3] += 1e-5F;
  Write(model);
  const ConvertSummary summary = ConvertWell();
  ASSERT_EQ(summary.notes.size(), 1U);
  EXPECT_TRUE(summary.notes[0].starts_with("layers.0.out.weight stays float32"));
  const auto file = Open();
  for (const TensorView& view : file->tensors()) {
    EXPECT_EQ(DecodedValues(view), model.Get(view.name).values) << view.name;
  }
}

TEST_F(ConvertTest, PruningComesBeforeQuantising) {
  Write(SyntheticMicronet());
  options_.prune = 0.5;
  options_.bits = 8;
  const ConvertSummary summary = ConvertWell();
  EXPECT_EQ(Open()->description().provenance.options, "prune 0.5, bits 8");
  uint64_t nonzero = 0;
  const auto file = Open();
  for (const TensorView& view : file->tensors()) {
    const std::vector<float> values = DecodedValues(view);
    const auto zeros = static_cast<uint64_t>(std::count(values.begin(), values.end(), 0.0F));
    nonzero += values.size() - zeros;
    if (view.name == "layers.0.qkv.weight") {
      EXPECT_GE(zeros, values.size() / 2);
      EXPECT_TRUE(view.mask.has_value());
    }
    if (view.name == "layers.0.pos_emb") {
      EXPECT_EQ(zeros, 0U);
    }
  }
  EXPECT_EQ(summary.nonzero_parameters, nonzero);
}

TEST_F(ConvertTest, PruningAQuantisedCheckpointKeepsItsScales) {
  SyntheticMicronet model({.bits = 9});
  Write(model);
  options_.prune = 0.3;
  EXPECT_TRUE(ConvertWell().notes.empty());
  const auto file = Open();
  for (const TensorView& view : file->tensors()) {
    const std::vector<float>& before = model.Get(view.name).values;
    const std::vector<float> after = DecodedValues(view);
    for (size_t i = 0; i < after.size(); ++i) {
      if (after[i] != 0) {
        EXPECT_EQ(after[i], before[i]) << view.name;
      }
    }
  }
}

TEST_F(ConvertTest, Calibration) {
  Write(SyntheticMicronet());
  options_.vocabulary = words_;
  options_.bits = 9;
  options_.calibration_text = run_.Write("text", "the w3 w4 w22\n\nw9 unheard-of\n");
  ConvertWell();
  const ModelDescription description = Open()->description();
  const auto* decoder = FindBlock<TransformerDecoder>(description);
  ASSERT_TRUE(decoder->output.has_value());
  EXPECT_EQ(decoder->start, StreamStart::kMasked);
  EXPECT_EQ(FindBlock<AdaptiveSoftmax>(description)->tail_input, TailInput::kFixedPoint15);
  EXPECT_EQ(description.provenance.options, "bits 9, calibrated");
  options_.calibration_text = run_.Path("none");
  std::remove(options_.output.c_str());
  ExpectRefused(KINGLET_NOT_FOUND);
}

TEST_F(ConvertTest, CacheOptionsAndTheSearchFile) {
  Write(SyntheticMicronet({.trained_cache = true}));
  run_.Write("cache_step7_n4.yaml", "cache_lambda: 0.375\ncache_theta: 0.75\n");
  ConvertWell();
  EXPECT_EQ(FindBlock<NeuralCache>(Open()->description())->theta, 0.75);
  options_.cache_capacity = 11;
  options_.cache_lambda = 0.5;
  ConvertWell();
  const ModelDescription changed = Open()->description();
  EXPECT_EQ(FindBlock<NeuralCache>(changed)->capacity, 11U);
  EXPECT_EQ(FindBlock<NeuralCache>(changed)->theta, 0.75);
  EXPECT_EQ(FindBlock<NeuralCache>(changed)->lambda, 0.5);
  options_.cache_lambda.reset();
  options_.cache_capacity = 0;
  ConvertWell();
  EXPECT_EQ(FindBlock<NeuralCache>(Open()->description()), nullptr);
}

TEST_F(ConvertTest, GoldenValuesAreReplayedAndCarried) {
  Write(SyntheticMicronet({.bits = 9}));
  ConvertWell();
  WriteGolden(0);
  options_.tolerance = 1e-12;
  const ConvertSummary summary = ConvertWell();
  EXPECT_EQ(summary.golden_positions, 79U);
  EXPECT_LE(summary.golden_largest_difference, 1e-12);
  ASSERT_TRUE(Open()->description().golden.has_value());
  EXPECT_EQ(Open()->description().golden->ids.size(), 64U);
}

TEST_F(ConvertTest, AWrongGoldenValueFailsTheConversion) {
  Write(SyntheticMicronet());
  ConvertWell();
  WriteGolden(1e-3);
  std::remove(options_.output.c_str());
  EXPECT_NE(ExpectRefused(KINGLET_MISMATCH).find("position 70"), std::string::npos);
  options_.tolerance = 2e-3;
  EXPECT_NEAR(ConvertWell().golden_largest_difference, 1e-3, 1e-9);
}

TEST_F(ConvertTest, AFailureLeavesTheOldFile) {
  Write(SyntheticMicronet());
  out_.Write("model.kgl", "old");
  SyntheticMicronet broken;
  broken.Get("layers.0.ln1.bias").values[2] = NAN;
  Write(broken);
  const Status status = Convert(options_).status();
  EXPECT_EQ(status.message(),
            "checkpoint: tensor layers.0.ln1.bias, entry 2: expected a finite number, found NaN "
            "(give another checkpoint of the training, or replace the value)");
  std::ifstream file(options_.output);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "old");
  EXPECT_EQ(out_.Names(), std::vector<std::string>{"model.kgl"});
}

TEST_F(ConvertTest, AnOutputThatIsAFolderIsRefusedBeforeAnyWork) {
  options_.checkpoint = run_.Path("none");
  options_.output = out_.path();
  EXPECT_NE(ExpectRefused(KINGLET_INVALID_ARGUMENT).find("a folder"), std::string::npos);
}

// A limit on file sizes imitates a full disk.
TEST_F(ConvertTest, AFullDisk) {
  Write(SyntheticMicronet());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limited = before;
  limited.rlim_cur = 1000;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limited), 0);
  const Status status = Convert(options_).status();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), KINGLET_IO_ERROR) << status.message();
  EXPECT_TRUE(out_.Names().empty());
}

TEST_F(ConvertTest, AVocabularyOfAnotherLength) {
  Write(SyntheticMicronet());
  options_.vocabulary = run_.Write("short.txt", "a\nb\n<eos>\n");
  EXPECT_NE(
      ExpectRefused(KINGLET_INVALID_ARGUMENT).find("expected 23 words as the model has, found 3"),
      std::string::npos);
}

TEST_F(ConvertTest, BitsForAQuantisedCheckpoint) {
  Write(SyntheticMicronet({.bits = 9}));
  options_.bits = 8;
  EXPECT_NE(ExpectRefused(KINGLET_INVALID_ARGUMENT).find("found 8 for one of 9 bits"),
            std::string::npos);
}

TEST_F(ConvertTest, TheWrongConfiguration) {
  Write(SyntheticMicronet());
  SyntheticMicronet other({.cutoffs = {10}});
  options_.config = run_.Write("other.yaml", other.ConfigText());
  const std::string message = ExpectRefused(KINGLET_INVALID_CHECKPOINT);
  EXPECT_NE(message.find("unused "), std::string::npos);
  EXPECT_NE(message.find("shape loss.layers.0.weight: expected [10, 8], found [6, 8]"),
            std::string::npos);
}

TEST_F(ConvertTest, WhatIsNoMicronet) {
  SyntheticMicronet model;
  for (SyntheticTensor& tensor : model.tensors) tensor.name = "x." + tensor.name;
  Write(model);
  const std::string message = ExpectRefused(KINGLET_UNSUPPORTED);
  EXPECT_NE(message.find("recognises (" + FamilyNames() + "), found a state dict of"),
            std::string::npos);
  options_.family = "unheard-of";
  EXPECT_NE(ExpectRefused(KINGLET_UNSUPPORTED).find("no such family"), std::string::npos);
  options_.checkpoint = run_.Write("models/model-8.pth", "garbage");
  ExpectRefused(KINGLET_INVALID_CHECKPOINT);
  options_.checkpoint = run_.Path("none.pth");
  ExpectRefused(KINGLET_NOT_FOUND);
  options_.checkpoint = std::string(KINGLET_TEST_DATA) + "/converters/legacy_not_tensors.pth";
  EXPECT_NE(ExpectRefused(KINGLET_INVALID_CHECKPOINT)
                .find("expected a state dict, alone or as 'net', 'model' or 'state_dict' of a "
                      "dict, or a pickled module, "
                      "alone or first in a list, found "),
            std::string::npos);
}

TEST_F(ConvertTest, NoConfiguration) {
  Write(SyntheticMicronet());
  std::remove(run_.Path("config.yaml").c_str());
  EXPECT_NE(ExpectRefused(KINGLET_NOT_FOUND).find("config.yaml"), std::string::npos);
}

// Every truncated file is refused, without a crash and without output.
TEST_F(ConvertTest, TruncatedCheckpoints) {
  const SyntheticMicronet model;
  Write(model);
  const std::string original = model.LegacyFile();
  for (size_t size = 0; size < original.size(); size += 1 + original.size() / 60) {
    run_.Write("models/model-7.pth", original.substr(0, size));
    EXPECT_FALSE(Convert(options_).ok()) << size;
  }
  EXPECT_TRUE(out_.Names().empty());
}

}  // namespace
}  // namespace kinglet::convert_test
