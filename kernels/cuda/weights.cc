#include "kernels/cuda/weights.h"

#include <cstring>
#include <utility>

#include "format/coded_rows.h"
#include "format/encoding.h"
#include "format/row_reader.h"

namespace kinglet::cuda {
namespace {

constexpr uint64_t kMaxElements = uint64_t{1} << 31;

}  // namespace

BytePlanes LayOutPlanes(std::span<const int16_t> codes, uint32_t rows, uint32_t cols, int bits) {
  ByteMatrix shape;
  shape.rows = rows;
  shape.cols = cols;
  shape.form = FormOf(bits, cols);
  BytePlanes planes{shape.form, std::vector<std::byte>(shape.low_bytes()),
                    std::vector<std::byte>(shape.high_bytes())};
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t col = 0; col < cols; ++col) {
      const auto code = static_cast<uint16_t>(codes[uint64_t{row} * cols + col]);
      if (shape.narrow()) {
        const uint64_t at = (uint64_t{row} * kNarrowColumns + col) * sizeof code;
        std::memcpy(&planes.low[at], &code, sizeof code);
        continue;
      }
      const uint64_t tile = uint64_t{row / kTileRows} * shape.col_tiles() + col / kTileDepth;
      const uint32_t index = TilePlace(row % kTileRows, col % kTileDepth).index();
      planes.low[tile * kTileBytes + index] = static_cast<std::byte>(code & 0xff);
      if (shape.form == ByteForm::kTwoBytes) {
        planes.high[tile * kTileBytes + index] = static_cast<std::byte>(code >> 8);
      } else if (shape.form == ByteForm::kSigned9) {
        planes.high[tile * kTileSignBytes + index / 8] |=
            static_cast<std::byte>((code >> 15) << (index % 8));
      }
    }
  }
  return planes;
}

HostIntegers IntegersOf(const TensorView& tensor) {
  const RowReader reader(tensor);
  HostIntegers made{reader.cols(), std::vector<int16_t>(reader.rows() * reader.cols()),
                    std::vector<float>(reader.rows())};
  for (uint64_t row = 0; row < reader.rows(); ++row) {
    reader.Codes(row, made.codes.data() + row * made.cols);
    made.scales[row] = reader.Scale(row);
  }
  return made;
}

bool WeightStore::HasIntegers(WeightId id) const {
  return RowReader::IntegerBits(plan_.weights[id]) != 0;
}

int64_t WeightStore::LargestInteger(WeightId id) const {
  return int64_t{1} << (RowReader::IntegerBits(plan_.weights[id]) - 1);
}

Result<std::byte*> WeightStore::Allocate(uint64_t bytes) {
  KINGLET_ASSIGN_OR_RETURN(DeviceMemory memory, DeviceMemory::Allocate(device_, bytes));
  std::byte* const address = memory.data();
  memory_.push_back(std::move(memory));
  bytes_ += bytes;
  return address;
}

Result<const std::byte*> WeightStore::Upload(std::span<const std::byte> bytes) {
  KINGLET_ASSIGN_OR_RETURN(std::byte* const address, Allocate(bytes.size()));
  KINGLET_RETURN_IF_ERROR(queue_.Upload(address, bytes.data(), bytes.size()));
  return static_cast<const std::byte*>(address);
}

Result<ByteMatrix> WeightStore::Integers(WeightId id) {
  if (const auto found = integers_.find(id); found != integers_.end()) return found->second;
  const RowReader reader(plan_.weights[id]);
  if (reader.rows() > kMaxElements || reader.cols() > kMaxElements) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "cuda", "tensor " + plan_.weights[id].name,
                           "at most 2^31 rows and columns", ShapeText(plan_.weights[id].shape));
  }
  const HostIntegers host = IntegersOf(plan_.weights[id]);
  ByteMatrix matrix;
  matrix.rows = static_cast<uint32_t>(reader.rows());
  matrix.cols = static_cast<uint32_t>(reader.cols());
  const BytePlanes planes =
      LayOutPlanes(host.codes, matrix.rows, matrix.cols, reader.integer_bits());
  matrix.form = planes.form;
  KINGLET_ASSIGN_OR_RETURN(matrix.low, Upload(planes.low));
  if (!planes.high.empty()) {
    KINGLET_ASSIGN_OR_RETURN(matrix.high, Upload(planes.high));
  }
  KINGLET_ASSIGN_OR_RETURN(matrix.scales, Constants(std::span<const float>(host.scales)));
  laid_out_.insert(id);
  integers_[id] = matrix;
  return matrix;
}

Result<const float*> WeightStore::Floats(WeightId id) {
  if (const auto found = floats_.find(id); found != floats_.end()) return found->second;
  const RowReader reader(plan_.weights[id]);
  std::vector<float> values(reader.rows() * reader.cols());
  for (uint64_t row = 0; row < reader.rows(); ++row) {
    reader.Floats(row, values.data() + row * reader.cols());
  }
  KINGLET_ASSIGN_OR_RETURN(const float* const address, Constants(std::span<const float>(values)));
  laid_out_.insert(id);
  floats_[id] = address;
  return address;
}

Result<const float*> WeightStore::FloatsOrNull(const std::optional<WeightId>& id) {
  if (!id) return static_cast<const float*>(nullptr);
  return Floats(*id);
}

Result<const uint32_t*> WeightStore::NarrowConstants(std::span<const uint64_t> values) {
  std::vector<uint32_t> narrow;
  for (const uint64_t value : values) narrow.push_back(static_cast<uint32_t>(value));
  return Constants(std::span<const uint32_t>(narrow));
}

Result<StoredRows> WeightStore::Stored(WeightId id) {
  StoredRows rows;
  rows.cols = static_cast<uint32_t>(Cols(plan_.weights[id].shape));
  if (HasIntegers(id)) {
    KINGLET_ASSIGN_OR_RETURN(rows.integers, Integers(id));
  } else {
    KINGLET_ASSIGN_OR_RETURN(rows.floats, Floats(id));
  }
  return rows;
}

Result<CodeMatrix> WeightStore::Codes(WeightId id) {
  if (const auto found = codes_.find(id); found != codes_.end()) return found->second;
  const CodedRows reader(plan_.weights[id]);
  CodeMatrix matrix;
  matrix.rows = static_cast<uint32_t>(Rows(plan_.weights[id].shape));
  matrix.positions = reader.positions();
  matrix.bits = static_cast<uint32_t>(plan_.weights[id].coded()->scheme.CodeBits());
  std::vector<uint32_t> planes(matrix.positions * matrix.plane_size());
  std::vector<uint32_t> codes(matrix.positions);
  for (uint64_t row = 0; row < matrix.rows; ++row) {
    reader.Codes(row, codes.data());
    for (uint32_t j = 0; j < matrix.positions; ++j) {
      const uint64_t bit = row * matrix.bits;
      uint32_t* const at = planes.data() + j * matrix.plane_size() + bit / 32;
      const uint64_t shifted = uint64_t{codes[j]} << (bit % 32);
      at[0] |= static_cast<uint32_t>(shifted);
      at[1] |= static_cast<uint32_t>(shifted >> 32);
    }
  }
  KINGLET_ASSIGN_OR_RETURN(matrix.planes, Constants(std::span<const uint32_t>(planes)));
  laid_out_.insert(id);
  codes_[id] = matrix;
  return matrix;
}

Status WeightStore::Run(std::span<const Node> nodes, std::span<const Lane> lanes) {
  const auto copy = [this](std::span<const std::byte> bytes) -> Result<DeviceMemory> {
    KINGLET_ASSIGN_OR_RETURN(DeviceMemory memory, DeviceMemory::Allocate(device_, bytes.size()));
    KINGLET_RETURN_IF_ERROR(queue_.Upload(memory.data(), bytes.data(), bytes.size()));
    return memory;
  };
  KINGLET_ASSIGN_OR_RETURN(const DeviceMemory of_nodes, copy(std::as_bytes(nodes)));
  KINGLET_ASSIGN_OR_RETURN(const DeviceMemory of_lanes, copy(std::as_bytes(lanes)));
  // may_repeat is false: other nodes may be at this address next.
  const NodeList list = {nodes.data(), static_cast<uint32_t>(nodes.size()),
                         reinterpret_cast<const Node*>(of_nodes.data()), false};
  KINGLET_RETURN_IF_ERROR(queue_.Run(list, reinterpret_cast<const Lane*>(of_lanes.data()),
                                     static_cast<uint32_t>(lanes.size())));
  return queue_.Wait();
}

void WeightStore::Release(const ReleaseBytes& release) const {
  if (!release) return;
  for (const WeightId id : laid_out_) {
    if (const CodedView* const coded = plan_.weights[id].coded()) {
      if (!coded->codes.empty()) release(id, coded->codes);
      continue;
    }
    const RowReader reader(plan_.weights[id]);
    for (const MemoryRange& bytes : reader.Memory(0, reader.rows())) release(id, bytes);
  }
}

}  // namespace kinglet::cuda
