#include "kernels/cuda/bind.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <variant>

#include "kernels/op.h"

namespace kinglet::cuda {
namespace {

template <class Operation, class = void>
constexpr bool kIsBound = false;
template <class Operation>
constexpr bool kIsBound<Operation, std::void_t<decltype(BindOp(std::declval<const Operation&>(),
                                                               std::declval<Binder&>()))>> = true;

}  // namespace

Vector Binder::VectorOf(BufferId id) const {
  const BufferSpec& buffer = plan.buffer(id);
  Vector vector;
  vector.place = At(id);
  vector.count = Count(id);
  vector.codes = buffer.element == Element::kCode16;
  if (buffer.quantiser) vector.scale = buffer.quantiser->scale;
  return vector;
}

Status Binder::Refuse(const std::string& expected, const std::string& found) const {
  return Status::Refusal(KINGLET_UNSUPPORTED, "cuda", "node " + plan.nodes[index_].name, expected,
                         found);
}

Status Binder::CheckBuffers() const {
  for (const BufferSpec& buffer : plan.buffers) {
    if (buffer.element == Element::kCode32) {
      return Status::Refusal(KINGLET_UNSUPPORTED, "cuda", "buffer " + buffer.name,
                             "codes of at most 16 bits", "codes of 32");
    }
    if (buffer.count > UINT32_MAX) {
      return Status::Refusal(KINGLET_UNSUPPORTED, "cuda", "buffer " + buffer.name,
                             "fewer than 2^32 elements", std::to_string(buffer.count));
    }
  }
  return Status();
}

Result<std::vector<Node>> Binder::Bind(size_t index) {
  index_ = index;
  if (index == 0) KINGLET_RETURN_IF_ERROR(CheckBuffers());
  return std::visit(
      [this](const auto& op) -> Nodes {
        using Operation = std::decay_t<decltype(op)>;
        if constexpr (kIsBound<Operation>) {
          return BindOp(op, *this);
        } else {
          return Refuse("an operation that this backend has",
                        std::string(OpName(plan.nodes[index_].op)));
        }
      },
      plan.nodes[index].op);
}

}  // namespace kinglet::cuda
