#include "converters/recipe/make_codes.h"

#include <gtest/gtest.h>

#include <vector>

#include "converters/passes/product_quantise.h"
#include "converters/passes/slim_mapping.h"
#include "converters/passes/sub_vectors.h"

namespace kinglet::make_codes_test {
namespace {

const Shape kShape = {8, 4};

std::vector<float> Values() {
  std::vector<float> values;
  for (int i = 0; i < 32; ++i) values.push_back(static_cast<float>(i * i % 17));
  return values;
}

TEST(MakeCodes, EachMappingIsThatOfItsFunction) {
  CodePass pass;
  pass.positions = 2;
  pass.sub_vectors = 6;
  ProductQuantisation options;
  options.positions = 2;
  options.pools = {3, 3};
  options.clustering.seed = pass.seed;
  options.clustering.iterations = pass.iterations;
  const auto product = ProductQuantise(Values(), kShape, options);
  const auto made = MakeCodes(pass, Values(), kShape, 1, {});
  ASSERT_TRUE(made.ok() && product.ok());
  EXPECT_EQ(made->codes, product->codes);
  EXPECT_EQ(made->codebook, product->codebook);
  pass.mapping = CodePass::Mapping::kHashed;
  EXPECT_EQ(MakeCodes(pass, Values(), kShape, 1, {})->codes,
            *HashedCodes(kShape, 2, EvenPools(6, 2), pass.seed));
  pass.mapping = CodePass::Mapping::kClustered;
  pass.pools = CodePass::Pools::kOne;
  EXPECT_EQ(MakeCodes(pass, Values(), kShape, 1, {})->pools, std::vector<uint32_t>{6});
  pass.sum = true;
  const auto sum = MakeCodes(pass, Values(), kShape, 1, {});
  EXPECT_EQ(sum->combine, Combine::kSum);
  EXPECT_EQ(sum->length, 4u);
}

}  // namespace
}  // namespace kinglet::make_codes_test
