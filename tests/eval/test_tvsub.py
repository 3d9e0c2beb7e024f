"""The preparation of TVsub: what is published, and what is read of it."""

from __future__ import annotations

import gzip
import lzma
import subprocess
import sys
from pathlib import Path

from places import ROOT

SCRIPT = ROOT / "eval" / "tvsub.py"
SGML = """<REFSET setid="{kind}" srclang="zh" trglang="en">
<DOC docid="e1" sysid="ref0">
<seg id=1>don &apos;t say &quot; no &quot; .</seg>
<seg id=2>a &amp;lt; b</seg>
</DOC>
<DOC docid="e2" sysid="ref0">
<seg id=1>&#91; music &#93; &gt;</seg>
</DOC>
</REFSET>
"""


def test_entities_become_characters_on_both_sides_of_train_dev_and_test(tmp_path: Path) -> None:
    data = tmp_path / "tvsub"
    data.mkdir()
    train = "0\t0\t&quot; \u597d &quot;\tit &apos;s fine\n7\t1\t\u662f\tyes\n"
    (data / "train.tok.tsv.xz").write_bytes(lzma.compress(train.encode()))
    for kind in ("dev", "test"):
        (data / f"{kind}_src").write_text("\u4e0d &apos;\na &amp; b\n\u4e50\n", encoding="utf-8")
        (data / f"{kind}_trg.sgm").write_text(SGML.format(kind=kind), encoding="utf-8")
    out = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path, out], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[0] == "train: 2 segments"
    assert "dev: 3 segments, 2 documents, references: 1" in done.stdout
    assert gzip.decompress((out / "train.tsv.gz").read_bytes()).decode() == (
        '0\t0\t" \u597d "\tit \'s fine\n7\t1\t\u662f\tyes\n'
    )
    for kind in ("dev", "test"):
        assert (out / f"{kind}.tsv").read_text(encoding="utf-8").splitlines() == [
            f"{kind}.e1\t0\t\u4e0d '\tdon 't say \" no \" .",
            f"{kind}.e1\t1\ta & b\ta &lt; b",
            f"{kind}.e2\t2\t\u4e50\t[ music ] >",
        ]
        assert (out / f"{kind}.zh").read_text(encoding="utf-8") == "\u4e0d '\na & b\n\n\u4e50\n"
        assert (out / f"{kind}.en.0").read_text(
            encoding="utf-8"
        ) == 'don \'t say " no " .\na &lt; b\n\n[ music ] >\n'
