#include "kernels/op_name.h"

#include <array>
#include <variant>

namespace kinglet {
namespace {

// In the order of Op's alternatives.
constexpr std::array<std::string_view, std::variant_size_v<Op>> kNames = {
    "CacheAppend",     "EmbedRow",       "LayerNorm",    "MatVec",
    "PartialProducts", "CodedSums",      "Quantise",     "Add",
    "AddScalar",       "AddPositionRow", "AddSinusoids", "AddQueryBias",
    "WindowAttention", "LogSumExp",      "CacheWeights", "LstmGates",
    "GruGates",        "RnnGates",       "QrnnGates",    "BagAppend",
    "BagFeatures",     "ScaleShiftRelu", "StoreRow",     "LoadRow",
    "SourceAttention"};
static_assert(!kNames.back().empty());

}  // namespace

std::string_view OpName(const Op& op) { return kNames[op.index()]; }

}  // namespace kinglet
