// A checkpoint as blocks and float32 tensors, before any pass.
#ifndef KINGLET_CONVERTERS_NETWORK_LOADED_MODEL_H_
#define KINGLET_CONVERTERS_NETWORK_LOADED_MODEL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "converters/network/change.h"
#include "converters/network/tensor_ref.h"
#include "converters/passes/magnitudes.h"
#include "converters/passes/quantise.h"
#include "format/writer.h"
#include "kinglet/status.h"

namespace kinglet {

struct LoadedModel {
  ModelDraft draft;
  // Reads the values of a tensor of the draft, which has only name and shape, from the checkpoint.
  // Computed tensors stay as they are. Owns what it needs. Empty: the draft has all values.
  std::function<Status(TensorId id, EncodedTensor& tensor)> read;
  // Where a tensor's values come from: the parts, one after the other, changed. Without parts and
  // change, the draft has them.
  struct Origin {
    std::vector<TensorRef> parts;
    Change change;
  };
  // Names that the checkpoint lacks, of tensors that the framework ties with others of it.
  std::vector<std::string> shared = {};
  std::vector<Origin> origins;  // by tensor id, those that Network added
  // The tensors that the framework quantises: matrices with a scale per row, vectors with one
  // divisor.
  std::vector<TensorId> quantisable;
  std::vector<TensorId> prunable;  // the tensors that the framework prunes
  // Set if the checkpoint is quantised already: its weights are integers of this many bits times
  // scales, and it has activation quantisers.
  std::optional<int> bits;
  // Tensors of the draft that a recipe's tables replace (CheckpointTensor::made): the table's name,
  // and the table's row that is the tensor's first.
  struct StandIn {
    TensorId id;
    std::string table;
    uint64_t first_row;
  };
  std::vector<StandIn> stand_ins;
  // How the model is calibrated once its tensors are packed. A recipe's passes set it.
  struct Calibration {
    std::string path;  // as ReadCalibration's; empty with ranges
    RangeRule rule;
    std::map<std::string, float> ranges = {};  // CalibrationInput::ranges
  };
  std::optional<Calibration> calibration;
  // Float32 tensors that become integers when the calibration's text was run in floats. A recipe's
  // passes set it.
  struct RoundedWithFeedback {
    int bits;
    ScaleBy scale_by;
  };
  std::map<TensorId, RoundedWithFeedback> rounded_with_feedback;
  std::vector<std::string> notes;  // for the user
};

// Reads the tensors of the draft that are not read yet. Errors: those of LoadedModel::read.
Status ReadTensors(LoadedModel& model);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_NETWORK_LOADED_MODEL_H_
