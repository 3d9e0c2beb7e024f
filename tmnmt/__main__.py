"""`python -m tmnmt`, for torchrun and for those without the console script."""

from tmnmt.cli import main

if __name__ == "__main__":  # a spawned process imports this module again
    main()
