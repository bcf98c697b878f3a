"""A model's parameters by all their names, and a call with others in their place, on PyTorch 1.13 or newer."""
from torch import nn

try:
    from torch.func import functional_call
except ImportError:  # before PyTorch 2
    from torch.nn.utils.stateless import functional_call as _functional_call

    def functional_call(module, parameters, args, tie_weights):
        """torch.func.functional_call; the older one knows no ties."""
        assert not tie_weights
        return _functional_call(module, parameters, args if isinstance(args, tuple) else (args,))


def named_parameters(model: nn.Module) -> dict:
    """Tied parameters have an entry for each name."""
    return {f"{prefix}.{name}" if prefix else name: parameter
            for prefix, module in model.named_modules(remove_duplicate=False)
            for name, parameter in module.named_parameters(recurse=False)}
