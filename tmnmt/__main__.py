"""The program `tmnmt`, and `python -m tmnmt` for torchrun: signals first, for the imports take a
while."""

from tmnmt.interrupts import install


def main() -> None:
    install()
    from tmnmt.cli import main as run

    run()


if __name__ == "__main__":  # a spawned process imports this module again
    main()
