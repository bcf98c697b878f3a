// Builds an OpCase from random operands. Only the tables of cases use it (op_cases.h).
#ifndef KINGLET_TESTS_SUPPORT_CASE_BUILDER_H_
#define KINGLET_TESTS_SUPPORT_CASE_BUILDER_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/model_builder.h"
#include "tests/support/op_cases.h"

namespace kinglet {

// How operands are filled.
enum class Fill {
  kRandom,   // floats in [-limit, limit), codes over their whole range
  kExtreme,  // every float +-limit, every code as large as possible
  kSpecial,  // a few NaN, infinities, denormals, signed zeros and huge values among random ones
  kZero,
  kTiny,  // the smallest denormals, which give a fixed-point scale of 0
};

// How a matrix is stored.
enum class Storage { kF32, kF16, kPerRow, kPerTensor, kDivided };

// MicroNet's activation quantiser of `bits` bits: the largest code is 2^(bits-1) - 1.
ActivationQuantiser QuantiserOf(int bits, float max_abs = 4.0f);

// OpCase::ref64_tolerance of a case in which ref and ref64 cannot be compared.
inline constexpr double kNotComparable = -1;
// A value that falls on the other side of a rounding boundary is off by one scale.
inline constexpr double kRoundingTolerance = 1e-3;

// Around the lengths where rule 4 changes: 16 chains, 32 elements, tiles of 1,024.
inline constexpr std::array<uint64_t, 14> kLengths = {1,  7,  15,  16,   17,   31,   32,
                                                      33, 63, 257, 1023, 1024, 1025, 2049};

// "op/1/2".
std::string CaseName(const std::string& op, std::initializer_list<int64_t> numbers);

class CaseBuilder {
 public:
  CaseBuilder(std::string name, uint64_t seed);

  std::vector<float> RandomFloats(uint64_t count, Fill fill, float limit = 4.0f);
  BufferId Floats(const std::string& name, uint64_t count, Fill fill, bool state = false);
  BufferId Given(const std::string& name, std::vector<float> values);
  // Codes of a quantiser of `bits` bits, stored in 32 bits where `bits` is above 16.
  BufferId Codes(const std::string& name, uint64_t count, int bits, Fill fill, bool state = false);
  // State of Element::kCode9.
  BufferId NineBitRows(const std::string& name, uint64_t row, uint64_t rows, Fill fill);
  // "keys" of a neural cache: codes of 9 bits in rows of Element::kCode9, others as in Vector.
  BufferId CacheKeys(uint64_t width, uint64_t capacity, int bits, Fill fill);
  // Makes the initial elements from `first` on zeros, as what a stream has not written.
  void ClearFrom(BufferId id, uint64_t first);
  BufferId Tokens(uint64_t count);
  BufferId GivenTokens(const std::string& name, std::vector<int32_t> tokens);
  // `bits` 0: floats; otherwise codes of that many bits.
  BufferId Vector(const std::string& name, uint64_t count, int bits, Fill fill, bool state = false);

  WeightId Matrix(uint64_t rows, uint64_t cols, Storage storage, int bits, bool pruned = false,
                  Fill fill = Fill::kRandom);
  WeightId Tensor(const EncodedTensor& tensor) { return pool_->Add(tensor); }
  WeightId DenseVector(uint64_t count);
  // A bias as MicroNet stores it: codes with one divisor.
  WeightId DividedVector(uint64_t count, int bits);

  uint32_t Below(uint32_t n) { return random_.Below(n); }
  // A tensor that was added, and the values of a buffer's initial elements.
  const TensorView& View(WeightId id) const { return pool_->views()[id]; }
  std::vector<double> Values(BufferId id) const;

  OpCase Finish(Op op, double ref64_tolerance = 1e-9, uint64_t position = 0, uint32_t token = 0);

 private:
  BufferId Add(BufferSpec spec, InitialBuffer initial);
  TestRandom random_;
  std::shared_ptr<TensorPool> pool_ = std::make_shared<TensorPool>();
  OpCase case_;
};

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_CASE_BUILDER_H_
