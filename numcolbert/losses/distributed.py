"""Sums, candidates and gradients across processes."""

from __future__ import annotations

import torch
import torch.distributed as dist
from pylate.utils import all_gather, all_gather_with_gradients
from torch import Tensor, nn

__all__ = ["GradientSynchronizer", "gather", "global_mean", "is_distributed", "pad_width"]


def is_distributed() -> bool:
    """Tell whether several processes train together."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def pad_width(tensor: Tensor, dim: int = 1) -> Tensor:
    """Pad a dimension with zeros to the widest of all processes, since gathering needs equal shapes.

    Parameters
    ----------
    tensor
        Any tensor.
    dim
        The dimension that may differ.

    Examples
    --------
    >>> pad_width(torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    if not is_distributed():
        return tensor
    width = torch.tensor(tensor.shape[dim], device=tensor.device)
    dist.all_reduce(width, op=dist.ReduceOp.MAX)
    missing = int(width) - tensor.shape[dim]
    if missing == 0:
        return tensor
    shape = list(tensor.shape)
    shape[dim] = missing
    return torch.cat([tensor, tensor.new_zeros(shape)], dim=dim)


def gather(tensor: Tensor) -> Tensor:
    """Concatenate a tensor of all processes along the first dimension, with gradients where it has any.

    Parameters
    ----------
    tensor
        Equally shaped on every process.
    """
    if not is_distributed():
        return tensor
    if tensor.requires_grad:
        return torch.cat(tuple(all_gather_with_gradients(tensor)))
    return torch.cat(tuple(all_gather(tensor.contiguous())))


def global_mean(values: Tensor, mask: Tensor, across_devices: bool) -> Tensor:
    """Average values under a mask so that the mean over processes is the mean over the whole batch.

    Every process divides by the mean count of all processes: the average of the results (what DDP makes of the
    gradients) is then exactly the masked mean a single process would compute.

    Parameters
    ----------
    values, mask
        Equally shaped.
    across_devices
        Whether to count over all processes.

    Examples
    --------
    >>> global_mean(torch.tensor([1.0, 5.0]), torch.tensor([True, False]), across_devices=True)
    tensor(1.)
    """
    count = mask.sum().to(values.dtype)
    if across_devices and is_distributed():
        dist.all_reduce(count)
        count = count / dist.get_world_size()
    # torch.where, not a product: a masked value may be infinite.
    total = torch.where(mask, values, torch.zeros_like(values)).sum()
    return total / torch.where(count > 0, count, torch.ones_like(count))


class GradientSynchronizer:
    """Keep parameters equal on all processes that DDP does not wrap, such as heads living in a loss.

    Parameters are broadcast from the first process once; after every backward pass, each gradient is averaged over
    all processes, which composes with gradient accumulation.

    Parameters
    ----------
    module
        The module whose parameters are to be kept equal.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.started = False

    def start(self) -> None:
        """Broadcast the parameters and hook their gradients; does nothing on one process or the second time."""
        if self.started or not is_distributed():
            return
        self.started = True
        for parameter in self.module.parameters():
            dist.broadcast(parameter.data, src=0)
            parameter.register_post_accumulate_grad_hook(self._average)

    @staticmethod
    def _average(parameter: Tensor) -> None:
        gradient = parameter.grad
        if gradient is not None:
            dist.all_reduce(gradient)
            gradient /= dist.get_world_size()
