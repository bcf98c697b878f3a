"""The C interface, written by `python/interface.py` from the headers; a test compares.

Names are without "kinglet_". A function has the type of its result, then those of its arguments,
a letter each. p: an address (a handle, an array, a function); s: bytes; i: int32; u: uint32;
q: uint64; d: double; f: float; v: nothing.
"""

ABI_VERSION = 0  # KINGLET_ABI_VERSION

FUNCTIONS = dict(entry.split("=") for entry in """
coder_options_init=i:pu compressor_create=i:ppp decompressor_create=i:ppp coder_destroy=v:p
coder_add=i:ppq coder_finish=i:p coder_take=i:ppqp coder_cancel=i:p coder_damages=i:ppqp
beam_options_init=i:pu beam_create=i:ppp beam_destroy=v:p beam_begin=i:ppp beam_step=i:pppqp
beam_hold=i:ppq beam_drop=i:ppq beam_tokens=i:pqpqp beam_save=i:pqp beam_log_probability=i:pppqp
beam_log_probabilities=i:ppqpq beam_top_k=i:ppquppqp beam_stepped=i:pp beam_cancel=i:p
generation_options_init=i:pu generation_create=i:pppqp generation_destroy=v:p generation_next=i:pp
generation_ended=i:pup generation_ids=i:pupqp generation_text=i:pupqp abi_version=u:
version_string=s: status_name=s:i error_message=s: model_options_init=i:pu model_open=i:spp
model_open_memory=i:pqpp model_close=v:p model_vocabulary_size=i:pp model_start_token=i:pp
model_positions=i:pp model_has_words=i:pp model_token_text=i:pupqp model_token_texts=i:ppqpp
model_special_token=i:pup model_find_token=i:psqp model_spells=i:pp model_spell=i:psqp
model_source_vocabulary_size=i:pp model_longest_source=i:pp model_find_source_token=i:psqp
model_tokenize=i:psqppqp model_detokenize=i:ppqpqp model_digest=i:ppqp model_backend=i:ppqp
model_lane_bytes=i:pp model_state_bytes=i:pp session_options_init=i:pu session_create=i:ppp
session_destroy=v:p session_lanes=i:pp session_step=i:puu session_step_lanes=i:pppq
session_step_many=i:pupqpp session_encode=i:pupq session_reset=i:pu session_position=i:pup
session_fork=i:puu session_cancel=i:p model_text_segments=i:psqpqp model_pooled_width=i:pp
model_score_count=i:pp session_read=i:puppq session_look_at=i:puq session_pooled=i:pupq
session_scores=i:puqpq session_save=i:pup session_restore=i:pup state_destroy=v:p
state_position=i:pp state_equal=i:ppp state_hash=i:pp state_bytes=i:pp state_write=i:ppqp
state_read=i:ppqp embedding_create=i:pp embedding_destroy=v:p embedding_width=i:pp
embedding_classes=i:pp embedding_vectors=i:ppqpq embedding_classify=i:ppqppq ngrams_open=i:sp
ngrams_destroy=v:p ngrams_word=i:psqp ngrams_begin=i:pup ngrams_score=i:pppqpp
scorer_create=i:pddp scorer_destroy=v:p scorer_add_ngrams=i:ppud scorer_add_phrase=i:ppqd
session_log_probability=i:puup session_log_probabilities=i:pupq
session_log_probabilities_of=i:pupqp session_probabilities=i:pupq session_top_k=i:puuppqp
draw_options_init=i:pu session_draw=i:puqpp session_log_probability_lanes=i:pppqp
session_top_k_lanes=i:ppquppqp session_draw_lanes=i:pppqpp session_compute_lanes=i:ppq
session_last_work=i:pup session_score_tree=i:pppqpp typing_input_init=i:pu typing_create=i:pp
typing_destroy=v:p typing_set_blocked=i:pspq typing_set_allowed=i:pspq typing_prepare=i:ppu
typing_find=i:ppupupqppppppp typing_open_words=i:ps typing_learn=i:pss typing_unlearn=i:psp
typing_forget=i:p typing_list=i:pqpqpppp typing_set_weights=i:pdd session_top_p=i:pudppqp
session_rank=i:puup session_allowed_top_k=i:pupquppqp session_allowed_probability=i:pupqp
session_prefix_top_k=i:pusquppqp session_prefix_probability=i:pusqp
session_next_characters=i:pusqppqp session_text_probability=i:pusqqpp
session_text_next_characters=i:pusqqppqpp session_text_words=i:pusquuqpqppppp
session_interval=i:puupp session_word_at=i:puup
""".split())

FIELDS = dict(entry.split("=") for entry in """
coder_options.struct_size=u coder_options.threads=u coder_options.block_size=u
coder_options.fast=u coder_options.limit=q coder_options.salvage=u coder_options.reserved=u
beam_options.struct_size=u beam_options.empty_cache=u beam_options.lanes=u beam_options.threads=u
beam_options.state_bytes=q beam_options.scorer=p generation_options.struct_size=u
generation_options.streams=u generation_options.tokens=q generation_options.seed=q
generation_options.draw=p generation_options.stop=s generation_options.stop_length=q
generation_options.threads=u generation_options.reserved=u model_options.struct_size=u
model_options.reserved=u model_options.session_memory_limit=q model_options.backend=s
model_options.memory_limit=q model_options.log=p model_options.log_user=p
session_options.struct_size=u session_options.empty_cache=u session_options.lanes=u
session_options.threads=u draw_options.struct_size=u draw_options.top_k=u
draw_options.temperature=d draw_options.top_p=d draw_options.excluded=p
draw_options.excluded_count=q work.struct_size=u work.cache_computed=u work.clusters_opened=q
work.multiplications=d work.additions=d work.others=d work.cluster_count=q
typing_input.struct_size=u typing_input.touches=u typing_input.begins=p typing_input.characters=p
typing_input.costs=p typing_input.insertion=d typing_input.deletion=d typing_input.transposition=d
typing_input.substitution=d typing_input.missing_space=d typing_input.capitals=u
typing_input.finished=u typing_input.deadline=q typing_input.before=s
""".split())
