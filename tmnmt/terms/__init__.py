"""Terms: how they are read from files, found in a source, and looked for in a translation."""
