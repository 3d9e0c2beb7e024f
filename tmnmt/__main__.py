"""The program `tmnmt`, and `python -m tmnmt` for torchrun: signals first, for the imports take a
while."""

import gc

from tmnmt.interrupts import install

NEW_OBJECTS = 50_000  # before garbage is looked for; `import torch` alone makes 280,000 that stay


def main() -> None:
    install()
    gc.set_threshold(NEW_OBJECTS, 20, 20)
    from tmnmt.cli import main as run

    run()


if __name__ == "__main__":  # a spawned process imports this module again
    main()
