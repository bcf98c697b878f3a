// Where a torch.save file stores its network: training scripts wrap the state dict in dicts and
// lists of their own, together with steps, configurations and optimisers.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_SAVED_NETWORK_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_SAVED_NETWORK_H_

#include <span>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint.h"
#include "converters/checkpoints/pickle.h"
#include "converters/checkpoints/saved_module.h"
#include "kinglet/status.h"

namespace kinglet {

struct SavedNetwork {
  StateDict tensors;
  SavedModules modules;           // nullptr if a state dict was saved
  std::vector<std::string> path;  // the keys of the dicts that the network is in, outermost first
  // Entries of the state dict that are not tensors: "'epoch' (int)".
  std::vector<std::string> others;
  // The first of them that is a tensor in a form that is not read: "'w' is a sparse tensor (..)".
  std::string unread;
  std::vector<std::string> unread_names;  // of all such entries
};

// The network that `root` is or wraps. A network is
// - a state dict: a dict with a tensor in it, whose other entries are not read;
// - a pickled module, alone or first in a list; a second module in the list is its criterion, whose
//   names get the prefix "criterion.";
// - an object whose state is a dict with the state dict, as flair pickles its models;
// - one of these, first in a list or as an entry of a dict. Of a dict, only the entries
//   that training scripts use for a network ("model", "state_dict", ..) are looked at.
// With `path`, the network is below these keys. `file` names the file in errors:
// KINGLET_INVALID_CHECKPOINT, also where several entries of a dict hold networks. The nodes live as
// long as the checkpoint.
Result<SavedNetwork> FindNetwork(const PickleNode& root, std::span<const std::string> path,
                                 const std::string& file);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_SAVED_NETWORK_H_
