// Equal layers of a network in a list for people: `layers.0.qkv` to `layers.5.qkv` become one row.
#ifndef KINGLET_TOOLS_FOLDED_LAYERS_H_
#define KINGLET_TOOLS_FOLDED_LAYERS_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace kinglet {

struct FoldedRow {
  std::string name;             // "layers.*.qkv", or the name of the one member
  std::vector<size_t> members;  // indices in the list
};

// The rows of a list of dotted names, in their order. Neighbouring layers, whose names differ by
// one number, are folded if their parts have the same names and are pairwise `equal`.
std::vector<FoldedRow> FoldLayers(std::span<const std::string> names,
                                  const std::function<bool(size_t a, size_t b)>& equal);

// "layers.* stands for 6 equal layers: the row has their sum (--all lists each)\n" for each kind of
// folded layers, "" without any.
std::string FoldedNote(std::span<const FoldedRow> rows);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_FOLDED_LAYERS_H_
