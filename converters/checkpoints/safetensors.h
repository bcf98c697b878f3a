// The safetensors container, specified in the README of huggingface/safetensors: the header's
// length (eight bytes), a JSON header with every tensor's type, shape and offsets, and the tensors'
// bytes without gaps.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_SAFETENSORS_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_SAFETENSORS_H_

#include <memory>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "format/input_file.h"
#include "kinglet/status.h"

namespace kinglet {

// Whether the file starts with a header's length and an opening brace.
bool LooksLikeSafetensors(const InputFile& file);

// The file's tensors, which keep it open; values are read on demand, and those of another type than
// F64 F32 F16 BF16 F8_* I64 I32 I16 I8 U64 U32 U16 U8 BOOL are refused then. Tied tensors that the
// library's save_model stores once have all their names. Refuses headers over 100 MB, tensors that
// overlap, leave gaps or have fewer or more bytes than their shape needs, and repeated names.
// Errors: KINGLET_INVALID_CHECKPOINT, KINGLET_IO_ERROR.
Result<CheckpointTensors> SafetensorsTensors(const std::shared_ptr<const InputFile>& file);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_SAFETENSORS_H_
