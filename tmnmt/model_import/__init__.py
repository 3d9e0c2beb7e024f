"""Models that were made elsewhere: those that Mozilla publishes, Marian's, and two models put one
after another. Each becomes a model folder, and nothing else reads these modules."""
