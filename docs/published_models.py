"""Makes docs/published-models.md of the list of models that this version knows.

python docs/published_models.py"""

from __future__ import annotations

from pathlib import Path

from tmnmt.model_import.published import ARCHITECTURES, SNAPSHOT, SNAPSHOT_DATE

PAGE = Path(__file__).with_name("published-models.md")
ENGLISH = "en"
HEAD = """# Models that Mozilla publishes

`tmnmt get-model` fetches them ([bring a model](own-model.md#1-bring-a-model)). The figures are
those that Mozilla states with each: BLEU and COMET on FLORES, a test set of general text. They
are taken from `metadata.json` of every model in its repository, on {date}, and were not measured
again. BLEU of different languages does not compare. What a model makes of *your* texts,
`tmnmt start` measures.

Of several architectures `get-model` takes the first of base-memory (about 32 MB), base (43 to 60)
and tiny (17) that is released; `--architecture` asks for another. Not every model here is
released: `tmnmt get-model --list` asks what there is now. This page was made by
`docs/published_models.py`.

| language | from English: architecture, BLEU, COMET | into English |
|---|---|---|
"""


def page() -> str:
    """The page's text."""
    rows = [line.split("\t") for line in SNAPSHOT.read_text(encoding="utf-8").splitlines()[1:]]
    cells: dict[str, tuple[list[list[str]], list[list[str]]]] = {}
    for row in rows:
        into_english = row[1] == ENGLISH
        language = row[0] if into_english else row[1]
        cells.setdefault(language, ([], []))[into_english].append(row)
    lines = [
        f"| {language} | {' | '.join(map(_cell, both))} |"
        for language, both in sorted(cells.items())
    ]
    return HEAD.format(date=SNAPSHOT_DATE) + "\n".join(lines) + "\n"


def _cell(rows: list[list[str]]) -> str:
    ordered = sorted(rows, key=lambda row: ARCHITECTURES.index(row[2]))
    return "; ".join(
        " ".join([row[2], *(figure for figure in row[4:] if figure)]) for row in ordered
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
