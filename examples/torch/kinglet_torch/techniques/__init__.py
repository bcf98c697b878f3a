"""Techniques that compress the input embedding and the output softmax of a language model.

An embedding maps ids [...] to vectors [..., width]. A softmax maps hidden states [..., width] to the log-probabilities
[..., words] of all words. Arguments of a constructor are the keys of a checkpoint's config; names of parameters and
buffers are its tensors. README.md of the parent folder has both as tables.
"""
