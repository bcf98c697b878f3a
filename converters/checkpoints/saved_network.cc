#include "converters/checkpoints/saved_network.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "converters/checkpoints/quoted.h"

namespace kinglet {
namespace {

using std::string_view_literals::operator""sv;

// The entries under which training scripts save a network.
constexpr std::array kNetworkKeys = {"net"sv,
                                     "model"sv,
                                     "state_dict"sv,
                                     "model_state"sv,
                                     "model_state_dict"sv,
                                     "net_state_dict"sv,
                                     "network"sv,
                                     "module"sv};
// More wrappers than anyone uses; a hostile file can nest them without end.
constexpr int kMaxWrappers = 4;
constexpr size_t kMaxShownEntries = 8;
// How many entries of a dict are looked at for a message.
constexpr size_t kMaxSearchedEntries = 64;

bool IsTensorEntry(const std::pair<PickleNode*, PickleNode*>& entry) {
  return entry.first->As<std::string>() != nullptr && entry.second->As<PickleTensor>() != nullptr;
}

bool HasTensorEntry(const PickleNode& node) {
  const auto* dict = node.As<PickleDict>();
  return dict != nullptr && std::any_of(dict->items.begin(), dict->items.end(), IsTensorEntry);
}

// Whether FindNetwork would find tensors in the node.
bool HoldsNetwork(const PickleNode& node, int wrappers) {
  if (wrappers > kMaxWrappers) return false;
  if (IsModule(node) || HasTensorEntry(node)) return true;
  return std::any_of(kNetworkKeys.begin(), kNetworkKeys.end(), [&](std::string_view key) {
    const NodeRef inside = node.Find(key);
    return inside != nullptr && HoldsNetwork(*inside, wrappers + 1);
  });
}

// The dict that an object's __getstate__ made, if the network's state dict is in it; else nullptr.
NodeRef StateWithNetwork(const PickleNode& node) {
  const auto* object = node.As<PickleObject>();
  if (object == nullptr || object->state == nullptr) return nullptr;
  const NodeRef inside = object->state->Find("state_dict");
  return inside != nullptr && HasTensorEntry(*inside) ? object->state : nullptr;
}

// The text keys of a dict for which `wanted(value)` is true: "'a', 'b'"; empty if there are none.
std::string KeysOf(const PickleNode& node, bool (*wanted)(const PickleNode& value)) {
  const auto* dict = node.As<PickleDict>();
  if (dict == nullptr) return "";
  std::string text;
  size_t shown = 0, searched = 0;
  for (const auto& [key, value] : dict->items) {
    if (searched++ == kMaxSearchedEntries) return text + ", ...";
    const auto* name = key->As<std::string>();
    if (name == nullptr || !wanted(*value)) continue;
    if (shown++ == kMaxShownEntries) return text + ", ...";
    text += (text.empty() ? "" : ", ") + QuotedName(*name);
  }
  return text;
}

// Why a node is not a state dict: "list", "dict with list as 'layers'".
std::string DescribeOther(const PickleNode& node) {
  std::string text = node.Describe();
  const auto* object = node.As<PickleObject>();
  if (object != nullptr && object->class_name.starts_with("__torch__.")) {
    return "a TorchScript archive (save the model's state_dict() with torch.save)";
  }
  const auto* dict = node.As<PickleDict>();
  if (dict == nullptr) return text;
  const std::string networks =
      KeysOf(node, [](const PickleNode& value) { return HoldsNetwork(value, 1); });
  if (!networks.empty()) {
    return text + " with tensors in " + networks +
           " (a recipe's \"state_dict\" names the entry that is the network)";
  }
  if (node.Find("param_groups") != nullptr) {
    return "the state of an optimiser alone (give the file of the network's state dict)";
  }
  for (const auto& [key, value] : dict->items) {
    const auto* name = key->As<std::string>();
    if (name == nullptr) return text + " with a key of type " + key->Describe();
    if (value->As<PickleTensor>() == nullptr) {
      return text + " with " + value->Describe() + " as " + QuotedName(*name);
    }
  }
  return text;
}

class NetworkFinder {
 public:
  explicit NetworkFinder(const std::string& file) : file_(file) {}

  // Goes down the keys of `path`.
  Result<const PickleNode*> Follow(const PickleNode& root, std::span<const std::string> path) {
    const PickleNode* node = &root;
    for (const std::string& key : path) {
      const NodeRef inside = node->Find(key);
      if (inside == nullptr) {
        const std::string keys = KeysOf(*node, [](const PickleNode&) { return true; });
        return Refuse("an entry " + QuotedName(key) + ", as in the recipe's \"state_dict\"",
                      keys.empty() ? node->Describe() : "entries " + keys + " (name one of them)");
      }
      found_.path.push_back(key);
      node = inside;
    }
    return node;
  }

  Result<SavedNetwork> Find(const PickleNode& node, int wrappers) {
    if (IsModule(node)) return WholeModule(node, nullptr);
    if (const auto* list = node.As<PickleList>(); list != nullptr && !list->items.empty()) {
      const PickleNode& first = *list->items[0];
      if (IsModule(first)) {
        const bool criterion = list->items.size() > 1 && IsModule(*list->items[1]);
        return WholeModule(first, criterion ? list->items[1] : nullptr);
      }
      if (HoldsNetwork(first, wrappers + 1)) return Find(first, wrappers + 1);
    }
    if (const NodeRef state = StateWithNetwork(node)) return Find(*state, wrappers + 1);
    KINGLET_ASSIGN_OR_RETURN(const std::string_view key, NetworkKey(node, wrappers));
    if (!key.empty()) {
      found_.path.emplace_back(key);
      return Find(*node.Find(key), wrappers + 1);
    }
    return Dict(node);
  }

 private:
  Status Refuse(const std::string& expected, const std::string& found) const {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", file_, expected, found);
  }

  // The key of a dict under which a network is stored; empty if there is none.
  Result<std::string_view> NetworkKey(const PickleNode& node, int wrappers) const {
    std::string_view chosen;
    for (const std::string_view key : kNetworkKeys) {
      const NodeRef inside = node.Find(key);
      if (inside == nullptr || !HoldsNetwork(*inside, wrappers + 1)) continue;
      if (!chosen.empty()) {
        return Refuse("one network, or a recipe whose \"state_dict\" names its entry",
                      QuotedName(chosen) + " and " + QuotedName(key) +
                          " (a --recipe {\"state_dict\": \"" + std::string(key) +
                          "\"} reads that one)");
      }
      chosen = key;
    }
    return chosen;
  }

  Result<SavedNetwork> WholeModule(const PickleNode& network, const PickleNode* criterion) {
    found_.modules = {&network, criterion};
    KINGLET_ASSIGN_OR_RETURN(found_.tensors, ModuleTensors(network, ""));
    if (criterion != nullptr) {
      KINGLET_ASSIGN_OR_RETURN(const StateDict more, ModuleTensors(*criterion, "criterion."));
      found_.tensors.insert(found_.tensors.end(), more.begin(), more.end());
    }
    return std::move(found_);
  }

  // The tensors of a dict; the other entries are listed.
  Result<SavedNetwork> Dict(const PickleNode& node) {
    if (!HasTensorEntry(node)) {
      // A dict without any entry is a state dict without tensors.
      const auto* dict = node.As<PickleDict>();
      if (dict != nullptr && dict->items.empty()) return std::move(found_);
      return Refuse(
          "a state dict, alone or as 'net', 'model' or 'state_dict' of a dict, or a pickled "
          "module, "
          "alone or first in a list",
          DescribeOther(node));
    }
    PickleDict tensors;
    for (const auto& entry : node.As<PickleDict>()->items) {
      if (entry.second->As<PickleTensor>() != nullptr) {
        tensors.items.push_back(entry);
        continue;
      }
      const auto* name = entry.first->As<std::string>();
      const std::string unread = name == nullptr ? "" : UnreadTensorText(*entry.second);
      if (!unread.empty()) {
        if (found_.unread.empty()) found_.unread = QuotedName(*name) + " is " + unread;
        found_.unread_names.push_back(*name);
      }
      found_.others.push_back(
          (name == nullptr ? "a key of type " + entry.first->Describe() : QuotedName(*name)) +
          " (" + entry.second->Describe() + ")");
    }
    KINGLET_ASSIGN_OR_RETURN(found_.tensors, AsStateDict(PickleNode{std::move(tensors)}));
    return std::move(found_);
  }

  const std::string& file_;
  SavedNetwork found_;
};

}  // namespace

Result<SavedNetwork> FindNetwork(const PickleNode& root, std::span<const std::string> path,
                                 const std::string& file) {
  NetworkFinder finder(file);
  KINGLET_ASSIGN_OR_RETURN(const PickleNode* node, finder.Follow(root, path));
  return finder.Find(*node, 0);
}

}  // namespace kinglet
