#include "tests/support/transformer_cases.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "tests/support/case_builder.h"

namespace kinglet {
namespace {

WeightId Frequencies(CaseBuilder& builder, uint64_t width) {
  DenseF32 values;
  for (uint64_t j = 0; j < width / 2; ++j) {
    values.values.push_back(static_cast<float>(
        std::pow(10000.0, -2.0 * static_cast<double>(j) / static_cast<double>(width))));
  }
  return builder.Tensor({"", {width / 2}, std::move(values), false});
}

enum class Form : uint8_t { kRelative, kNone, kRestarting };

struct Shape4 {
  uint32_t heads, key_size, value_size, window;
};

struct AttentionOptions {
  Form form = Form::kRelative;
  int bits = 0;  // of the buffers; 0: floats
  StreamStart start = StreamStart::kMasked;
  bool start_row = false;
  std::optional<uint32_t> clamp = {};
  Storage projection = Storage::kF32;
  Fill fill = Fill::kRandom;
  uint32_t width = 10;
  std::optional<uint32_t> masked = {};  // token; those in the ring are 0, 1 and 2 in turn
};

OpCase AttentionCase(const std::string& prefix, const Shape4& shape, uint64_t position,
                     const AttentionOptions& options) {
  CaseBuilder builder(
      CaseName(prefix,
               {static_cast<int>(options.form), shape.heads, shape.key_size, shape.value_size,
                shape.window, options.bits, static_cast<int>(options.start), options.start_row,
                options.clamp ? static_cast<int64_t>(*options.clamp) : -1,
                static_cast<int>(options.projection), static_cast<int>(options.fill),
                options.masked ? static_cast<int64_t>(*options.masked) : -1,
                static_cast<int64_t>(position)}),
      shape.window + position);
  const uint64_t heads = shape.heads, keys = heads * shape.key_size;
  WindowAttention op{};
  op.qkv = builder.Vector("qkv", heads * (2 * shape.key_size + shape.value_size), options.bits,
                          options.fill);
  op.keys = builder.Vector("keys", shape.window * keys, options.bits, Fill::kRandom, true);
  op.values = builder.Vector("values", shape.window * heads * shape.value_size, options.bits,
                             options.fill, true);
  if (options.start == StreamStart::kZeros && !options.start_row && position < shape.window) {
    builder.ClearFrom(op.keys, (position + 1) * keys);
    builder.ClearFrom(op.values, (position + 1) * heads * shape.value_size);
  }
  if (options.form == Form::kRelative) {
    RelativeRows relative{};
    relative.projection = builder.Matrix(keys, options.width, options.projection,
                                         options.projection == Storage::kF32 ? 0 : 9);
    relative.frequencies = Frequencies(builder, options.width);
    relative.content_bias = builder.Matrix(heads, shape.key_size, Storage::kF32, 0);
    relative.position_bias = builder.Matrix(heads, shape.key_size, Storage::kF32, 0);
    relative.clamp = options.clamp;
    op.positions = relative;
  }
  op.heads = shape.heads;
  op.key_size = shape.key_size;
  op.value_size = shape.value_size;
  op.window = shape.window;
  op.start = options.start;
  if (options.start_row) op.start_row = builder.DenseVector(keys + heads * shape.value_size);
  op.restarts = options.form == Form::kRestarting;
  if (options.masked) {
    std::vector<int32_t> words;
    for (uint32_t slot = 0; slot < shape.window; ++slot) {
      words.push_back(static_cast<int32_t>(slot % 3));
    }
    op.masked = MaskedToken{builder.GivenTokens("words", std::move(words)), *options.masked};
  }
  if (options.bits != 0) {
    op.weights_quantiser = QuantiserOf(options.bits < 9 ? 9 : options.bits, 1.0f);
  }
  op.weights = builder.Floats("weights", heads * shape.window, Fill::kRandom);
  op.out = builder.Floats("out", heads * shape.value_size, Fill::kRandom);
  const double tolerance = options.bits == 0 ? 1e-9 : 1e-3;
  return builder.Finish(op, options.fill == Fill::kRandom ? tolerance : kNotComparable, position,
                        1);
}

void AddAttention(std::vector<OpCase>& cases) {
  constexpr StreamStart kZeros = StreamStart::kZeros;
  constexpr Shape4 kShapes[] = {{1, 1, 1, 1},    {2, 3, 5, 6},    {3, 16, 8, 31},
                                {2, 33, 17, 40}, {4, 32, 32, 97}, {10, 41, 41, 33},
                                {1, 20, 512, 5}, {20, 2, 40, 70}};
  for (const Shape4& shape : kShapes) {
    for (const int bits : {0, 9, 16, 18}) {
      for (const uint64_t position : {uint64_t{0}, uint64_t{shape.window} / 2,
                                      uint64_t{shape.window} - 1, uint64_t{shape.window} * 3 + 2}) {
        for (const Form form : {Form::kRelative, Form::kNone, Form::kRestarting}) {
          cases.push_back(
              AttentionCase("StreamedAttention", shape, position, {.form = form, .bits = bits}));
        }
        // Masks the token itself, or others.
        for (const uint32_t masked : {0u, 1u}) {
          cases.push_back(AttentionCase("StreamedAttention", shape, position,
                                        {.form = masked == 0 ? Form::kRelative : Form::kRestarting,
                                         .bits = bits,
                                         .masked = masked}));
        }
        cases.push_back(AttentionCase("StreamedAttention", shape, position,
                                      {.bits = bits, .start = kZeros, .clamp = 3}));
        cases.push_back(
            AttentionCase("StreamedAttention", shape, position,
                          {.bits = bits, .start = kZeros, .start_row = true, .clamp = 0}));
      }
    }
  }
  // Several tiles of slots, whose partial results combine unevenly; heads that take two iterations.
  for (const uint64_t position : {uint64_t{900}, uint64_t{3000}}) {
    for (const int bits : {0, 9}) {
      cases.push_back(AttentionCase("StreamedAttention", {1, 2, 3, 5200}, position,
                                    {.bits = bits, .start_row = true, .clamp = 700}));
      cases.push_back(AttentionCase("StreamedAttention", {3, 16, 300, 1100}, position,
                                    {.bits = bits, .projection = Storage::kPerRow, .width = 40}));
    }
  }
  for (const Fill fill : {Fill::kSpecial, Fill::kExtreme, Fill::kZero}) {
    for (const int bits : {0, 9}) {
      cases.push_back(
          AttentionCase("StreamedAttention", {2, 24, 32, 97}, 70, {.bits = bits, .fill = fill}));
    }
  }
  // Too large for the vectorised kernels.
  cases.push_back(AttentionCase("StreamedAttention", {1, 2, 513, 3}, 1, {}));
  cases.push_back(AttentionCase("StreamedAttention", {2, 4097, 1, 2}, 1, {}));
}

struct SourceShape {
  uint32_t heads, key_size, value_size, window, tokens;
  uint32_t spare = 0;  // elements before a head's key, and after its query
};

OpCase SourceAttentionCase(const std::string& prefix, const SourceShape& shape, int bits,
                           Fill fill = Fill::kRandom) {
  CaseBuilder builder(CaseName(prefix, {shape.heads, shape.key_size, shape.value_size, shape.window,
                                        shape.tokens, shape.spare, bits, static_cast<int>(fill)}),
                      shape.window + shape.tokens);
  SourceAttention op{};
  op.query =
      builder.Vector("query", uint64_t{shape.heads} * (shape.key_size + shape.spare), bits, fill);
  op.memory = builder.Vector(
      "memory",
      uint64_t{shape.window} * shape.heads * (shape.spare + shape.key_size + shape.value_size),
      bits, fill, true);
  op.heads = shape.heads;
  op.key_size = shape.key_size;
  op.value_size = shape.value_size;
  op.window = shape.window;
  if (bits != 0) op.weights_quantiser = QuantiserOf(bits < 9 ? 9 : bits, 1.0f);
  op.weights = builder.Floats("weights", uint64_t{shape.heads} * shape.window, Fill::kRandom);
  op.out = builder.Floats("out", uint64_t{shape.heads} * shape.value_size, Fill::kRandom);
  const double tolerance = bits == 0 ? 1e-9 : 1e-3;
  OpCase made = builder.Finish(op, fill == Fill::kRandom ? tolerance : kNotComparable);
  made.source_length = shape.tokens;
  return made;
}

// Attention of a recurrent decoder: one head, whose slots contain a vector that is key and value,
// or a key and a value.
OpCase GlobalAttentionCase(uint32_t n, uint32_t window, uint32_t tokens, int bits, bool additive) {
  CaseBuilder builder(CaseName(additive ? "SourceAttention additive" : "SourceAttention dot",
                               {n, window, tokens, bits}),
                      n + tokens);
  SourceAttention op{};
  op.query = builder.Vector("query", n, bits, Fill::kRandom);
  op.memory = builder.Vector("memory", uint64_t{window} * n * (additive ? 2 : 1), bits,
                             Fill::kRandom, true);
  op.heads = 1;
  op.key_size = op.value_size = n;
  op.window = window;
  op.score = additive ? SourceScore::kAdditive : SourceScore::kDot;
  if (additive) op.score_weight = builder.Matrix(1, n, Storage::kF32, 0);
  if (bits != 0) op.weights_quantiser = QuantiserOf(bits < 9 ? 9 : bits, 1.0f);
  op.weights = builder.Floats("weights", window, Fill::kRandom);
  op.out = builder.Floats("out", n, Fill::kRandom);
  OpCase made = builder.Finish(op, bits == 0 ? 1e-9 : 1e-3);
  made.source_length = tokens;
  return made;
}

void AddGlobalAttention(std::vector<OpCase>& cases) {
  const struct {
    uint32_t n, window, tokens;
  } shapes[] = {{1, 1, 1}, {7, 6, 6}, {48, 1024, 31}, {512, 64, 33}, {3, 2100, 2049}};
  for (const auto& [n, window, tokens] : shapes) {
    cases.push_back(GlobalAttentionCase(n, window, tokens, 0, true));
    for (const int bits : {0, 9, 18}) {
      cases.push_back(GlobalAttentionCase(n, window, tokens, bits, false));
    }
  }
  CaseBuilder join("Join", 1);
  const BufferId a = join.Floats("a", 5, Fill::kRandom), b = join.Floats("b", 3, Fill::kRandom);
  const BufferId y = join.Floats("y", 9, Fill::kRandom);
  cases.push_back(join.Finish(Join{{{a, 1, 4}, {b, 0, 3}}, y}, 1e-9));
  CaseBuilder clear("Join of nothing", 2);
  const BufferId x = clear.Floats("x", 33, Fill::kRandom);
  cases.push_back(clear.Finish(Join{{}, x}, 1e-9));
}

void AddSource(std::vector<OpCase>& cases) {
  for (const SourceShape& shape :
       {SourceShape{1, 1, 1, 1, 1}, SourceShape{2, 3, 5, 6, 6, 4}, SourceShape{3, 16, 8, 40, 31},
        SourceShape{4, 33, 17, 40, 32, 7}, SourceShape{8, 64, 64, 100, 97, 64},
        SourceShape{1, 2, 3, 1100, 1030}, SourceShape{2, 4, 5, 2100, 2049}}) {
    for (const int bits : {0, 4, 9, 16, 18}) {
      cases.push_back(SourceAttentionCase("SourceAttention", shape, bits));
    }
  }
  for (const Fill fill : {Fill::kSpecial, Fill::kExtreme, Fill::kZero}) {
    for (const int bits : {0, 9}) {
      cases.push_back(SourceAttentionCase("SourceAttention", {2, 24, 32, 97, 50}, bits, fill));
    }
  }
  for (const int bits : {0, 9, 18}) {
    CaseBuilder store(CaseName("StoreRow", {bits}), 1), load(CaseName("LoadRow", {bits}), 2);
    const StoreRow stored{store.Vector("x", 7, bits, Fill::kRandom),
                          store.Vector("rows", 35, bits, Fill::kRandom)};
    cases.push_back(store.Finish(stored, 1e-9, 4));
    const LoadRow loaded{load.Vector("rows", 35, bits, Fill::kRandom),
                         load.Vector("x", 7, bits, Fill::kRandom)};
    cases.push_back(load.Finish(loaded, 1e-9, 3));
  }
}

void AddPositions(std::vector<OpCase>& cases) {
  for (const uint64_t n : {2u, 16u, 34u, 1026u}) {
    for (const uint64_t position : {uint64_t{0}, uint64_t{4}, uint64_t{5}, uint64_t{1} << 40}) {
      const std::initializer_list<int64_t> sizes = {static_cast<int64_t>(n),
                                                    static_cast<int64_t>(position)};
      CaseBuilder sinusoids(CaseName("AddSinusoids", sizes), n);
      const AddSinusoids add{Frequencies(sinusoids, n), 2, 5,
                             sinusoids.Floats("y", n, Fill::kRandom)};
      cases.push_back(sinusoids.Finish(add, 1e-9, position));
      for (const Storage storage : {Storage::kF32, Storage::kPerRow}) {
        CaseBuilder rows(
            CaseName("AddPositionRow", {static_cast<int64_t>(n), static_cast<int64_t>(position),
                                        static_cast<int>(storage)}),
            n);
        const WeightId table = rows.Matrix(5, n, storage, storage == Storage::kF32 ? 0 : 7);
        cases.push_back(rows.Finish(AddPositionRow{table, 5, rows.Floats("y", n, Fill::kRandom)},
                                    1e-9, position));
      }
    }
    CaseBuilder bias(CaseName("AddQueryBias", {static_cast<int64_t>(n)}), n);
    const WeightId heads = bias.Matrix(3, n, Storage::kF32, 0);
    cases.push_back(bias.Finish(AddQueryBias{heads, bias.Floats("y", 3 * (n + 7), Fill::kRandom)}));
  }
}

}  // namespace

void AddTransformerEdges(std::vector<OpCase>& cases) {
  AddAttention(cases);
  AddSource(cases);
  AddGlobalAttention(cases);
  AddPositions(cases);
}

void AddRealisticTransformerCases(std::vector<OpCase>& cases) {
  // The sizes of transfo-xl-wt103, except the width that its relative rows are computed from.
  for (const int bits : {0, 9}) {
    cases.push_back(AttentionCase("attention.transfo_xl", {16, 64, 64, 1600}, 5000,
                                  {.bits = bits, .clamp = 1000}));
    // A Transformer decoder attending to a source of 30 words.
    cases.push_back(SourceAttentionCase("attention.source", {8, 64, 64, 100, 30}, bits));
  }
}

}  // namespace kinglet
