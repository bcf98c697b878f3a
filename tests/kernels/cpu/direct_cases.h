// Inputs for vector functions that no operation calls, with the functions' results and those of
// ref.
#ifndef KINGLET_TESTS_KERNELS_CPU_DIRECT_CASES_H_
#define KINGLET_TESTS_KERNELS_CPU_DIRECT_CASES_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cpu/vector.h"
#include "kernels/functions.h"
#include "kernels/ref/cluster_tokens.h"

namespace kinglet::cpu {

using Bits = std::vector<uint32_t>;
inline Bits BitsOf(const std::vector<float>& values) {
  Bits bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

inline std::vector<float> SomeNumbers(float scale) {
  std::vector<float> numbers(37);
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = scale * (static_cast<float>(i * 29 % 37) / 36.0f - 0.5f);
  }
  return numbers;
}
inline constexpr ClusterTerms<float> kClusterTerms = {5.0f, 2.5f, -1.25f, -0.125f};
inline constexpr CacheTerms<float> kCacheTerms = {0.75f, 0.25f, 3.0f};

struct DirectCase {
  const char* function;
  Bits (*found)(const VectorFunctions& functions);
  Bits (*expected)();
};

template <auto kMember>
Bits Mapped(const VectorFunctions& functions) {
  std::vector<float> x = SomeNumbers(20.0f), out(x.size());
  (functions.*kMember)(x.data(), x.size(), out.data());
  return BitsOf(out);
}
template <auto kFunction>
Bits MappedOneByOne() {
  std::vector<float> x = SomeNumbers(20.0f);
  for (float& value : x) value = kFunction(value);
  return BitsOf(x);
}

inline constexpr size_t kReadLines = 7;
struct alignas(64) Lines {
  uint64_t values[kReadLines * 8];
};
inline Lines SomeLines() {
  Lines lines;
  std::mt19937_64 random(1);
  for (uint64_t& value : lines.values) value = random();
  return lines;
}
inline Bits Halves(uint64_t token) {
  return {static_cast<uint32_t>(token), static_cast<uint32_t>(token >> 32)};
}

// Two rows of one part of eight codes.
inline constexpr NineBitRow kCodedRow{8};
inline int SomeCode(uint64_t i) { return static_cast<int>(i * 97 % 512) - 256; }
inline Bits LoadedCodes(const VectorFunctions& functions) {
  std::vector<uint8_t> bytes(2 * kCodedRow.Bytes());
  for (uint64_t r = 0; r < 2; ++r) {
    kCodedRow.Store([r](uint64_t i) { return SomeCode(8 * r + i); },
                    bytes.data() + r * kCodedRow.Bytes());
  }
  std::vector<int16_t> codes(16);
  functions.load_nine_bits({bytes.data(), bytes.data() + kCodedRow.Padded(), kCodedRow.Bytes(), 2},
                           8, codes.data());
  return Bits(codes.begin(), codes.end());
}
inline Bits SomeCodes() {
  Bits codes;
  for (uint64_t i = 0; i < 16; ++i) codes.push_back(static_cast<uint32_t>(SomeCode(i)));
  return codes;
}

inline constexpr auto kScalarExp = [](float x) { return Exp(x); };
inline constexpr auto kScalarSigmoid = [](float x) { return Sigmoid(x); };
inline constexpr auto kScalarTanh = [](float x) { return Tanh(x); };
inline constexpr auto kScalarGelu = [](float x) { return Gelu(x); };
inline constexpr auto kScalarSwish = [](float x) { return x * Sigmoid(x); };
inline constexpr auto kScalarTanhGelu = [](float x) { return TanhGelu(x); };
inline const DirectCase kDirectCases[] = {
    {"load_nine_bits", LoadedCodes, SomeCodes},
    {"exponentials", Mapped<&VectorFunctions::exponentials>, MappedOneByOne<kScalarExp>},
    {"sigmoids", Mapped<&VectorFunctions::sigmoids>, MappedOneByOne<kScalarSigmoid>},
    {"tangents", Mapped<&VectorFunctions::tangents>, MappedOneByOne<kScalarTanh>},
    {"gelus", Mapped<&VectorFunctions::gelus>, MappedOneByOne<kScalarGelu>},
    {"swishes", Mapped<&VectorFunctions::swishes>, MappedOneByOne<kScalarSwish>},
    {"tanh_gelus", Mapped<&VectorFunctions::tanh_gelus>, MappedOneByOne<kScalarTanhGelu>},
    {"log_probabilities",
     [](const VectorFunctions& functions) {
       std::vector<float> x = SomeNumbers(20.0f), out(x.size());
       functions.log_probabilities(x.data(), x.size(), kClusterTerms, out.data());
       return BitsOf(out);
     },
     [] {
       std::vector<float> x = SomeNumbers(20.0f), out(x.size());
       ref::TokenLogProbabilities(x.data(), x.size(), kClusterTerms, out.data());
       return BitsOf(out);
     }},
    {"at_least",
     [](const VectorFunctions& functions) {
       const std::vector<float> x = SomeNumbers(20.0f);
       Bits places(x.size() + 16);
       places.resize(functions.at_least(x.data(), x.size(), kClusterTerms, -4.0f, places.data()));
       return places;
     },
     [] {
       const std::vector<float> x = SomeNumbers(20.0f);
       Bits places(x.size() + 16);
       places.resize(ref::TokensAtLeast(x.data(), x.size(), kClusterTerms, -4.0f, places.data()));
       return places;
     }},
    {"mix",
     [](const VectorFunctions& functions) {
       const std::vector<float> weights(37, 0.5f);
       std::vector<float> x = SomeNumbers(8.0f);
       functions.mix(weights.data(), x.size(), kCacheTerms, x.data());
       return BitsOf(x);
     },
     [] {
       const std::vector<float> weights(37, 0.5f);
       std::vector<float> x = SomeNumbers(8.0f);
       ref::MixTokens(weights.data(), x.size(), kCacheTerms, x.data());
       return BitsOf(x);
     }},
    {"sign_place",
     [](const VectorFunctions& functions) {
       uint64_t places = 0;
       for (size_t entry = 0; entry < 64; ++entry) {
         places |= uint64_t{1} << functions.sign_place(entry);
       }
       return Bits{static_cast<uint32_t>(places), static_cast<uint32_t>(places >> 32)};
     },
     [] {
       return Bits{UINT32_MAX, UINT32_MAX};
     }},
    {"read_lines",
     [](const VectorFunctions& functions) {
       const Lines lines = SomeLines();
       return Halves(
           functions.read_lines(reinterpret_cast<const std::byte*>(lines.values), kReadLines));
     },
     [] {
       const Lines lines = SomeLines();
       return Halves(std::reduce(std::begin(lines.values), std::end(lines.values), uint64_t{0},
                                 std::bit_xor<>()));
     }},
};

}  // namespace kinglet::cpu

#endif  // KINGLET_TESTS_KERNELS_CPU_DIRECT_CASES_H_
