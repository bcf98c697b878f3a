#include "tests/fuzz/targets.h"

#include <array>

#include "tests/fuzz/archive_model.h"
#include "tests/fuzz/repair.h"

namespace kinglet::fuzz {
namespace {

constexpr std::array kTargets = {
    Target{"model_file", RunModelFile, RepairModelFile},
    Target{"torch_zip", RunTorchZip, nullptr},
    Target{"pickle", RunPickle, nullptr},
    Target{"safetensors", RunSafetensors, nullptr},
    Target{"numpy", RunNumpy, nullptr},
    Target{"state", RunState, RepairState},
    Target{"recipe", RunRecipe, nullptr},
    Target{"texts", RunTexts, nullptr},
    Target{"calls", RunCalls, nullptr},
    Target{"archive", RunArchive, RepairArchive},
    Target{"differential", RunDifferential, nullptr},
};

}  // namespace

std::span<const Target> Targets() { return kTargets; }

const Target* FindTarget(std::string_view name) {
  for (const Target& target : kTargets) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

void Expect(bool holds, const std::string& what) {
  if (!holds) throw Finding(what);
}

void ExpectOneLine(const Status& status) {
  if (status.ok()) return;
  Expect(!status.message().empty(), "expected a message, found none");
  for (const char character : status.message()) {
    const auto byte = static_cast<unsigned char>(character);
    Expect(byte >= 0x20 && byte != 0x7F, "expected one line, found \"" + status.message() + "\"");
  }
}

}  // namespace kinglet::fuzz
