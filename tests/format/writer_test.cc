#include "format/writer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "format/model_file.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"

namespace kinglet::writer_test {
namespace {

enum class Fill { kRandom, kZeros, kExtremes };

// The float of a code, computed in double: the product is exact there, and a quotient of
// two floats rounded first to double rounds to the same float (53 >= 2 * 24 + 2).
float ByDefinition(const Quantised& quantised, const Shape& shape, uint64_t i) {
  const bool per_row = quantised.rule == ScaleRule::kMultiplyPerRow;
  const double scale = quantised.scales[per_row ? i / Cols(shape) : 0];
  const double code = quantised.codes[i];
  return static_cast<float>(quantised.rule == ScaleRule::kDividePerTensor ? code / scale
                                                                          : code * scale);
}

EncodedTensor MakeQuantised(int bits, ScaleRule rule, const Shape& shape, Fill fill,
                            TestRandom& random) {
  Quantised quantised;
  quantised.bits = bits;
  quantised.rule = rule;
  const int limit = 1 << (bits - 1);
  for (uint64_t i = 0; i < Count(shape); ++i) {
    int code = 0;
    if (fill == Fill::kRandom && random.Below(3) != 0) {
      code = static_cast<int>(random.Below(2 * limit)) - limit;
    }
    if (fill == Fill::kExtremes) code = i % 2 == 0 ? -limit : limit - 1;
    quantised.codes.push_back(static_cast<int16_t>(code));
  }
  const bool per_row = rule == ScaleRule::kMultiplyPerRow;
  for (uint64_t row = 0; row < (per_row ? Rows(shape) : 1); ++row) {
    const bool zero = fill == Fill::kZeros && rule != ScaleRule::kDividePerTensor;
    // Full 24-bit mantissas, so that products and quotients need rounding.
    quantised.scales.push_back(zero ? 0.0f : 1.5f + 0.5f * random.Signed());
  }
  return {"", shape, quantised, false};
}

EncodedTensor MakeDense(bool half, const Shape& shape, Fill fill, TestRandom& random) {
  DenseF32 wide;
  DenseF16 narrow;
  for (uint64_t i = 0; i < Count(shape); ++i) {
    float value = 0.0f;
    if (fill == Fill::kRandom && random.Below(3) != 0) value = random.Signed();
    if (fill == Fill::kExtremes) {
      const float largest = half ? 65504.0f : std::numeric_limits<float>::max();
      const float smallest = half ? 0x1p-24f : std::numeric_limits<float>::denorm_min();
      value = i % 3 == 0 ? -largest : (i % 3 == 1 ? smallest : largest);
    }
    wide.values.push_back(value);
    narrow.bits.push_back(FloatToHalf(value));
  }
  if (half) return {"", shape, narrow, false};
  return {"", shape, wide, false};
}

// One tensor of every encoding, shape and kind of content.
std::vector<EncodedTensor> EveryEncoding() {
  TestRandom random(1);
  std::vector<EncodedTensor> tensors;
  const auto add = [&](EncodedTensor tensor) {
    for (bool pruned : {false, true}) {
      tensor.name = "extra." + std::to_string(tensors.size());
      tensor.pruned = pruned;
      tensors.push_back(tensor);
    }
  };
  for (Fill fill : {Fill::kRandom, Fill::kZeros, Fill::kExtremes}) {
    for (const Shape& shape :
         {Shape{1}, Shape{7}, Shape{65}, Shape{1, 1}, Shape{3, 5}, Shape{17, 9}, Shape{2, 64}}) {
      add(MakeDense(false, shape, fill, random));
      add(MakeDense(true, shape, fill, random));
      for (int bits = kMinBits; bits <= kMaxBits; ++bits) {
        if (shape.size() == 2) {
          add(MakeQuantised(bits, ScaleRule::kMultiplyPerRow, shape, fill, random));
        }
        add(MakeQuantised(bits, ScaleRule::kMultiplyPerTensor, shape, fill, random));
        add(MakeQuantised(bits, ScaleRule::kDividePerTensor, shape, fill, random));
      }
    }
  }
  return tensors;
}

void ExpectSameBits(std::span<const float> found, std::span<const float> expected,
                    const std::string& name) {
  ASSERT_EQ(found.size(), expected.size()) << name;
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(found[i]), std::bit_cast<uint32_t>(expected[i]))
        << name << " entry " << i;
  }
}

TEST(WriterTest, EveryEncodingDecodesToTheSameBits) {
  ModelDraft draft = TinyMicronet();
  const size_t first = draft.tensors.size();
  const std::vector<EncodedTensor> extra = EveryEncoding();
  draft.tensors.insert(draft.tensors.end(), extra.begin(), extra.end());
  const auto bytes = SerialiseModel(draft);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto model = ModelFile::FromBytes(*bytes);
  ASSERT_TRUE(model.ok()) << model.status().message();
  ASSERT_EQ((*model)->tensors().size(), draft.tensors.size());
  for (size_t t = 0; t < extra.size(); ++t) {
    const EncodedTensor& tensor = extra[t];
    const TensorView& view = (*model)->tensors()[first + t];
    ASSERT_EQ(view.name, tensor.name);
    ASSERT_EQ(view.shape, tensor.shape);
    ASSERT_EQ(view.mask.has_value(), tensor.pruned);
    if (view.mask) {
      EXPECT_EQ(view.mask->nonzeros, CountNonzeros(tensor));
    }
    std::vector<float> expected = DecodedValues(tensor);
    if (const auto* quantised = std::get_if<Quantised>(&tensor.values)) {
      for (uint64_t i = 0; i < expected.size(); ++i) {
        expected[i] = ByDefinition(*quantised, tensor.shape, i);
      }
      const DecodedCodes codes = DecodeCodes(view);
      EXPECT_EQ(codes.bits, quantised->bits);
      EXPECT_EQ(codes.rule, quantised->rule);
      EXPECT_EQ(codes.codes, quantised->codes);
      ExpectSameBits(codes.scales, quantised->scales, view.name);
      ExpectSameBits(DecodedValues(tensor), expected, view.name);
    }
    ExpectSameBits(DecodedValues(view), expected, view.name);
  }
}

TEST(WriterTest, APrunedNegativeZeroBecomesZero) {
  ModelDraft draft = TinyMicronet();
  draft.tensors.push_back({"dense", {2}, DenseF32{{-0.0f, 1.0f}}, false});
  draft.tensors.push_back({"pruned", {2}, DenseF32{{-0.0f, 1.0f}}, true});
  const auto bytes = SerialiseModel(draft);
  ASSERT_TRUE(bytes.ok());
  const auto model = ModelFile::FromBytes(*bytes);
  ASSERT_TRUE(model.ok());
  const auto tensors = (*model)->tensors().last(2);
  EXPECT_TRUE(std::signbit(DecodedValues(tensors[0])[0]));
  EXPECT_FALSE(std::signbit(DecodedValues(tensors[1])[0]));
  EXPECT_EQ(tensors[1].mask->nonzeros, 1u);
}

TEST(WriterTest, TruncatedScalesTakeFewBits) {
  // MicroNet clears as many low mantissa bits as codes have: with 9-bit codes 9 of 23.
  ModelDraft draft = TinyMicronet();
  TestRandom random(4);
  Quantised values{9, ScaleRule::kMultiplyPerRow, std::vector<int16_t>(100, 1), {}};
  for (int row = 0; row < 100; ++row) {
    const float scale = 0.01f * (1.5f + 0.5f * random.Signed());
    values.scales.push_back(std::bit_cast<float>(std::bit_cast<uint32_t>(scale) & 0xFFFFFE00));
  }
  draft.tensors.push_back({"extra", {100, 1}, values, false});
  const auto bytes = SerialiseModel(draft);
  ASSERT_TRUE(bytes.ok());
  const auto model = ModelFile::FromBytes(*bytes);
  ASSERT_TRUE(model.ok());
  const auto& packed = std::get<PackedView>((*model)->tensors().back().values);
  EXPECT_EQ(packed.scales.shift, 9);
  // Below 1.0 the two highest of the 31 bits are 0 and 1, which leaves 30 bits less those 9.
  EXPECT_EQ(packed.scales.bits, 21);
}

// The draft that a file was packed from.
ModelDraft DraftOf(const ModelFile& model) {
  ModelDraft draft;
  draft.description = model.description();
  for (const TensorView& view : model.tensors()) {
    EncodedTensor tensor{view.name, view.shape, DenseF32{}, view.mask.has_value()};
    if (view.quantised()) {
      DecodedCodes codes = DecodeCodes(view);
      tensor.values = Quantised{codes.bits, codes.rule, codes.codes, codes.scales};
    } else if (std::get<DenseView>(view.values).type == FloatType::kF16) {
      DenseF16 half;
      for (float value : DecodedValues(view)) half.bits.push_back(FloatToHalf(value));
      tensor.values = half;
    } else {
      tensor.values = DenseF32{DecodedValues(view)};
    }
    draft.tensors.push_back(std::move(tensor));
  }
  if (const Vocabulary* vocabulary = model.vocabulary()) {
    for (uint32_t id = 0; id < vocabulary->size(); ++id) {
      draft.vocabulary.push_back(vocabulary->Word(id));
    }
  }
  return draft;
}

TEST(WriterTest, RandomModelsSurviveTheRoundTrip) {
  TestRandom random(9);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    TinyOptions options;
    options.seed = seed;
    options.quantised = random.Below(2) == 1;
    const int bits[] = {0, 2, 3, 8, 9, 10, 16};
    options.bits = bits[random.Below(7)];
    options.pruned = random.Below(2) == 1;
    options.vocabulary = random.Below(2) == 1;
    options.cache_capacity = random.Below(3) * 100;
    options.bins = 1 + static_cast<int>(random.Below(3));
    options.vocabulary_size = 9 + random.Below(80);
    options.layers = 1 + random.Below(3);
    options.width = 4 + random.Below(12);
    options.heads = 1 + random.Below(4);
    options.key_size = 1 + random.Below(6);
    options.value_size = 1 + random.Below(6);
    options.inner = 1 + random.Below(20);
    options.window = 1 + random.Below(9);
    ModelDraft draft = TinyMicronet(options);
    if (random.Below(2) == 1)
      draft.description.golden = GoldenVector{{1, 2, 0}, {-1.5, -0.25}, 1e-3};
    const auto bytes = SerialiseModel(draft);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    const auto model = ModelFile::FromBytes(*bytes);
    ASSERT_TRUE(model.ok()) << model.status().message();
    for (size_t t = 0; t < draft.tensors.size(); ++t) {
      ExpectSameBits(DecodedValues((*model)->tensors()[t]), DecodedValues(draft.tensors[t]),
                     draft.tensors[t].name);
    }
    const auto again = SerialiseModel(DraftOf(**model));
    ASSERT_TRUE(again.ok());
    EXPECT_TRUE(*again == *bytes) << "seed " << seed;
  }
}

TEST(WriterTest, TheDescriptionIsReadAsWritten) {
  ModelDraft draft =
      TinyMicronet({.quantised = true, .bits = 9, .cache_capacity = 77, .layers = 3});
  draft.description.golden = GoldenVector{{3, 1, 4}, {-1.0, 0.0}, 0.5};
  const auto bytes = SerialiseModel(draft);
  ASSERT_TRUE(bytes.ok());
  const auto model = ModelFile::FromBytes(*bytes);
  ASSERT_TRUE(model.ok());
  const ModelDescription& read = (*model)->description();
  const Provenance& provenance = read.provenance;
  EXPECT_EQ(provenance.producer, "kinglet tests");
  EXPECT_EQ(provenance.family, "neurips-micronet");
  EXPECT_EQ(provenance.source, "model-1.pth");
  EXPECT_EQ(provenance.source_digest, std::string(32, '0'));
  EXPECT_EQ(provenance.options, "bits 9");
  EXPECT_EQ(read.vocabulary_size, 23u);
  ASSERT_EQ(read.blocks.size(), 4u);
  const auto& decoder = *FindBlock<TransformerDecoder>(read);
  EXPECT_EQ(decoder.name, "decoder");
  EXPECT_EQ(decoder.window, 6u);
  EXPECT_EQ(decoder.start, StreamStart::kZeros);
  ASSERT_EQ(decoder.layers.size(), 3u);
  const TransformerLayerQuantisers& quantisers = *decoder.layers[2].quantisers;
  EXPECT_EQ(quantisers.attention_input.max_abs, 3.0f);
  EXPECT_EQ(quantisers.qkv.max_abs, 4.0f);
  EXPECT_EQ(quantisers.weights.max_abs, 1.0f);
  EXPECT_EQ(quantisers.inner.max_abs, 4.0f);
  EXPECT_EQ(quantisers.outer.max_abs, 2.5f);
  EXPECT_EQ(decoder.output->max_abs, 6.0f);
  const auto& written = std::get<TransformerDecoder>(draft.description.blocks[1]).layers[2];
  EXPECT_EQ(decoder.layers[2].positions, written.positions);
  EXPECT_EQ(decoder.layers[2].outer_bias, written.outer_bias);
  EXPECT_EQ(decoder.layers[2].attention_norm_gain, written.attention_norm_gain);
  const auto& softmax = *FindBlock<AdaptiveSoftmax>(read);
  EXPECT_EQ(softmax.tail_input, TailInput::kFixedPoint15);
  ASSERT_EQ(softmax.tails.size(), 2u);
  EXPECT_EQ(softmax.tails[0].cluster_row, 1u);
  EXPECT_EQ(softmax.tails[1].cluster_row, 0u);
  const auto& cache = *FindBlock<NeuralCache>(read);
  EXPECT_EQ(cache.capacity, 77u);
  EXPECT_EQ(cache.theta, 0.25);
  EXPECT_EQ(cache.lambda, 0.125);
  EXPECT_EQ(read.golden->ids, (std::vector<uint32_t>{3, 1, 4}));
  EXPECT_EQ(read.golden->log_probabilities, (std::vector<double>{-1.0, 0.0}));
  EXPECT_EQ(read.golden->tolerance, 0.5);
  EXPECT_FALSE(read.start_token.has_value());

  for (const uint32_t start : {0u, 22u}) {
    draft.description.start_token = start;
    draft.description.golden = GoldenVector{{3}, {-1.0}, 0.5};
    const auto file = ModelFile::FromBytes(*SerialiseModel(draft));
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ((*file)->description().start_token, start);
  }
}

TEST(WriterTest, RecurrentModelsAreReadAsWritten) {
  using Cell = RecurrentCell;
  for (const bool quantised : {false, true}) {
    const ModelDraft draft = TinyRecurrent(
        {.cells = {Cell::kQrnn, Cell::kQrnn, Cell::kLstm, Cell::kGru, Cell::kTanh, Cell::kRelu},
         .quantised = quantised,
         .bits = quantised ? 7 : 0,
         .cache_capacity = 9});
    const auto bytes = SerialiseModel(draft);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    const auto model = ModelFile::FromBytes(*bytes);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const auto& written = *FindBlock<RecurrentDecoder>(draft.description);
    const auto& read = *FindBlock<RecurrentDecoder>((*model)->description());
    EXPECT_EQ(read.name, "rnn");
    EXPECT_EQ(read.inputs, 6u);
    EXPECT_EQ(read.input.has_value(), quantised);
    ASSERT_EQ(read.layers.size(), 6u);
    for (size_t i = 0; i < 6; ++i) {
      const RecurrentLayer& a = read.layers[i];
      const RecurrentLayer& b = written.layers[i];
      EXPECT_EQ(a.cell, b.cell);
      EXPECT_EQ(a.units, b.units);
      EXPECT_EQ(a.input_weight, b.input_weight);
      EXPECT_EQ(a.input_bias, b.input_bias);
      EXPECT_EQ(a.recurrent_weight, b.recurrent_weight);
      EXPECT_EQ(a.recurrent_bias, b.recurrent_bias);
      ASSERT_EQ(a.output.has_value(), quantised);
      if (quantised) {
        EXPECT_EQ(a.output->scale, b.output->scale);
      }
    }
    EXPECT_FALSE(read.layers[1].recurrent_weight.has_value());
    EXPECT_EQ(FindBlock<NeuralCache>((*model)->description())->start, CacheStart::kPastCapacity);
    const auto again = SerialiseModel(DraftOf(**model));
    ASSERT_TRUE(again.ok());
    EXPECT_TRUE(*again == *bytes);
  }
}

TEST(WriterTest, EqualDraftsGiveEqualBytes) {
  const TinyOptions options{.quantised = true, .pruned = true, .cache_capacity = 5};
  const auto first = SerialiseModel(TinyMicronet(options));
  const auto second = SerialiseModel(TinyMicronet(options));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(*first == *second);
}

struct Refused {
  const char* message;  // its beginning, after "model draft: "
  std::function<void(ModelDraft&)> edit;
};

Quantised& Codes(ModelDraft& draft, size_t tensor) {
  return std::get<Quantised>(draft.tensors[tensor].values);
}

// Tensor 0 is the first table (4 bits, scales per row), 1 its bias (one divisor).
const Refused kRefused[] = {
    {"tensor loss.layers.0.weight, entry 1: expected -8 to 7, found 8",
     [](ModelDraft& draft) { Codes(draft, 0).codes[1] = 8; }},
    {"tensor loss.layers.0.weight, entry 1: expected -8 to 7, found -9",
     [](ModelDraft& draft) { Codes(draft, 0).codes[1] = -9; }},
    {"tensor loss.layers.0.weight, bits: expected 2 to 16, found 17",
     [](ModelDraft& draft) { Codes(draft, 0).bits = 17; }},
    {"tensor loss.layers.0.weight, bits: expected 2 to 16, found 1",
     [](ModelDraft& draft) { Codes(draft, 0).bits = 1; }},
    {"tensor loss.layers.0.weight, scale rule: expected a number up to 2, found 3",
     [](ModelDraft& draft) { Codes(draft, 0).rule = static_cast<ScaleRule>(3); }},
    {"tensor loss.layers.0.weight, number of codes: expected 24, found 23",
     [](ModelDraft& draft) { Codes(draft, 0).codes.pop_back(); }},
    {"tensor loss.layers.0.weight, number of scales: expected 3, found 4",
     [](ModelDraft& draft) { Codes(draft, 0).scales.push_back(1); }},
    {"tensor loss.layers.0.weight, scale 2: expected a finite number from 0, found nan",
     [](ModelDraft& draft) { Codes(draft, 0).scales[2] = std::nanf(""); }},
    {"tensor loss.layers.0.weight, scale 2: expected a finite number from 0, found -0",
     [](ModelDraft& draft) { Codes(draft, 0).scales[2] = -0.0f; }},
    {"tensor loss.layers.0.weight, scale 2: expected a scale above 0 for entries",
     [](ModelDraft& draft) { Codes(draft, 0).scales[2] = 0.0f; }},
    {"tensor loss.layers.0.weight, scale 2: expected a scale under which",
     [](ModelDraft& draft) { Codes(draft, 0).scales[2] = 1e38f; }},
    {"tensor loss.layers.0.bias, scale rule: expected a matrix",
     [](ModelDraft& draft) { Codes(draft, 1).rule = ScaleRule::kMultiplyPerRow; }},
    {"tensor loss.layers.0.bias, scale 0: expected a scale under which",
     [](ModelDraft& draft) { Codes(draft, 1).scales[0] = 0.0f; }},
    {"tensor extra, entry 1: expected a finite number, found inf",
     [](ModelDraft& draft) {
       draft.tensors.push_back(
           {"extra", {2}, DenseF32{{1, std::numeric_limits<float>::infinity()}}, false});
     }},
    {"tensor extra, entry 0: expected a finite number, found nan",
     [](ModelDraft& draft) {
       draft.tensors.push_back({"extra", {2}, DenseF16{{0x7E00, 0}}, true});
     }},
    {"tensor extra, number of values: expected 3, found 2",
     [](ModelDraft& draft) {
       draft.tensors.push_back({"extra", {3}, DenseF32{{1, 2}}, false});
     }},
    {"tensor extra, shape: expected 1 or 2 dimensions, found 0",
     [](ModelDraft& draft) {
       draft.tensors.push_back({"extra", {}, DenseF32{}, false});
     }},
    {"tensor extra, shape: expected dimensions from 1 to",
     [](ModelDraft& draft) {
       draft.tensors.push_back({"extra", {2, 0}, DenseF32{}, false});
     }},
    {"tensor extra, shape: expected dimensions from 1 to",
     [](ModelDraft& draft) {
       draft.tensors.push_back({"extra", {uint64_t{1} << 63, 2}, DenseF32{}, false});
     }},
    {"tensor 1, name: expected a name of its own, found loss.layers.0.weight again",
     [](ModelDraft& draft) { draft.tensors[1].name = draft.tensors[0].name; }},
    {"vocabulary, size: expected 23 words, found 22",
     [](ModelDraft& draft) { draft.vocabulary.pop_back(); }},
    {"vocabulary: word 5: expected a word of its own",
     [](ModelDraft& draft) { draft.vocabulary[5] = draft.vocabulary[1]; }},
    {"block decoder, layer 0, attention_norm_gain: expected shape [8]",
     [](ModelDraft& draft) {
       auto& decoder = std::get<TransformerDecoder>(draft.description.blocks[1]);
       decoder.layers[0].attention_norm_gain = *decoder.layers[0].positions;
     }},
    {"block decoder, start: expected a number up to 1, found 9",
     [](ModelDraft& draft) {
       std::get<TransformerDecoder>(draft.description.blocks[1]).start =
           static_cast<StreamStart>(9);
     }},
    {"block cache, start: expected a number up to 1, found 9",
     [](ModelDraft& draft) {
       draft.description.blocks.emplace_back(
           NeuralCache{"cache", 3, 0.5, 0.5, static_cast<CacheStart>(9)});
     }},
    {"block rnn, layer 0, cell: expected a number up to 4, found 9",
     [](ModelDraft& draft) {
       draft = TinyRecurrent();
       std::get<RecurrentDecoder>(draft.description.blocks[1]).layers[0].cell =
           static_cast<RecurrentCell>(9);
     }},
    {"block loss, tails: expected at most 4095, found 4096",
     [](ModelDraft& draft) {
       std::get<AdaptiveSoftmax>(draft.description.blocks[2]).tails.resize(4096);
     }},
    {"block loss, normalisation: expected a number up to 1, found 9",
     [](ModelDraft& draft) {
       std::get<AdaptiveSoftmax>(draft.description.blocks[2]).normalisation =
           static_cast<Normalisation>(9);
     }},
    {"block loss, tail input: expected a number up to 1, found 9",
     [](ModelDraft& draft) {
       std::get<AdaptiveSoftmax>(draft.description.blocks[2]).tail_input =
           static_cast<TailInput>(9);
     }},
};

TEST(WriterTest, RefusesWhatAFileMayNotHold) {
  const ModelDraft good = TinyMicronet({.bits = 4});
  ASSERT_TRUE(SerialiseModel(good).ok());
  for (const Refused& refused : kRefused) {
    ModelDraft draft = good;
    refused.edit(draft);
    const Status status = SerialiseModel(draft).status();
    EXPECT_EQ(status.code(), KINGLET_INVALID_ARGUMENT) << refused.message;
    EXPECT_TRUE(status.message().starts_with(std::string("model draft: ") + refused.message))
        << "expected: " << refused.message << "\n   found: " << status.message();
  }
}

TEST(WriterTest, RefusesAnEmptyDraft) {
  EXPECT_EQ(SerialiseModel(ModelDraft()).status().code(), KINGLET_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace kinglet::writer_test
