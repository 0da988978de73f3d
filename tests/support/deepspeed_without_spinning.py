"""Import this in ranks that share processors: it keeps DeepSpeed from exchanging tensors in shared memory.

There, a rank that waits spins, and takes the processor from the rank that it waits for.
"""

import deepspeed

deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
