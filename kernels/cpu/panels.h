// A matrix in panels, the layout that the `cpu` kernels read (described in kernels/cpu/vector.h).
#ifndef KINGLET_KERNELS_CPU_PANELS_H_
#define KINGLET_KERNELS_CPU_PANELS_H_

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

#include "format/system.h"
#include "kernels/backend.h"
#include "kernels/cpu/vector.h"

namespace kinglet::cpu {

// Aligned memory for values, which is not initialised.
template <class T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr size_t kHugePage = size_t{1} << 21;
  AlignedAllocator() = default;
  template <class U>
  explicit AlignedAllocator(const AlignedAllocator<U>&) {}
  T* allocate(size_t n) {
    if (n > SIZE_MAX / sizeof(T)) throw std::bad_array_new_length();
    void* const memory = ::operator new(n * sizeof(T), Alignment(n));
    if (n * sizeof(T) >= kHugePage) system::PreferHugePages(memory, n * sizeof(T));
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t n) { ::operator delete(memory, Alignment(n)); }
  static std::align_val_t Alignment(size_t n) {
    return std::align_val_t{n * sizeof(T) >= kHugePage ? kHugePage : 64};
  }
  template <class U>
  void construct(U* place) {
    ::new (static_cast<void*>(place)) U;
  }
  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};

template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

// Panels [begin, end) of a matrix.
struct PanelRange {
  size_t begin, end;
};

// Integers with one scale per row, or floats. The constructor allocates the memory, and throws
// std::bad_alloc; the contents are written later, in order of rows.
class Panels {
 public:
  static Panels OfIntegers(uint64_t rows, uint64_t cols, int bits);
  static Panels OfFloats(uint64_t rows, uint64_t cols);
  // The bytes of a matrix of integers of `bits` bits, or of floats if `bits` is 0.
  static uint64_t Bytes(uint64_t rows, uint64_t cols, int bits);
  // A matrix of integers with these contents: codes [rows][cols], scales [rows].
  static Panels FromCodes(uint64_t rows, uint64_t cols, int bits, std::span<const int16_t> codes,
                          std::span<const float> scales, const VectorFunctions& vector);

  uint64_t rows() const { return rows_; }
  uint64_t cols() const { return cols_; }
  int bits() const { return bits_; }  // of an integer; 0 for floats
  bool integer() const { return bits_ != 0; }
  size_t panels() const { return (rows_ + kPanelRows - 1) / kPanelRows; }
  CodePanels code_panels() const { return code_panels({0, panels()}); }
  CodePanels code_panels(PanelRange part) const;
  RealPanels real_panels() const { return real_panels({0, panels()}); }
  RealPanels real_panels(PanelRange part) const;
  // CodePanels::from_memory.
  void set_from_memory(bool from_memory) { from_memory_ = from_memory; }
  // About how many bytes a product reads and writes for one panel.
  uint64_t PanelBytes() const;

  // Writes the rows of panel `panel` from codes [kPanelRows][cols], of which three more may be
  // read, and scales [kPanelRows]; rows beyond the matrix are zeros. REQUIRES: integer().
  void WriteCodes(uint64_t panel, const int16_t* codes, const float* scales,
                  const VectorFunctions& vector);
  // Writes row `row` from values [cols]. Rows are written in order; the last row's call writes the
  // padding too. REQUIRES: !integer().
  void WriteFloats(uint64_t row, const float* values);
  // Reads a row back, to out[cols], or columns [begin, end) of it, to out[end - begin]. `vector`
  // are the functions that wrote it.
  void CopyCodes(uint64_t row, const VectorFunctions& vector, int16_t* out) const {
    CopyCodes(row, 0, cols_, vector, out);
  }
  void CopyCodes(uint64_t row, uint64_t begin, uint64_t end, const VectorFunctions& vector,
                 int16_t* out) const;
  void CopyFloats(uint64_t row, float* out) const;
  float scale(uint64_t row) const { return scales_[row]; }  // REQUIRES: integer()
  float largest_scale() const { return largest_scale_; }    // of the rows written so far, or 0

  // The memory of the entire matrix, padding included.
  std::vector<MemoryRange> Memory() const;
  // The memory of one row: its panel, since a cache line has codes of all the panel's rows, and its
  // scale.
  std::vector<MemoryRange> RowMemory(uint64_t row) const;

 private:
  Panels(uint64_t rows, uint64_t cols, int bits);

  // WriteCodes for a panel of fields, whose tiles begin at `tiles`.
  void WriteFields(const int16_t* codes, std::byte* tiles) const;

  uint64_t rows_, cols_;
  int bits_;
  CodeForm form_;
  bool from_memory_ = false;
  float largest_scale_ = 0;
  AlignedVector<std::byte> codes_;  // as CodePanels::codes
  AlignedVector<uint64_t> signs_;   // as CodePanels::signs
  AlignedVector<float> scales_;     // as CodePanels::scales
  AlignedVector<float> values_;     // as RealPanels::values
};

}  // namespace kinglet::cpu

#endif  // KINGLET_KERNELS_CPU_PANELS_H_
