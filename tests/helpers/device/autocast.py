"""Autocast of the pretended device: operations round, or do not, what a card's would.

PyTorch has the list for cards, and nothing for a device that it does not know. As there, a weight
that was rounded is kept until the outermost context ends or `torch.clear_autocast_cache` is called,
and has gradients also if it was first used where none are wanted.
"""

from contextlib import contextmanager

import torch
from torch.utils._pytree import tree_leaves, tree_map

KEY = torch._C.DispatchKey.AutocastPrivateUse1
ROUNDED = {
    "_convolution", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "convolution",
    "conv_transpose2d", "conv_transpose3d", "prelu", "addmm", "addmv", "addr", "matmul", "einsum",
    "mm", "mv", "linalg_vecdot", "linear", "addbmm", "baddbmm", "bmm", "chain_matmul",
    "linalg_multi_dot", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell", "lstm_cell", "gru_cell",
    "rnn_tanh_cell", "rnn_relu_cell",
}  # fmt: skip
WIDEST = {"addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "grid_sampler", "index_put",
          "tensordot", "scatter_add", "vdot"}  # fmt: skip
"""In the widest dtype that is given. All others on the list are made in float32."""
NOT_PRETENDED = {"cudnn_convolution", "cudnn_convolution_transpose", "binary_cross_entropy",
                 "scaled_dot_product_attention",
                 "_scaled_dot_product_flash_attention"}  # fmt: skip
_OTHERS = torch.library.Library("_", "IMPL")
_kept = {}  # weights and what they were rounded to, by the weights' ids


def install(library, device):
    """Let operations on the device heed `torch.autocast`; those that are not listed pass it by."""
    _OTHERS.fallback(torch.library.fallthrough_kernel, KEY.name)
    for name in torch._C._dispatch_get_all_op_names():
        base, _, overload = name.removeprefix("aten::").partition(".")
        listed = torch._C._dispatch_has_kernel_for_dispatch_key(name, "AutocastCUDA")
        if listed and name.startswith("aten::") and base not in NOT_PRETENDED:
            operation = getattr(getattr(torch.ops.aten, base), overload or "default")
            library.impl(operation, _kernel(operation, base, device), KEY.name)


def _kernel(operation, name, device):
    def kernel(*args, **kwargs):
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(KEY)):
            dtype = torch.float32
            if name in ROUNDED:
                dtype = torch.get_autocast_dtype(device)
            elif name in WIDEST:
                dtype = widest((args, kwargs), device)
            args, kwargs = cast((args, kwargs), dtype, device)
            return operation(*args, **kwargs)

    return kernel


def is_cast(value, device):
    there = isinstance(value, torch.Tensor) and value.device.type == device
    return there and value.is_floating_point() and value.dtype != torch.float64


def widest(values, device):
    rounded = torch.get_autocast_dtype(device)
    dtypes = {each.dtype for each in tree_leaves(values) if is_cast(each, device)}
    return rounded if dtypes <= {rounded} else torch.float32


def cast(values, dtype, device):
    return tree_map(lambda each: _cast(each, dtype) if is_cast(each, device) else each, values)


def _cast(tensor, dtype):
    if tensor.dtype == dtype:
        return tensor
    is_weight = tensor.is_leaf and tensor.requires_grad and not tensor._is_view()
    if not (is_weight and tensor.dtype == torch.float32 and torch.is_autocast_cache_enabled()):
        return tensor.to(dtype)
    if id(tensor) not in _kept:
        with torch.enable_grad():
            _kept[id(tensor)] = tensor, tensor.to(dtype)
    return _kept[id(tensor)][1]


@contextmanager
def kept_until_cleared():
    """Let PyTorch clear the weights that are kept here with its own."""
    clear = torch.clear_autocast_cache

    def clear_both():
        clear()
        _kept.clear()

    torch.clear_autocast_cache = clear_both
    try:
        yield
    finally:
        torch.clear_autocast_cache = clear
        _kept.clear()
