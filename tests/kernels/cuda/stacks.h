// Models whose layers are one launch on a device (kernels/cuda/bind_stack.h), and whether they are.
#ifndef KINGLET_TESTS_KERNELS_CUDA_STACKS_H_
#define KINGLET_TESTS_KERNELS_CUDA_STACKS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/program.h"
#include "tests/runtime/session_fixture.h"
#include "tests/support/model_builder.h"

namespace kinglet::cuda {

// How many device nodes of a context are stacks, for `lanes` lanes.
template <class Shape>
int StacksOf(const ModelDraft& draft, uint32_t lanes, const Emulation& emulation = {}) {
  const auto model = Open(draft, "ref");
  const Plan& plan = model->plan();
  const BufferLayout layout = LayOut(plan, sizeof(float)).value();
  const auto program = Program::Bind(plan, layout, EmulatedDevice(emulation), {});
  EXPECT_TRUE(program.ok()) << program.status().message();
  const NodeList list = (*program)->List(plan.context, lanes);
  return static_cast<int>(
      std::count_if(list.nodes, list.nodes + list.count, IsKind<DecoderStack<Shape>>));
}

// A model whose layers are one launch.
inline TinyOptions Stackable() {
  TinyOptions options;
  options.quantised = true;
  options.heads = 5;  // with fewer, rows of 9 bits are larger than those of 16, by their padding
  options.key_size = options.value_size = 8;
  options.cache_capacity = 9;
  options.vocabulary_size = 40;
  return options;
}

}  // namespace kinglet::cuda

#endif  // KINGLET_TESTS_KERNELS_CUDA_STACKS_H_
