#include "tests/fuzz/random_models.h"

#include "tests/support/define_builder.h"
#include "tests/support/masked_builder.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/support/translation_builder.h"
#include "tests/synthesis/coded_synthesis.h"
#include "tests/synthesis/synthesis.h"

namespace kinglet::fuzz {
namespace {

// 0, or a number of bits that files have.
int BitsFrom(ByteReader& bytes) {
  const auto bits = static_cast<int>(bytes.Between(0, 9));
  return bits < 2 ? 0 : bits;
}

RandomModel RandomMicronet(ByteReader& bytes) {
  TinyOptions options;
  options.quantised = bytes.Bit();
  options.bits = BitsFrom(bytes);
  options.pruned = bytes.Bit();
  options.cache_capacity = bytes.Between(0, 5);
  options.bins = static_cast<int>(bytes.Between(1, 3));
  options.vocabulary_size = bytes.Between(9, 90);
  options.layers = bytes.Between(1, 3);
  options.width = 4 * bytes.Between(1, 12);
  options.heads = bytes.Between(1, 4);
  options.key_size = bytes.Between(1, 9);
  options.value_size = bytes.Between(1, 9);
  options.inner = bytes.Between(1, 40);
  options.window = bytes.Between(1, 9);
  options.seed = bytes.Byte();
  const bool has_stack = bytes.Bit();
  if (has_stack) {  // rows of 9 bits, which five heads make the smaller ones
    options.quantised = true;
    options.heads = bytes.Between(5, 12);
    options.key_size = 8 * bytes.Between(1, 6);
    options.value_size = 8 * bytes.Between(1, 6);
    options.width = 4 * bytes.Between(1, 32);
    options.window = bytes.Between(1, 60);
  }
  return {.draft = TinyMicronet(options), .quantised = options.quantised, .has_stack = has_stack};
}

RandomModel RandomRecurrent(ByteReader& bytes) {
  constexpr RecurrentCell kCells[] = {RecurrentCell::kLstm, RecurrentCell::kGru,
                                      RecurrentCell::kQrnn};
  TinyRecurrentOptions options;
  options.cells.clear();
  for (uint32_t i = bytes.Between(1, 3); i > 0; --i) {
    options.cells.push_back(kCells[bytes.Between(0, 2)]);
  }
  options.inputs = 2 * bytes.Between(1, 12);
  options.units = 2 * bytes.Between(1, 12);
  options.more_units = 2 * bytes.Between(0, 3);
  options.bits = BitsFrom(bytes);
  options.quantised = options.bits > 0 && bytes.Bit();
  options.tails = bytes.Between(0, 2);
  options.vocabulary_size = bytes.Between(9, 60);
  if (bytes.Bit()) options.input_coding = TinyCoding{2, {bytes.Between(2, 9)}};
  if (bytes.Bit()) options.head_coding = TinyCoding{1, {bytes.Between(2, 9)}};
  options.cache_capacity = bytes.Between(0, 4);
  options.cache_start = bytes.Bit() ? CacheStart::kFirstPair : CacheStart::kPastCapacity;
  options.seed = bytes.Byte();
  if (bytes.Bit()) options.projected = 2 * bytes.Between(1, 10);
  return {TinyRecurrent(options), options.quantised};
}

RandomModel RandomTransformer(ByteReader& bytes) {
  TinyTransformerOptions options;
  options.positions = static_cast<TinyPositions>(bytes.Between(0, 3));
  options.norm_order = bytes.Bit() ? NormOrder::kPre : NormOrder::kPost;
  if (options.positions == TinyPositions::kRelative) {
    if (bytes.Bit()) options.start = StreamStart::kZeros;
    if (bytes.Bit()) options.clamp = bytes.Between(1, 4);
    options.tied_position_biases = bytes.Bit();
  }
  options.first = bytes.Between(0, 3);
  options.biases = bytes.Bit();
  options.final_norm = bytes.Bit();
  options.bits = BitsFrom(bytes);
  options.quantised = options.bits > 0 && bytes.Bit();
  options.vocabulary_size = bytes.Between(3, 60);
  options.layers = bytes.Between(1, 3);
  options.width = 2 * bytes.Between(1, 24);
  options.heads = bytes.Between(1, 4);
  options.key_size = bytes.Between(1, 9);
  options.value_size = bytes.Between(1, 9);
  options.inner = bytes.Between(1, 40);
  options.window = bytes.Between(1, 8);
  options.seed = bytes.Byte();
  return {TinyTransformer(options), options.quantised};
}

RandomModel RandomTranslation(ByteReader& bytes) {
  TinyTranslationOptions options;
  options.bits = BitsFrom(bytes);
  options.quantised = options.bits > 0 && bytes.Bit();
  options.source_words = bytes.Between(4, 30);
  options.target_words = bytes.Between(4, 30);
  options.encoder_layers = bytes.Between(1, 2);
  options.decoder_layers = bytes.Between(1, 2);
  options.encoder_width = 2 * bytes.Between(1, 12);
  options.decoder_width = 2 * bytes.Between(1, 12);
  options.source_window = bytes.Between(2, 9);
  options.target_window = bytes.Between(2, 9);
  options.encoder_heads = bytes.Between(1, 3);
  options.decoder_heads = bytes.Between(1, 3);
  options.inner = bytes.Between(1, 30);
  options.seed = bytes.Byte();
  return {TinyTranslation(options), options.quantised, true};
}

RandomModel RandomMasked(ByteReader& bytes) {
  TinyMaskedOptions options;
  options.bits = BitsFrom(bytes);
  options.quantised = options.bits > 0 && bytes.Bit();
  options.pooler = bytes.Bit();
  options.scores = options.pooler ? bytes.Between(0, 3) : 0;
  options.segments = bytes.Between(1, 3);
  options.vocabulary_size = bytes.Between(6, 60);
  options.layers = bytes.Between(1, 3);
  options.width = 2 * bytes.Between(1, 24);
  options.heads = bytes.Between(1, 4);
  options.key_size = bytes.Between(1, 9);
  options.value_size = bytes.Between(1, 9);
  options.inner = bytes.Between(1, 40);
  options.window = bytes.Between(1, 20);
  options.seed = bytes.Byte();
  return {TinyMasked(options), false, false, true};
}

RandomModel RandomDefine(ByteReader& bytes) {
  TinyDefineOptions options;
  options.cache_rows = bytes.Between(1, 6);
  options.bits = BitsFrom(bytes);
  options.vocabulary_size = bytes.Between(14, 40);
  options.seed = bytes.Byte();
  return {TinyDefine(options)};
}

// Tensors of complete rows of vectors, so that the vectorised kernels run their main loops.
RandomModel RandomSynthesis(ByteReader& bytes) {
  if (bytes.Bit()) {
    CodedSynthesisSpec spec;
    spec.name = "coded";
    spec.vocabulary_size = bytes.Between(4, 200);
    const uint32_t positions = bytes.Between(1, 8);
    spec.width = positions * bytes.Between(1, 9);
    spec.input = {positions, {bytes.Between(1, 20)}};
    spec.units = {bytes.Between(1, 70)};
    spec.output_bias = bytes.Bit();
    spec.bits = BitsFrom(bytes);
    spec.seed = bytes.Byte();
    const auto draft = SynthesiseCoded(spec);
    return draft.ok() ? RandomModel{*draft} : RandomMicronet(bytes);
  }
  SynthesisSpec spec;
  spec.vocabulary_size = 200 + bytes.Byte();
  spec.cutoffs = {bytes.Between(10, 60), bytes.Between(61, 150)};
  spec.widths = {4 * bytes.Between(1, 40), 2 * bytes.Between(1, 20), bytes.Between(1, 9)};
  spec.layers = bytes.Between(1, 2);
  spec.heads = bytes.Between(1, 4);
  spec.key_size = bytes.Between(1, 24);
  spec.value_size = bytes.Between(1, 24);
  spec.inner = bytes.Between(1, 130);
  spec.window = bytes.Between(1, 20);
  spec.cache = bytes.Between(0, 10);
  spec.bits = BitsFrom(bytes);
  spec.other_sparsity = bytes.Between(0, 9) / 10.0;
  spec.seed = bytes.Byte();
  const auto draft = Synthesise(spec);
  return draft.ok() ? RandomModel{*draft, spec.bits > 0} : RandomMicronet(bytes);
}

}  // namespace

RandomModel MakeRandomModel(ByteReader& bytes) {
  switch (bytes.Between(0, 7)) {
    case 0:
      return RandomRecurrent(bytes);
    case 1:
      return RandomTransformer(bytes);
    case 2:
      return RandomTranslation(bytes);
    case 3:
      return RandomDefine(bytes);
    case 4:
    case 5:
      return RandomSynthesis(bytes);
    case 6:
      return RandomMicronet(bytes);
    default:
      return RandomMasked(bytes);
  }
}

}  // namespace kinglet::fuzz
