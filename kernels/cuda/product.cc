// How MatVec, and the products of other operations, become device nodes (product.h).
#include "kernels/cuda/bind.h"
#include "kernels/numerics.h"

namespace kinglet::cuda {
namespace {

constexpr uint64_t kMostColumns = 32768;  // the sum of kMostColumns products of bytes is below 2^31
constexpr int64_t kLargestByte = 127;
constexpr int64_t kLargestExactFloat = 1 << 24;  // all integers up to it are floats
constexpr int64_t kLargestExactHalf = 1 << 11;   // likewise in half precision

static_assert(IntegerProduct::kMaxWarpsOfItem == kBlockWarps);
// Three thread blocks (node_kernels.cu) fit a multiprocessor with 100 KB of shared memory, of
// which each thread block reserves one (compute capability 8.6).
static_assert(3 * (IntegerProduct::SharedBytes() + 1024) <= 100 * 1024);

}  // namespace

ProductOperand OperandOf(Binder& binder, BufferId x, TailInput input, uint32_t count,
                         std::vector<Node>& nodes) {
  ProductOperand operand;
  operand.vector = binder.VectorOf(x);
  operand.vector.count = count;
  if (operand.vector.codes) {
    operand.largest = LargestCode(*binder.plan.buffer(x).quantiser);
    return operand;
  }
  if (input != TailInput::kFixedPoint15) return operand;
  FixedPoint codes{};
  codes.x = operand.vector.place;
  codes.count = count;
  codes.codes = binder.Temporary<int16_t>(count);
  codes.scale = binder.Temporary<float>(1);
  nodes.push_back(MakeNode(codes));
  operand.vector.place = codes.codes;
  operand.vector.codes = operand.vector.has_own_scale = true;
  operand.vector.scale_place = codes.scale;
  operand.largest = kFixedPointLimit;
  return operand;
}

Status AppendProduct(Binder& binder, WeightId weight, const ProductOperand& x, const Finish& finish,
                     Place y, TokenRange tokens, std::vector<Node>& nodes) {
  const TensorView& matrix = binder.plan.weights[weight];
  const uint64_t cols = Cols(matrix.shape);
  if (!x.vector.codes || !binder.weights.HasIntegers(weight)) {
    RealProduct product{};
    KINGLET_ASSIGN_OR_RETURN(product.matrix, binder.weights.Floats(weight));
    product.rows = static_cast<uint32_t>(Rows(matrix.shape));
    product.cols = static_cast<uint32_t>(cols);
    product.x = x.vector;
    product.finish = finish;
    product.y = y;
    product.tokens = tokens;
    nodes.push_back(MakeNode(product));
    return Status();
  }
  if (cols > kMostColumns) {
    return binder.Refuse("at most " + std::to_string(kMostColumns) + " columns",
                         std::to_string(cols));
  }
  IntegerProduct product{};
  KINGLET_ASSIGN_OR_RETURN(product.matrix, binder.weights.Integers(weight));
  product.x = x.vector;
  product.x_is_byte = x.largest <= kLargestByte;
  product.fits_float =
      static_cast<int64_t>(cols) * x.largest * binder.weights.LargestInteger(weight) <=
      kLargestExactFloat;
  product.fits_halves =
      product.fits_float && binder.weights.LargestInteger(weight) <= kLargestExactHalf;
  product.fits_int32 = SumFitsInt32(cols, x.largest, binder.weights.LargestInteger(weight));
  product.finish = finish;
  product.y = y;
  product.tokens = tokens;
  nodes.push_back(MakeNode(product));
  return Status();
}

Nodes BindOp(const MatVec& op, Binder& binder) {
  std::vector<Node> nodes;
  const auto cols = static_cast<uint32_t>(Cols(binder.plan.weights[op.weight].shape));
  const ProductOperand x = OperandOf(binder, op.x, op.input, cols, nodes);
  Finish finish;
  finish.relu = op.relu;
  KINGLET_ASSIGN_OR_RETURN(finish.bias, binder.weights.FloatsOrNull(op.bias));
  KINGLET_RETURN_IF_ERROR(AppendProduct(
      binder, op.weight, x, finish, binder.At(op.y).Plus(op.y_offset * sizeof(float)), {}, nodes));
  return nodes;
}

}  // namespace kinglet::cuda
