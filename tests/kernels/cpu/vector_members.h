// The members of VectorFunctions, for tests that must not miss one.
#ifndef KINGLET_TESTS_KERNELS_CPU_VECTOR_MEMBERS_H_
#define KINGLET_TESTS_KERNELS_CPU_VECTOR_MEMBERS_H_

#include <cstddef>
#include <string_view>

#include "kernels/cpu/vector.h"

namespace kinglet::cpu {

// Calls use.operator()<&VectorFunctions::member>() for every member.
template <auto... kMembers>
struct MemberList {
  static constexpr size_t kCount = sizeof...(kMembers);
  template <class Use>
  static void ForEach(Use use) {
    (use.template operator()<kMembers>(), ...);
  }
};

using VectorMembers = MemberList<
    &VectorFunctions::integer_product, &VectorFunctions::decoded_product,
    &VectorFunctions::real_product, &VectorFunctions::coded_sums, &VectorFunctions::hashed_sums,
    &VectorFunctions::coded_products, &VectorFunctions::hashed_products,
    &VectorFunctions::integer_dots, &VectorFunctions::nine_bit_dots,
    &VectorFunctions::nine_bit_part_dots, &VectorFunctions::store_nine_bits,
    &VectorFunctions::load_nine_bits, &VectorFunctions::weighted_nine_bits,
    &VectorFunctions::real_dots, &VectorFunctions::real_head_dots,
    &VectorFunctions::integer_head_dots, &VectorFunctions::add_relative_scores,
    &VectorFunctions::shift_and_scale, &VectorFunctions::add_weighted_floats,
    &VectorFunctions::add_weighted_codes, &VectorFunctions::rescale_sums,
    &VectorFunctions::combine_scores, &VectorFunctions::softmax, &VectorFunctions::weighted_codes,
    &VectorFunctions::weighted_floats, &VectorFunctions::largest, &VectorFunctions::sum_logit_tiles,
    &VectorFunctions::cache_weights, &VectorFunctions::exponentials, &VectorFunctions::layer_norm,
    &VectorFunctions::quantise, &VectorFunctions::largest_magnitude, &VectorFunctions::fixed_point,
    &VectorFunctions::dequantise, &VectorFunctions::add, &VectorFunctions::add_codes,
    &VectorFunctions::scale, &VectorFunctions::sigmoids, &VectorFunctions::tangents,
    &VectorFunctions::gelus, &VectorFunctions::swishes, &VectorFunctions::tanh_gelus,
    &VectorFunctions::lstm_gates, &VectorFunctions::gru_gates, &VectorFunctions::rnn_gates,
    &VectorFunctions::qrnn_gates, &VectorFunctions::log_probabilities, &VectorFunctions::at_least,
    &VectorFunctions::mix, &VectorFunctions::spread_codes, &VectorFunctions::interleave_codes,
    &VectorFunctions::sign_place, &VectorFunctions::read_lines>;
static_assert(VectorMembers::kCount * sizeof(void (*)()) == sizeof(VectorFunctions),
              "the list contains each function of the table");

// The member's name, for messages.
template <auto kMember>
constexpr std::string_view MemberName() {
  constexpr std::string_view kPrefix = "VectorFunctions::";
  std::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.rfind(kPrefix) + kPrefix.size());
  return name.substr(0, name.find_first_of(";]"));
}

}  // namespace kinglet::cpu

#endif  // KINGLET_TESTS_KERNELS_CPU_VECTOR_MEMBERS_H_
