"""Documents on which several people work: what stands in their segments, and who changed it."""
