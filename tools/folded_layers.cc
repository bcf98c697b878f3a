#include "tools/folded_layers.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace kinglet {
namespace {

// A name around its first number: "layers." 3 ".qkv".
struct LayerName {
  std::string_view before, number, after;  // `number` is empty in a name without one
};

LayerName Split(std::string_view name) {
  for (size_t at = 0; at < name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    const std::string_view part = name.substr(at, end - at);
    if (!part.empty() && part.find_first_not_of("0123456789") == part.npos) {
      return {name.substr(0, at), part, name.substr(end)};
    }
    at = end + 1;
  }
  return {name, {}, {}};
}

// One layer's neighbours in the list, [begin, end).
struct Layer {
  size_t begin, end;
};

}  // namespace

std::vector<FoldedRow> FoldLayers(std::span<const std::string> names,
                                  const std::function<bool(size_t a, size_t b)>& equal) {
  std::vector<LayerName> split;
  for (const std::string& name : names) split.push_back(Split(name));
  std::vector<Layer> layers;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool continues = i > 0 && !split[i].number.empty() &&
                           split[i].before == split[i - 1].before &&
                           split[i].number == split[i - 1].number;
    if (continues) {
      ++layers.back().end;
    } else {
      layers.push_back({i, i + 1});
    }
  }
  const auto are_equal = [&](const Layer& a, const Layer& b) {
    if (split[a.begin].number.empty() || a.end - a.begin != b.end - b.begin) return false;
    for (size_t i = 0; i < a.end - a.begin; ++i) {
      const LayerName &x = split[a.begin + i], &y = split[b.begin + i];
      if (x.before != y.before || x.after != y.after || !equal(a.begin + i, b.begin + i)) {
        return false;
      }
    }
    return true;
  };
  std::vector<FoldedRow> rows;
  for (size_t first = 0, last = 1; first < layers.size(); first = last++) {
    while (last < layers.size() && are_equal(layers[first], layers[last])) ++last;
    for (size_t part = 0; part < layers[first].end - layers[first].begin; ++part) {
      FoldedRow row{names[layers[first].begin + part], {}};
      for (size_t i = first; i < last; ++i) row.members.push_back(layers[i].begin + part);
      if (last - first > 1) {
        const LayerName& name = split[row.members[0]];
        row.name = std::string(name.before) + "*" + std::string(name.after);
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::string FoldedNote(std::span<const FoldedRow> rows) {
  std::string text, before;
  for (const FoldedRow& row : rows) {
    if (row.members.size() == 1) continue;
    const std::string kind = row.name.substr(0, row.name.find('*') + 1);
    if (kind == before) continue;
    before = kind;
    text += kind + " x " + std::to_string(row.members.size()) +
            ": equal layers, each row is their sum (--all lists each)\n";
  }
  return text;
}

}  // namespace kinglet
