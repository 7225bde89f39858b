"""World-model agents; each learns from batches of replayed steps and knows nothing of replay."""

import os

# Large tensors in pages of 2 MB, where Linux has them: an update walks through gigabytes, and
# finding their 4 KB pages takes time. PyTorch reads this when it makes its first tensor.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
