"""Files that translators work on: what is to be translated in them, and the same files with it."""
