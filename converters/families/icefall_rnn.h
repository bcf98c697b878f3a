// The family `icefall-rnn-lm`: an embedding, one nn.LSTM of several layers, and a softmax, perhaps
// tied.
// Framework: icefall, rnn_lm (RnnLmModel). Files: epoch-N.pt and others with the state dict as
// "model" next to the optimiser's state; pretrained.pt. Peculiarities: a sentence begins and ends
// with <sos/eos>, id 1 unless the file's "sos_id" and "eos_id" set others. tokens.txt of the
// language folder has the pieces.
#ifndef KINGLET_CONVERTERS_FAMILIES_ICEFALL_RNN_H_
#define KINGLET_CONVERTERS_FAMILIES_ICEFALL_RNN_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "converters/families/speech_stream.h"
#include "kinglet/status.h"

namespace kinglet {

// Options that icefall saves with the state dict and that no network depends on.
inline constexpr std::string_view kIcefallIgnored =
    "average_period base_lr batch_idx_train batch_size best_* blank_id cur_batch_idx cur_epoch "
    "dropout emb_dropout_rate env_info exp_dir grad_scaler inf_check keep_last_k lm_data "
    "lm_data_valid log_interval lr lr_* master_port max_sent_len model_avg num_epochs optimizer "
    "print_diagnostics reset_interval sampler save_every_n scheduler seed start_batch start_epoch "
    "tensorboard train_loss use_fp16 valid_interval valid_loss weight_decay world_size";
// Refuses options of the checkpoint that the table does not have; a state dict alone has none.
// Errors: KINGLET_UNSUPPORTED.
Status CheckIcefallOptions(const OptionTable& table, const FamilyInput& input);
// An integer that the checkpoint states.
std::optional<int64_t> IcefallInteger(const FamilyInput& input, std::string_view name);
inline constexpr const char* kToTieIcefall =
    "save a dict with the entry 'tie_weights': True and the state dict as 'model'";
// Whether the checkpoint states that both tables are one.
bool IcefallTies(const FamilyInput& input);

// The ids "sos_id" and "eos_id" that icefall saved; 1 where one is missing.
SentenceTokens IcefallSentenceTokens(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_ICEFALL_RNN_H_
