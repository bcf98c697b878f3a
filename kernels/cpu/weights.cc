#include "kernels/cpu/weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <variant>

#include "format/coded_rows.h"
#include "format/encoding.h"
#include "kernels/fused.h"

namespace kinglet::cpu {
namespace {

uint64_t RoundedUp(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }
uint64_t PaddedRows(uint64_t rows) { return RoundedUp(rows, kPanelRows); }

// Writes rows of a tensor to the panels.
class PanelWriter {
 public:
  PanelWriter(const RowReader& reader, const VectorFunctions& vector, Panels& panels)
      : reader_(reader),
        vector_(vector),
        panels_(panels),
        stored_(panels.integer() ? kPanelRows * panels.cols() + kReadBehind : 0),
        codes_(stored_.size()),
        values_(panels.integer() ? 0 : panels.cols()) {}

  // Writes `count` rows of the tensor, from row `from` on, to the panel whose first row is `row`.
  void WritePanel(uint64_t from, uint64_t row, uint64_t count) {
    if (!panels_.integer()) {
      for (uint64_t i = 0; i < count; ++i) {
        reader_.Floats(from + i, values_.data());
        panels_.WriteFloats(row + i, values_.data());
      }
      return;
    }
    const uint64_t entries = count * panels_.cols();
    reader_.StoredCodes(from, count, stored_.data());
    std::vector<int16_t>* codes = &stored_;
    if (const MaskView* mask = reader_.mask()) {
      vector_.spread_codes(mask->bytes.data(), from * panels_.cols(), entries, stored_.data(),
                           codes_.data());
      codes = &codes_;
    }
    // Padding.
    std::fill(codes->begin() + static_cast<ptrdiff_t>(entries), codes->end(), int16_t{0});
    float scales[kPanelRows] = {};
    for (uint64_t i = 0; i < count; ++i) scales[i] = reader_.Scale(from + i);
    panels_.WriteCodes(row / kPanelRows, codes->data(), scales, vector_);
  }

 private:
  static constexpr uint64_t kReadBehind = 8;  // by the vector functions
  const RowReader& reader_;
  const VectorFunctions& vector_;
  Panels& panels_;
  std::vector<int16_t> stored_, codes_;
  std::vector<float> values_;
};

// Releases a tensor's bytes in chunks, large enough to keep system calls few.
class Releaser {
 public:
  Releaser(const ReleaseBytes* release, WeightId id, uint64_t row_bytes)
      : release_(release), id_(id), rows_(std::max<uint64_t>(1, kChunk / (row_bytes + 1))) {}

  // Rows below `row` will not be read again; memory(begin, end) are the ranges of rows [begin,
  // end).
  template <class Memory>
  void ReachedRow(uint64_t row, bool last, const Memory& memory) {
    if (release_ == nullptr) return;
    const uint64_t done = last ? row : row / RowReader::kMaskRows * RowReader::kMaskRows;
    if (done < released_ || (!last && done - released_ < rows_)) return;
    for (const MemoryRange& range : memory(released_, done)) {
      // The last byte may contain the beginning of the next row.
      (*release_)(id_, last || range.empty() ? range : range.first(range.size() - 1));
    }
    released_ = done;
  }

 private:
  static constexpr uint64_t kChunk = uint64_t{4} << 20;
  const ReleaseBytes* release_;
  WeightId id_;
  uint64_t rows_;  // in a chunk
  uint64_t released_ = 0;
};

// Whether the biases' scale gives the floats of the file for every integer of `bits` bits.
bool IsExact(const Biases& biases, int bits, float divisor) {
  for (int integer = -(1 << (bits - 1)); integer < 1 << (bits - 1); ++integer) {
    const auto exact = static_cast<float>(integer);
    const float value = Fused(exact, biases.scale, exact * biases.rest);
    if (std::bit_cast<uint32_t>(value) != std::bit_cast<uint32_t>(exact / divisor)) return false;
  }
  return true;
}

// Stores biases as the file's integers. Returns false, and stores none, if the file has no integers
// or if they would give other floats.
template <class Claim>
bool TakeIntegers(const TensorView& view, const Claim& claim, Biases& biases) {
  const PackedView* const packed = view.packed();
  if (packed == nullptr || packed->rule != ScaleRule::kDividePerTensor) return false;
  const RowReader reader(view);
  const float divisor = reader.Scale(0);
  const double scale = 1 / static_cast<double>(divisor);
  biases.scale = static_cast<float>(scale);
  biases.rest = static_cast<float>(scale - static_cast<double>(biases.scale));
  if (!IsExact(biases, packed->bits, divisor)) return false;
  claim(PaddedRows(reader.cols()) * sizeof(int16_t));
  biases.integers.resize(PaddedRows(reader.cols()));
  reader.Codes(0, biases.integers.data());
  std::fill(biases.integers.begin() + static_cast<ptrdiff_t>(reader.cols()), biases.integers.end(),
            int16_t{0});
  int largest = 0;
  for (const int16_t integer : biases.integers) largest = std::max(largest, std::abs(int{integer}));
  biases.largest = std::abs(static_cast<float>(largest) / divisor);
  return true;
}

}  // namespace

WeightStore::WeightStore(const Plan& plan, const VectorFunctions& vector, WeightMemory memory)
    : plan_(plan), vector_(vector), memory_(std::move(memory)) {
  for (const Node& node : plan.nodes) {
    if (const auto* product = std::get_if<MatVec>(&node.op)) multiplied_.insert(product->weight);
  }
}

SharedPanels WeightStore::MatrixRows(WeightId id, uint64_t first, uint64_t count) {
  std::shared_ptr<Panels>& shared = matrices_[{id, first, count}];
  if (shared) return shared;
  const uint64_t cols = Cols(plan_.weights[id].shape);
  const int bits = RowReader::IntegerBits(plan_.weights[id]);
  Claim(Panels::Bytes(count, cols, bits));
  shared = std::make_shared<Panels>(bits != 0 ? Panels::OfIntegers(count, cols, bits)
                                              : Panels::OfFloats(count, cols));
  return shared;
}

SharedCodes WeightStore::Codes(WeightId id) {
  std::shared_ptr<TiledCodes>& shared = codes_[id];
  if (shared) return shared;
  const TensorView& view = plan_.weights[id];
  const CodingScheme& scheme = view.coded()->scheme;
  auto tiled = std::make_shared<TiledCodes>();
  tiled->rows = Rows(view.shape);
  tiled->positions = scheme.positions;
  tiled->bits = scheme.CodeBits();
  const uint64_t values = RoundedUp(tiled->rows, kCodeTileRows) / kCodeTileRows * scheme.positions *
                          static_cast<uint64_t>(tiled->bits) * kPanelRows;
  Claim(values * sizeof(uint32_t));
  tiled->codes.resize(values);
  shared = std::move(tiled);
  return shared;
}

SharedPanels WeightStore::TransposedFloats(WeightId id) {
  SharedPanels& shared = transposed_[id];
  if (shared) return shared;
  const TensorView& view = plan_.weights[id];
  const uint64_t rows = Cols(view.shape), cols = Rows(view.shape);
  Claim(Panels::Bytes(rows, cols, 0));
  auto panels = std::make_shared<Panels>(Panels::OfFloats(rows, cols));
  const std::vector<float> values = DecodedValues(view);
  std::vector<float> column(cols);
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint64_t col = 0; col < cols; ++col) column[col] = values[col * rows + row];
    panels->WriteFloats(row, column.data());
  }
  Keep(id);
  shared = std::move(panels);
  return shared;
}

SharedVector WeightStore::Vector(WeightId id) {
  SharedVector& shared = vectors_[id];
  if (shared) return shared;
  Claim(PaddedRows(Count(plan_.weights[id].shape)) * sizeof(float));
  const std::vector<float> values = DecodedValues(plan_.weights[id]);
  auto padded = std::make_shared<AlignedVector<float>>(PaddedRows(values.size()), 0.0f);
  std::copy(values.begin(), values.end(), padded->begin());
  Keep(id);
  shared = std::move(padded);
  return shared;
}

SharedBiases WeightStore::BiasesOf(WeightId id, bool prefers_integers) {
  SharedBiases& shared = biases_[{id, prefers_integers}];
  if (shared) return shared;
  auto biases = std::make_shared<Biases>();
  const auto claim = [this](uint64_t bytes) { Claim(bytes); };
  if (!prefers_integers || !TakeIntegers(plan_.weights[id], claim, *biases)) {
    biases->values = Vector(id);
    for (const float value : *biases->values) {
      biases->largest = std::max(biases->largest, std::abs(value));
    }
  }
  Keep(id);
  shared = std::move(biases);
  return shared;
}

void WeightStore::LayOut() {
  // Between a model of 5.9 MB, whose products take longer if they wait for memory only, and one of
  // 7.8 MB, whose products take less time.
  constexpr uint64_t kMostInCaches = uint64_t{6} << 20;
  uint64_t bytes = 0;
  for (const auto& [rows, panels] : matrices_) {
    bytes += Panels::Bytes(panels->rows(), panels->cols(), panels->bits());
  }
  for (const auto& [rows, panels] : matrices_) panels->set_from_memory(bytes > kMostInCaches);
  std::set<WeightId> ids;
  for (const auto& [range, panels] : matrices_) ids.insert(std::get<0>(range));
  for (const WeightId id : ids) LayOutMatrix(id);
  for (const auto& [id, tiled] : codes_) LayOutCodes(id, *tiled);
  for (const WeightId id : consumed_) {
    if (!memory_.release || kept_.count(id) != 0 || ids.count(id) != 0) continue;
    const RowReader reader(plan_.weights[id]);
    for (const MemoryRange& range : reader.Memory(0, reader.rows())) memory_.release(id, range);
  }
}

void WeightStore::LayOutMatrix(WeightId id) {
  const RowReader reader(plan_.weights[id]);
  const bool gives_back = memory_.release && kept_.count(id) == 0;
  Releaser releaser(gives_back ? &memory_.release : nullptr, id, reader.cols() * sizeof(float));
  const auto memory = [&](uint64_t begin, uint64_t end) { return reader.Memory(begin, end); };
  // Matrices of a tensor are sorted by their first rows: rows below the next matrix's first row are
  // not needed again.
  const auto end = matrices_.upper_bound({id, UINT64_MAX, UINT64_MAX});
  for (auto at = matrices_.lower_bound({id, 0, 0}); at != end; ++at) {
    const uint64_t first = std::get<1>(at->first);
    const auto next = std::next(at);
    const uint64_t next_first = next == end ? reader.rows() : std::get<1>(next->first);
    Panels& panels = *at->second;
    PanelWriter writer(reader, vector_, panels);
    for (uint64_t row = 0; row < panels.rows(); row += kPanelRows) {
      const uint64_t count = std::min(panels.rows() - row, uint64_t{kPanelRows});
      writer.WritePanel(first + row, row, count);
      releaser.ReachedRow(std::min(first + row + count, next_first), false, memory);
    }
  }
  releaser.ReachedRow(reader.rows(), true, memory);
}

void WeightStore::LayOutCodes(WeightId id, TiledCodes& tiled) {
  const CodedRows coded(plan_.weights[id]);
  const bool gives_back = memory_.release && kept_.count(id) == 0;
  Releaser releaser(gives_back ? &memory_.release : nullptr, id, coded.Memory(0).size());
  const auto bits = static_cast<uint64_t>(tiled.bits);
  const uint64_t tile_size = tiled.positions * bits * kPanelRows;
  std::vector<uint32_t> codes(tiled.positions);
  for (uint64_t row = 0; row < tiled.rows; ++row) {
    if (row % kCodeTileRows == 0) {
      std::fill_n(&tiled.codes[row / kCodeTileRows * tile_size], tile_size, 0u);
    }
    coded.Codes(row, codes.data());
    const uint64_t column = row % kPanelRows;
    const uint64_t bit = row % kCodeTileRows / kPanelRows * bits;  // of the column
    for (uint32_t j = 0; j < tiled.positions; ++j) {
      const uint64_t stream = (row / kCodeTileRows * tiled.positions + j) * bits;
      uint32_t* at = &tiled.codes[(stream + bit / 32) * kPanelRows + column];
      const uint64_t field = uint64_t{codes[j]} << (bit % 32);
      *at |= static_cast<uint32_t>(field);
      if (bit % 32 + bits > 32) at[kPanelRows] |= static_cast<uint32_t>(field >> 32);
    }
    releaser.ReachedRow(row + 1, row + 1 == tiled.rows, [&](uint64_t begin, uint64_t end) {
      return std::vector<MemoryRange>{coded.Memory(begin, end)};
    });
  }
}

}  // namespace kinglet::cpu
