#include "kernels/ref/attention.h"

#include <gtest/gtest.h>

#include "tests/kernels/ref/one_node.h"

namespace kinglet::ref::attention_test {
namespace {

template <class T>
class RefAttention : public testing::Test {};
using RealTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(RefAttention, RealTypes);

// One head, key and value of one element, tokens 0 masked: masked tokens are invisible, even to
// themselves, unless all tokens are masked.
TYPED_TEST(RefAttention, WindowAttentionDoesNotSeeMaskedTokens) {
  OneNode<TypeParam> one;
  const BufferId qkv = one.Zeros(3), keys = one.Zeros(3, true), values = one.Zeros(3, true);
  const BufferId weights = one.Zeros(3), out = one.Zeros(1), tokens = one.Tokens(3);
  WindowAttention op{};
  op.qkv = qkv;
  op.keys = keys;
  op.values = values;
  op.heads = op.key_size = op.value_size = 1;
  op.window = 3;
  op.masked = MaskedToken{tokens, 0};
  op.weights = weights;
  op.out = out;
  one.Bind(op);
  const auto feed = [&](uint64_t position, uint32_t token, TypeParam value) {
    TypeParam* z = one.template Values<TypeParam>(qkv);
    z[0] = z[1] = 1;
    z[2] = value;
    one.Run(position, token);
    return static_cast<double>(one.template Values<TypeParam>(out)[0]);
  };
  EXPECT_EQ(feed(0, 0, 8), 8);  // all that is visible is masked
  EXPECT_EQ(feed(1, 5, 2), 2);
  EXPECT_EQ(feed(2, 0, 16), 2);
  EXPECT_EQ(feed(3, 7, 4), 3);  // the mean of 2 and 4
  EXPECT_EQ(feed(4, 7, 0), 2);  // 2 has left the window
}

}  // namespace
}  // namespace kinglet::ref::attention_test
