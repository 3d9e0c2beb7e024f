"""Two documents become a memory: which sentences of one are translations of which of the other.

    align.align(sources, targets, translations)    sentences -> pairs, each with its probability
    documents.read_sentences(path, language)       the sentences of any file that is read
    documents.pairs_of_folders(first, second)      files of two folders that belong together
    folder.AlignedMemory(path, ...)                aligned documents that become a memory, kept by
                                                   their content

`vectors` says how alike sentences are, `paths` finds the likeliest way through both documents. The
command is `tmnmt align`."""
