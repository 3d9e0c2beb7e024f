"""One thread for torch in every test and every process a test starts, set before torch is imported.

The tests' tensors are tiny: on a busy machine two threads wait for each other, and some tests take twenty times longer.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
