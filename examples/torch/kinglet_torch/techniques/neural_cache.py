"""Neural cache (Grave, Joulin & Usunier 2017, "Improving Neural Language Models with a Continuous Cache"), as the
MicroNet of Yan et al. 2020 uses it: at evaluation, from the first pair on."""
import torch


class NeuralCache:
    """The last `capacity` pairs of a hidden state and the word that followed it.
    p = (1 - lambda) softmax + lambda cache; the share of a pair is softmax(theta <its hidden state, h>). An empty cache
    has no shares: the first prediction loses the mass lambda."""

    def __init__(self, capacity: int, theta: float, share: float):
        self.capacity, self.theta, self.share = capacity, theta, share
        self.hidden: list = []
        self.words: list = []

    def mixed(self, log_probabilities, hidden):
        """[words] -> [words]: the log-probabilities of the mixture."""
        p = (1 - self.share) * log_probabilities.exp()
        if self.words:
            shares = torch.softmax(self.theta * (torch.stack(self.hidden) @ hidden), 0)
            p = p.index_add(0, torch.tensor(self.words), self.share * shares)
        return p.log()

    def add(self, hidden, word: int):
        self.hidden = (self.hidden + [hidden])[-self.capacity:]
        self.words = (self.words + [word])[-self.capacity:]
