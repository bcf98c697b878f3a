// Sums of partial products of coded tables.
#if defined(KINGLET_KERNELS_CPU_CODED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_CODED_INL_H_
#undef KINGLET_KERNELS_CPU_CODED_INL_H_
#else
#define KINGLET_KERNELS_CPU_CODED_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/finish-inl.h"
#include "kernels/cpu/highway-inl.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/cpu/vector.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

// How many tiles of rows are processed together, position by position, so that a position's
// partial products stay in the second-level cache.
constexpr size_t kTilesTogether = 128;

// The codes of kWidth rows, from bit `bit` of their columns on (CodeTiles).
HWY_INLINE hn::Vec<hn::RebindToSigned<Floats>> UnpackCodes(const uint32_t* streams, size_t bit,
                                                           int bits) {
  const hn::RebindToUnsigned<Floats> d32;
  const uint32_t* at = streams + bit / 32 * kPanelRows;
  const int shift = static_cast<int>(bit % 32);
  auto codes = hn::ShiftRightSame(hn::Load(d32, at), shift);
  if (shift + bits > 32) {
    codes = hn::Or(codes, hn::ShiftLeftSame(hn::Load(d32, at + kPanelRows), 32 - shift));
  }
  const auto mask = hn::Set(d32, static_cast<uint32_t>((uint64_t{1} << bits) - 1));
  return hn::BitCast(hn::RebindToSigned<Floats>(), hn::And(codes, mask));
}

// The stored codes of a tile's rows at one position. Rows are asked for in their order.
class StoredColumn {
 public:
  HWY_INLINE StoredColumn(const CodeTiles& codes, size_t tile, size_t position)
      : streams_(codes.codes + (tile * codes.positions + position) *
                                   static_cast<size_t>(codes.bits) * kPanelRows),
        bits_(codes.bits) {}
  // The codes of kWidth rows from `column` on of the panel.
  HWY_INLINE hn::Vec<hn::RebindToSigned<Floats>> Codes(size_t column) const {
    return UnpackCodes(streams_ + column, bit_, bits_);
  }
  HWY_INLINE void NextPanel() { bit_ += static_cast<size_t>(bits_); }

 private:
  const uint32_t* streams_;
  const int bits_;
  size_t bit_ = 0;
};

// The hashed codes of a tile's rows at one position: XXH64 of {u32 word, u32 position}, modulo the
// pool. A 64-bit element has one row: even rows are in one vector, odd rows in another.
class HashedColumn {
  using D64 = hn::Repartition<uint64_t, Floats>;
  using D32 = hn::RebindToUnsigned<Floats>;
  using V64 = hn::Vec<D64>;

 public:
  HWY_INLINE HashedColumn(const HashedCodes& codes, size_t tile, size_t position)
      : pool_(hn::Set(D32(), codes.pools[position])),
        reciprocal_(hn::Set(D64(), codes.reciprocals[position])),
        begin_(hn::Set(D64(), codes.seed + kPrime5 + kKeyBytes)),
        position_((uint64_t{position} << 32) * kPrime2) {
    const auto words =
        hn::Iota(D32(), codes.first_row + static_cast<uint32_t>(tile * kCodeTileRows));
    const auto pairs = hn::BitCast(D64(), words);
    even_ = Times(hn::And(pairs, hn::Set(D64(), 0xFFFFFFFF)), kPrime2);
    odd_ = Times(hn::ShiftRight<32>(pairs), kPrime2);
  }
  HWY_INLINE hn::Vec<hn::RebindToSigned<Floats>> Codes(size_t /*column*/) {
    const auto step = hn::Set(D64(), kWidth * kPrime2), position = hn::Set(D64(), position_);
    const V64 even = Hash(hn::Add(even_, position)), odd = Hash(hn::Add(odd_, position));
    even_ = hn::Add(even_, step);
    odd_ = hn::Add(odd_, step);
    const auto low = Low(even, odd);
    const auto quotient = Low(Quotient(even), Quotient(odd));
    // The quotient is at most one too small.
    const auto rest = hn::Sub(low, hn::Mul(quotient, pool_));
    return hn::BitCast(hn::RebindToSigned<Floats>(), hn::Min(rest, hn::Sub(rest, pool_)));
  }
  HWY_INLINE void NextPanel() {}

 private:
  static constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F,
                            kPrime3 = 0x165667B19E3779F9, kPrime4 = 0x85EBCA77C2B2AE63,
                            kPrime5 = 0x27D4EB2F165667C5, kKeyBytes = 8;

  // The product's low 64 bits.
  static HWY_INLINE V64 Times(V64 a, uint64_t b) {
#if HWY_TARGET == HWY_AVX3
    return hn::Mul(a, hn::Set(D64(), b));
#else
    const auto low = hn::Set(D64(), b & 0xFFFFFFFF), high = hn::Set(D64(), b >> 32);
    const auto cross = hn::Add(Products(hn::ShiftRight<32>(a), low), Products(a, high));
    return hn::Add(Products(a, low), hn::ShiftLeft<32>(cross));
#endif
  }
  // Of the low halves of each element.
  static HWY_INLINE V64 Products(V64 a, V64 b) {
    return hn::MulEven(hn::BitCast(D32(), a), hn::BitCast(D32(), b));
  }
  // XXH64 of a key of 8 bytes, given the key times kPrime2.
  HWY_INLINE V64 Hash(V64 key) const {
    V64 h = hn::Xor(begin_, Times(hn::RotateRight<64 - 31>(key), kPrime1));
    h = hn::Add(Times(hn::RotateRight<64 - 27>(h), kPrime1), hn::Set(D64(), kPrime4));
    h = Times(hn::Xor(h, hn::ShiftRight<33>(h)), kPrime2);
    h = Times(hn::Xor(h, hn::ShiftRight<29>(h)), kPrime3);
    return hn::Xor(h, hn::ShiftRight<32>(h));
  }
  // The high 64 bits of h times the reciprocal.
  HWY_INLINE V64 Quotient(V64 h) const {
    const V64 high = hn::ShiftRight<32>(h), more = hn::ShiftRight<32>(reciprocal_);
    const V64 first =
        hn::Add(Products(high, reciprocal_), hn::ShiftRight<32>(Products(h, reciprocal_)));
    const V64 second = hn::Add(Products(h, more), hn::And(first, hn::Set(D64(), 0xFFFFFFFF)));
    return hn::Add(Products(high, more),
                   hn::Add(hn::ShiftRight<32>(first), hn::ShiftRight<32>(second)));
  }
  // The low halves of both vectors, in the order of the rows.
  static HWY_INLINE hn::Vec<D32> Low(V64 even, V64 odd) {
    return hn::BitCast(D32(),
                       hn::Or(hn::And(even, hn::Set(D64(), 0xFFFFFFFF)), hn::ShiftLeft<32>(odd)));
  }

  const hn::Vec<D32> pool_;
  const V64 reciprocal_, begin_;
  const uint64_t position_;
  V64 even_, odd_;  // the rows' words times kPrime2
};

using CodeVectorOf = hn::Vec<hn::RebindToSigned<Floats>>;

// The partial products of a position, which are in memory.
class StoredProducts {
 public:
  HWY_INLINE StoredProducts(const float* partial) : partial_(partial) {}
  HWY_INLINE hn::Vec<Floats> operator()(CodeVectorOf codes) const {
    return hn::GatherIndex(Floats(), partial_, codes);
  }

 private:
  const float* partial_;
};

// Products of a position's sub-vectors of floats: one chain each.
class FloatProducts {
 public:
  HWY_INLINE FloatProducts(const SubVectors& codebook, const PartedVector& x, size_t position)
      : values_(codebook.floats + uint64_t{codebook.firsts[position]} * codebook.length),
        x_(x.floats + position * codebook.step),
        length_(codebook.length) {}
  HWY_INLINE hn::Vec<Floats> operator()(CodeVectorOf codes) const {
    const Floats d;
    const hn::RebindToSigned<Floats> d32;
    const auto entries = hn::Mul(codes, hn::Set(d32, static_cast<int32_t>(length_)));
    auto sum = hn::Zero(d);
    for (uint32_t i = 0; i < length_; ++i) {
      sum = hn::MulAdd(hn::GatherIndex(d, values_ + i, entries), hn::Set(d, x_[i]), sum);
    }
    return sum;
  }

 private:
  const float* values_;
  const float* x_;
  const uint32_t length_;
};

// Products of a position's sub-vectors of integers with codes.
class IntegerProducts {
 public:
  HWY_INLINE IntegerProducts(const SubVectors& codebook, const PartedVector& x, size_t position)
      : integers_(codebook.integers + uint64_t{codebook.firsts[position]} * codebook.length),
        scales_(codebook.scales + codebook.firsts[position]),
        x_(x.codes + position * codebook.step),
        scale_(x.scale),
        length_(codebook.length) {}
  HWY_INLINE hn::Vec<Floats> operator()(CodeVectorOf codes) const {
    const Floats d;
    const hn::RebindToSigned<Floats> d32;
    const auto bytes =
        hn::Mul(codes, hn::Set(d32, static_cast<int32_t>(length_ * sizeof(int16_t))));
    auto sum = hn::Zero(d32);
    for (uint32_t i = 0; i < length_; ++i) {
      // The entry is the low half of what is read.
      const auto pair =
          hn::GatherOffset(d32, reinterpret_cast<const int32_t*>(integers_ + i), bytes);
      const auto entry = hn::ShiftRight<16>(hn::ShiftLeft<16>(pair));
      sum = hn::Add(sum, hn::Mul(entry, hn::Set(d32, x_[i])));
    }
    const auto scales = hn::Mul(hn::GatherIndex(d, scales_, codes), hn::Set(d, scale_));
    return hn::Mul(hn::ConvertTo(d, sum), scales);
  }

 private:
  const int16_t* integers_;
  const float* scales_;
  const int16_t* x_;
  const float scale_;
  const uint32_t length_;
};

// Adds one position's products to the sums of one tile's rows in y; position 0 sets the sums.
// `tail` has the sums of rows beyond the last full panel.
template <class Column, class Table, class Products>
HWY_INLINE void AddPosition(const Table& codes, size_t tile, size_t position,
                            const Products& products, float divisor, const Finish& finish, float* y,
                            float* tail) {
  const Floats d;
  Column column_codes(codes, tile, position);
  const size_t first = tile * kCodeTileRows;
  const size_t end = std::min<size_t>(codes.rows, first + kCodeTileRows);
  const bool is_last = position + 1 == codes.positions;
  for (size_t row = first; row < end; row += kPanelRows) {
    float* sums = row + kPanelRows <= codes.rows ? y + row : tail;
    for (size_t column = 0; column < kPanelRows; column += kWidth) {
      auto sum = products(column_codes.Codes(column));
      if (position != 0) sum = hn::Add(hn::LoadU(d, sums + column), sum);
      if (!is_last) {
        hn::StoreU(sum, d, sums + column);
        continue;
      }
      if (divisor != 1.0f) sum = hn::Div(sum, hn::Set(d, divisor));
      FinishRows(finish, sum, row + column, codes.rows, y);
    }
    column_codes.NextPanel();
  }
}

// products_of(j) gives the products of position j.
template <class Column, class Table, class ProductsOf>
HWY_INLINE void AddPositions(const Table& codes, const ProductsOf& products_of, float divisor,
                             const Finish& finish, float* y) {
  const size_t tiles = (codes.rows + kCodeTileRows - 1) / kCodeTileRows;
  alignas(64) float tail[kPanelRows] = {};
  for (size_t begin = 0; begin < tiles; begin += kTilesTogether) {
    const size_t end = std::min(tiles, begin + kTilesTogether);
    for (size_t position = 0; position < codes.positions; ++position) {
      const auto products = products_of(position);
      for (size_t tile = begin; tile < end; ++tile) {
        AddPosition<Column>(codes, tile, position, products, divisor, finish, y, tail);
      }
    }
  }
}

template <class Column, class Table>
HWY_INLINE void AddPartialProducts(const Table& codes, const uint64_t* firsts, const float* partial,
                                   float divisor, const Finish& finish, float* y) {
  const auto products = [=](size_t j) HWY_ATTR { return StoredProducts(partial + firsts[j]); };
  AddPositions<Column>(codes, products, divisor, finish, y);
}
template <class Column, class Table>
HWY_INLINE void AddProducts(const Table& codes, const SubVectors& codebook, const PartedVector& x,
                            float divisor, const Finish& finish, float* y) {
  if (x.codes != nullptr) {
    const auto products = [&](size_t j) HWY_ATTR { return IntegerProducts(codebook, x, j); };
    AddPositions<Column>(codes, products, divisor, finish, y);
  } else {
    const auto products = [&](size_t j) HWY_ATTR { return FloatProducts(codebook, x, j); };
    AddPositions<Column>(codes, products, divisor, finish, y);
  }
}

void CodedSums(const CodeTiles& codes, const uint64_t* firsts, const float* partial, float divisor,
               const Finish& finish, float* y) {
  AddPartialProducts<StoredColumn>(codes, firsts, partial, divisor, finish, y);
}
void HashedSums(const HashedCodes& codes, const uint64_t* firsts, const float* partial,
                float divisor, const Finish& finish, float* y) {
  AddPartialProducts<HashedColumn>(codes, firsts, partial, divisor, finish, y);
}
void CodedProducts(const CodeTiles& codes, const SubVectors& codebook, const PartedVector& x,
                   float divisor, const Finish& finish, float* y) {
  AddProducts<StoredColumn>(codes, codebook, x, divisor, finish, y);
}
void HashedProducts(const HashedCodes& codes, const SubVectors& codebook, const PartedVector& x,
                    float divisor, const Finish& finish, float* y) {
  AddProducts<HashedColumn>(codes, codebook, x, divisor, finish, y);
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_CODED_INL_H_
