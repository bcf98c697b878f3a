"""Knowledge distillation (Hinton et al. 2015; MicroNet has 30 soft labels a token): a teacher's most probable words, as
`kinglet predict --top K --out SHARDS.npz` writes them (docs/COMMAND.md)."""
import numpy
import torch


class SoftLabels:
    """Of each token of a text the K words that the teacher finds most probable, and their log-probabilities."""

    def __init__(self, tokens: int, top: int):
        self.ids = numpy.zeros([tokens, top], numpy.int32)
        self.log_probabilities = numpy.full([tokens, top], -numpy.inf, numpy.float16)

    def at(self, positions):
        """positions [...] -> ids, log-probabilities [..., K]; where nothing is known all are minus infinity."""
        ids, values = self.ids[positions], self.log_probabilities[positions]
        return torch.from_numpy(ids).long(), torch.from_numpy(values).float()


def read_shards(paths: list, tokens: int) -> SoftLabels:
    """Files of rows in any order: `position` [rows], the index in the text of the token that is predicted; `id` and
    `logprob` [rows, K]. A position of `tokens` or more, such as the one after the text, is omitted."""
    with numpy.load(paths[0]) as shard:
        labels = SoftLabels(tokens, shard["id"].shape[1])
    for path in paths:
        with numpy.load(path) as shard:
            positions, ids, values = shard["position"], shard["id"], shard["logprob"]
        inside = positions < tokens
        labels.ids[positions[inside]], labels.log_probabilities[positions[inside]] = ids[inside], values[inside]
    return labels


def soft_loss(log_p, ids, log_probabilities):
    """The mean of -sum p log q over the teacher's words: p the teacher's probabilities, q the student's."""
    return -(log_probabilities.exp() * log_p.gather(-1, ids)).sum(-1).mean()
