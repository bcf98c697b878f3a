// How MatVec becomes steps (product.h).
#include "format/row_reader.h"
#include "kernels/cuda/bind.h"

namespace kinglet::cuda {
namespace {

constexpr uint64_t kMostColumns = 32768;  // whose products of bytes add up below 2^31
constexpr int64_t kLargestByte = 127, kLargestFixedPoint = 16383;
constexpr int64_t kLargestInt32 = 0x7fffffff;

}  // namespace

Steps BindOp(const MatVec& op, Binder& binder) {
  const TensorView& weight = binder.plan.weights[op.weight];
  const auto rows = static_cast<uint32_t>(Rows(weight.shape)),
             cols = static_cast<uint32_t>(Cols(weight.shape));
  Finish finish;
  finish.rectify = op.rectify;
  if (op.bias) {
    KINGLET_ASSIGN_OR_RETURN(finish.bias, binder.weights.Reals(*op.bias));
  }
  const Place y = binder.At(op.y).Plus(op.y_offset * sizeof(float));
  Vector x = binder.VectorOf(op.x);
  std::vector<Step> steps;
  int64_t largest = x.codes ? LargestCode(*binder.plan.buffer(op.x).quantiser) : kLargestFixedPoint;
  if (op.input == TailInput::kFixedPoint15 && !x.codes) {
    FixedPoint codes{};
    codes.x = x.place;
    codes.count = cols;
    codes.codes = binder.Temporary<int16_t>(cols);
    codes.step = binder.Temporary<float>(1);
    steps.push_back(MakeStep(codes));
    x.place = codes.codes;
    x.codes = x.has_own_step = true;
    x.step_place = codes.step;
  }
  if (!x.codes || !binder.weights.HasIntegers(op.weight)) {
    RealProduct product{};
    KINGLET_ASSIGN_OR_RETURN(product.matrix, binder.weights.Reals(op.weight));
    product.rows = rows;
    product.cols = cols;
    product.x = x;
    product.finish = finish;
    product.y = y;
    steps.push_back(MakeStep(product));
    return steps;
  }
  if (cols > kMostColumns) {
    return binder.Refuse("at most " + std::to_string(kMostColumns) + " columns",
                         std::to_string(cols));
  }
  IntegerProduct product{};
  KINGLET_ASSIGN_OR_RETURN(product.matrix, binder.weights.Integers(op.weight));
  product.x = x;
  product.x_is_byte = largest <= kLargestByte;
  const int64_t largest_weight = int64_t{1} << (RowReader::IntegerBits(weight) - 1);
  product.fits_int32 = cols == 0 || largest * largest_weight <= kLargestInt32 / cols;
  product.finish = finish;
  product.y = y;
  steps.push_back(MakeStep(product));
  return steps;
}

}  // namespace kinglet::cuda
