// Objects of a pickle that stand for plain values: NumPy's scalars and arrays, OmegaConf's
// configurations, subclasses of dict and list, enumerations, paths, classes with slots. Each
// becomes the number, text, list, dict or tensor that it stands for. No class of the pickle is
// called.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_PLAIN_VALUES_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_PLAIN_VALUES_H_

#include "converters/checkpoints/pickle.h"
#include "converters/checkpoints/pickle_builder.h"
#include "kinglet/status.h"

namespace kinglet {

// Changes `node`, which a call has just made, or which has just got its state. Of an OmegaConf
// configuration, references ${a.b} become the values that they name. Errors:
// KINGLET_INVALID_CHECKPOINT for an array that has not the bytes of its shape; those of
// PickleBuilder::Charge.
Status MakePlain(PickleNode* node, PickleBuilder* build);

// Changes `node` in a complete graph: an object may get items or a state until then.
Status MakePlainAtEnd(PickleNode* node, PickleBuilder* build);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_PLAIN_VALUES_H_
