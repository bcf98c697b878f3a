#include "kernels/cpu/panels.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace kinglet::cpu {
namespace {

uint64_t PanelsOf(uint64_t rows) { return (rows + kPanelRows - 1) / kPanelRows; }

bool IsOf16Bits(CodeForm form) { return form == CodeForm::kInt16 || FieldBits(form) != 0; }

// The index in a tile (kernels/cpu/vector.h) of the entry of a row and a column, or of its 16-bit
// value.
uint64_t EntryOf(CodeForm form, uint64_t r, uint64_t col) {
  const uint64_t entry = r % kPanelRows * 2 + col % 2;
  if (IsOf16Bits(form)) return entry;
  // Eight entries of the first two columns, then eight of the last two, for the same four rows.
  return entry / 8 * 16 + col / 2 % 2 * 8 + entry % 8;
}

// The index of entry (row, col) of a real matrix.
uint64_t RealAt(uint64_t cols, uint64_t row, uint64_t col) {
  return (row / kPanelRows * cols + col) * kPanelRows + row % kPanelRows;
}

// The low `bits` bits of two neighbouring codes, each in 16 bits of its own.
uint32_t LowBitsOf(const int16_t* pair, int bits) {
  const uint32_t field = (uint32_t{1} << bits) - 1;
  uint32_t codes = 0;
  std::memcpy(&codes, pair, sizeof(codes));
  return codes & (field << 16 | field);
}

// The tile that begins at `codes`, rows of which lie `stride` codes apart.
void WriteFieldsTile(const int16_t* codes, uint64_t stride, CodeForm form, std::byte* tile) {
  const int bits = FieldBits(form), last = LastField(form);
  // Adding half of the range to an integer in two's complement flips its highest bit.
  const auto turned = static_cast<uint32_t>(FieldOffset(form)) * 0x10001;
  for (uint64_t r = 0; r < kPanelRows; ++r, codes += stride, tile += sizeof(uint32_t)) {
    uint32_t packed = 0;
    for (int field = 0; field < last; ++field) {
      packed |= (LowBitsOf(codes + 2 * field, bits) ^ turned) << (field * bits);
    }
    packed |= LowBitsOf(codes + 2 * last, 16 - last * bits) << (last * bits);
    std::memcpy(tile, &packed, sizeof(packed));
  }
}

}  // namespace

Panels::Panels(uint64_t rows, uint64_t cols, int bits)
    : rows_(rows), cols_(cols), bits_(bits), form_(CodeFormOf(bits, cols)) {}

Panels Panels::OfIntegers(uint64_t rows, uint64_t cols, int bits) {
  Panels panels(rows, cols, bits);
  const uint64_t tiles = PanelsOf(rows) * TilesOf(panels.form_, cols);
  panels.codes_.resize(tiles * kTileBytes);
  if (panels.form_ == CodeForm::kPlanes) panels.signs_.resize(tiles);
  panels.scales_.resize(PanelsOf(rows) * kPanelRows);
  return panels;
}

uint64_t Panels::Bytes(uint64_t rows, uint64_t cols, int bits) {
  const uint64_t padded = PanelsOf(rows) * kPanelRows;
  if (bits == 0) return padded * cols * sizeof(float);
  const CodeForm form = CodeFormOf(bits, cols);
  const uint64_t tiles = PanelsOf(rows) * TilesOf(form, cols);
  return tiles * (kTileBytes + (form == CodeForm::kPlanes ? sizeof(uint64_t) : 0)) +
         padded * sizeof(float);
}

Panels Panels::OfFloats(uint64_t rows, uint64_t cols) {
  Panels panels(rows, cols, 0);
  panels.values_.resize(PanelsOf(rows) * kPanelRows * cols);
  return panels;
}

Panels Panels::FromCodes(uint64_t rows, uint64_t cols, int bits, std::span<const int16_t> codes,
                         std::span<const float> scales, const VectorFunctions& vector) {
  Panels panels = OfIntegers(rows, cols, bits);
  // WriteCodes reads full panels and may read beyond them.
  std::vector<int16_t> padded(codes.begin(), codes.end());
  padded.resize(panels.panels() * kPanelRows * cols + TileCols(panels.form_));
  std::vector<float> padded_scales(scales.begin(), scales.end());
  padded_scales.resize(panels.panels() * kPanelRows);
  for (uint64_t panel = 0; panel < panels.panels(); ++panel) {
    panels.WriteCodes(panel, &padded[panel * kPanelRows * cols], &padded_scales[panel * kPanelRows],
                      vector);
  }
  return panels;
}

void Panels::WriteCodes(uint64_t panel, const int16_t* codes, const float* scales,
                        const VectorFunctions& vector) {
  std::copy_n(scales, kPanelRows, &scales_[panel * kPanelRows]);
  largest_scale_ = std::max(largest_scale_, *std::max_element(scales, scales + kPanelRows));
  const uint64_t first = panel * TilesOf(form_, cols_);
  std::byte* tiles = &codes_[first * kTileBytes];
  if (FieldBits(form_) != 0) return WriteFields(codes, tiles);
  if (form_ != CodeForm::kInt16) {
    vector.interleave_codes(codes, cols_, tiles, signs_.empty() ? nullptr : &signs_[first]);
    return;
  }
  for (uint64_t col = 0; col < cols_; col += 2, tiles += kTileBytes) {
    for (uint64_t r = 0; r < kPanelRows; ++r) {
      const int16_t* from = codes + r * cols_ + col;
      const int16_t pair[2] = {from[0], col + 1 < cols_ ? from[1] : int16_t{0}};
      std::memcpy(tiles + EntryOf(form_, r, 0) * sizeof(int16_t), pair, sizeof(pair));
    }
  }
}

void Panels::WriteFields(const int16_t* codes, std::byte* tiles) const {
  constexpr uint64_t kMostCols = TileCols(CodeForm::kFields2);
  const uint64_t tile_cols = TileCols(form_), whole = cols_ / tile_cols * tile_cols;
  for (uint64_t col = 0; col < whole; col += tile_cols, tiles += kTileBytes) {
    WriteFieldsTile(codes + col, cols_, form_, tiles);
  }
  if (whole == cols_) return;
  int16_t last[kPanelRows * kMostCols] = {};
  for (uint64_t r = 0; r < kPanelRows; ++r) {
    std::copy(codes + r * cols_ + whole, codes + (r + 1) * cols_, last + r * kMostCols);
  }
  WriteFieldsTile(last, kMostCols, form_, tiles);
}

void Panels::WriteFloats(uint64_t row, const float* values) {
  if (row % kPanelRows == 0) {
    std::fill_n(values_.data() + RealAt(cols_, row, 0), cols_ * kPanelRows, 0.0f);
  }
  for (uint64_t col = 0; col < cols_; ++col) values_[RealAt(cols_, row, col)] = values[col];
}

void Panels::CopyCodes(uint64_t row, uint64_t begin, uint64_t end, const VectorFunctions& vector,
                       int16_t* out) const {
  const uint64_t first = row / kPanelRows * TilesOf(form_, cols_);
  const uint64_t tile_cols = TileCols(form_);
  for (uint64_t col = begin; col < end; ++col) {
    const uint64_t tile = first + col / tile_cols, entry = EntryOf(form_, row, col);
    const std::byte* at = codes_.data() + tile * kTileBytes;
    if (IsOf16Bits(form_)) {
      int16_t code = 0;
      std::memcpy(&code, at + entry * sizeof(int16_t), sizeof(int16_t));
      if (const int bits = FieldBits(form_); bits != 0) {
        const auto field = static_cast<int>(col % tile_cols / 2);
        const int rest = code >> (field * bits);
        code = static_cast<int16_t>(
            field == LastField(form_) ? rest : (rest & ((1 << bits) - 1)) - FieldOffset(form_));
      }
      *out++ = code;
      continue;
    }
    const int low = std::to_integer<int>(at[entry]);
    const bool negative = form_ == CodeForm::kBytes
                              ? low > INT8_MAX
                              : (signs_[tile] >> vector.sign_place(entry) & 1) != 0;
    *out++ = static_cast<int16_t>(negative ? low - 256 : low);
  }
}

void Panels::CopyFloats(uint64_t row, float* out) const {
  for (uint64_t col = 0; col < cols_; ++col) out[col] = values_[RealAt(cols_, row, col)];
}

CodePanels Panels::code_panels(PanelRange part) const {
  const uint64_t first = part.begin * kPanelRows, tiles = part.begin * TilesOf(form_, cols_);
  return {std::min<uint64_t>(part.end * kPanelRows, rows_) - first,
          cols_,
          form_,
          codes_.data() + tiles * kTileBytes,
          form_ == CodeForm::kPlanes ? signs_.data() + tiles : nullptr,
          scales_.data() + first,
          from_memory_};
}

RealPanels Panels::real_panels(PanelRange part) const {
  const uint64_t first = part.begin * kPanelRows;
  return {std::min<uint64_t>(part.end * kPanelRows, rows_) - first, cols_,
          values_.data() + first * cols_};
}

uint64_t Panels::PanelBytes() const {
  constexpr uint64_t kRowNumbers = 3;  // scale, bias, result
  const uint64_t tile = kTileBytes + (form_ == CodeForm::kPlanes ? sizeof(uint64_t) : 0);
  const uint64_t entries =
      integer() ? TilesOf(form_, cols_) * tile : cols_ * kPanelRows * sizeof(float);
  return entries + kRowNumbers * kPanelRows * sizeof(float);
}

std::vector<MemoryRange> Panels::Memory() const {
  if (!integer()) return {std::as_bytes(std::span(values_))};
  std::vector<MemoryRange> memory = {std::as_bytes(std::span(codes_)),
                                     std::as_bytes(std::span(scales_))};
  if (!signs_.empty()) memory.push_back(std::as_bytes(std::span(signs_)));
  return memory;
}

std::vector<MemoryRange> Panels::RowMemory(uint64_t row) const {
  const uint64_t panel = row / kPanelRows;
  if (!integer()) {
    const uint64_t size = cols_ * kPanelRows;
    return {std::as_bytes(std::span(values_).subspan(panel * size, size))};
  }
  const uint64_t tiles = TilesOf(form_, cols_);
  std::vector<MemoryRange> memory = {
      std::span(codes_).subspan(panel * tiles * kTileBytes, tiles * kTileBytes),
      std::as_bytes(std::span(scales_).subspan(row, 1))};
  if (!signs_.empty()) {
    memory.push_back(std::as_bytes(std::span(signs_).subspan(panel * tiles, tiles)));
  }
  return memory;
}

}  // namespace kinglet::cpu
