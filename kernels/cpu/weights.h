// Weights in the layout of the `cpu` kernels: matrices in 16-row panels (kernels/cpu/panels.h),
// vectors padded to full panels, codes of coded tables in tiles. Each tensor is laid out once per
// plan, for all kernels that use it.
//
// Matrices and codes are laid out row by row after every node is bound, and the file's bytes are
// released at the same time, so that a model is never in memory twice.
#ifndef KINGLET_KERNELS_CPU_WEIGHTS_H_
#define KINGLET_KERNELS_CPU_WEIGHTS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "format/row_reader.h"
#include "kernels/backend.h"
#include "kernels/cpu/panels.h"
#include "kernels/cpu/vector.h"
#include "kernels/op.h"
#include "kernels/plan.h"

namespace kinglet::cpu {

// A coded table's codes, laid out as CodeTiles::codes.
struct TiledCodes {
  uint64_t rows = 0;
  uint32_t positions = 0;
  int bits = 0;
  AlignedVector<uint32_t> codes;

  CodeTiles tiles() const { return tiles(0, (rows + kCodeTileRows - 1) / kCodeTileRows); }
  // Tiles [begin, end).
  CodeTiles tiles(size_t begin, size_t end) const {
    const uint64_t first = begin * kCodeTileRows;
    return {std::min<uint64_t>(end * kCodeTileRows, rows) - first, positions, bits,
            codes.data() + begin * positions * static_cast<uint64_t>(bits) * kPanelRows};
  }
};

using SharedPanels = std::shared_ptr<const Panels>;
using SharedVector = std::shared_ptr<const AlignedVector<float>>;
using SharedCodes = std::shared_ptr<const TiledCodes>;

// The biases of a product's rows.
struct Biases {
  SharedVector values;              // as Finish::bias; empty if `integers` is used
  AlignedVector<int16_t> integers;  // as IntegerBiases
  float scale = 0, rest = 0;
  float largest = 0;  // the largest magnitude of a bias

  Finish finish(bool relu) const {
    return {values != nullptr ? values->data() : nullptr,
            relu,
            {integers.empty() ? nullptr : integers.data(), scale, rest}};
  }
  MemoryRange Memory() const {
    return values != nullptr ? std::as_bytes(std::span(*values))
                             : std::as_bytes(std::span(integers));
  }
};
using SharedBiases = std::shared_ptr<const Biases>;

// Throws std::bad_alloc.
class WeightStore {
 public:
  // `plan` and `vector` outlive the store.
  WeightStore(const Plan& plan, const VectorFunctions& vector, WeightMemory memory = {});

  // Call before any other memory is allocated that outlives a node's binding.
  void Claim(uint64_t bytes) const { ClaimFrom(memory_.claim, bytes); }
  const ClaimBytes& claim() const { return memory_.claim; }

  // A matrix of integers if the tensor is quantised with multiplying scales, as in
  // kernels/ref/weights.h. Matrices and codes are allocated at once, but are filled only by
  // LayOut().
  SharedPanels Matrix(WeightId id) { return MatrixRows(id, 0, Rows(plan_.weights[id].shape)); }
  SharedPanels MatrixRows(WeightId id, uint64_t first, uint64_t count);
  SharedCodes Codes(WeightId id);  // of a coded table
  // The transpose, as floats: panel rows are the tensor's columns.
  SharedPanels TransposedFloats(WeightId id);
  SharedVector Vector(WeightId id);
  // A vector as biases. They are integers if `prefers_integers` is true, the tensor has one
  // divisor, and the integers give the tensor's floats bit for bit. Integers take half the memory,
  // but more instructions.
  SharedBiases BiasesOf(WeightId id, bool prefers_integers);

  // Whether some node multiplies with the entire matrix, so that its panels exist in any case.
  bool Multiplied(WeightId id) const { return multiplied_.count(id) != 0; }
  // Declares that a kernel reads the tensor in the file's memory, so that its bytes are not
  // released.
  void Keep(WeightId id) { kept_.insert(id); }
  // Declares that a node has computed what it needs from the tensor and will not read it again.
  void Consume(WeightId id) { consumed_.insert(id); }

  // Fills all matrices and codes. Called once, after all nodes are bound.
  void LayOut();

 private:
  using RowRange = std::tuple<WeightId, uint64_t, uint64_t>;  // first row, rows

  void LayOutMatrix(WeightId id);
  void LayOutCodes(WeightId id, TiledCodes& tiled);

  const Plan& plan_;
  const VectorFunctions& vector_;
  WeightMemory memory_;
  std::set<WeightId> multiplied_, kept_, consumed_;
  std::map<RowRange, std::shared_ptr<Panels>> matrices_;
  std::map<WeightId, std::shared_ptr<TiledCodes>> codes_;
  std::map<WeightId, SharedPanels> transposed_;
  std::map<WeightId, SharedVector> vectors_;
  std::map<std::pair<WeightId, bool>, SharedBiases> biases_;
};

}  // namespace kinglet::cpu

#endif  // KINGLET_KERNELS_CPU_WEIGHTS_H_
