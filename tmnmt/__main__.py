"""The program `tmnmt`, and `python -m tmnmt` for torchrun: signals first, for the imports take a
while."""

import gc
import sys

from tmnmt.interrupts import install

NEW_OBJECTS = 50_000  # before garbage is looked for; `import torch` alone makes 280,000 that stay
TRITON = "triton._C.libtriton"


def main() -> None:
    install()
    gc.set_threshold(NEW_OBJECTS, 20, 20)
    try:
        from tmnmt.cli import main as run

        run()
    finally:
        # Else Python looks through all that torch has made once more before it leaves (0.5 s). What
        # trains imports triton as well, which complains of every object that is not looked at.
        if TRITON not in sys.modules:
            gc.freeze()


if __name__ == "__main__":  # a spawned process imports this module again
    main()
