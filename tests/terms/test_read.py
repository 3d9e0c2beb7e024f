"""Term files are read into terms, or refused in one line that says where and why."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest

from tmnmt.errors import FormatError
from tmnmt.terms import term
from tmnmt.terms.reading import read_terms
from tmnmt.terms.term import Term

TBX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE martif SYSTEM "TBXcoreStructV02.dtd">
<martif type="TBX" xml:lang="en"><text><body>
<termEntry id="1">
 <note>of a river</note>
 <langSet xml:lang="en-GB"><tig><term>bank</term></tig><tig><term>shore</term></tig></langSet>
 <langSet xml:lang="fr"><tig><term>rive</term></tig>
  <ntig><termGrp><term>banque</term>
   <termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote></termGrp></ntig>
 </langSet>
</termEntry>
<termEntry id="2"><langSet xml:lang="de"><tig><term>Ufer</term></tig></langSet></termEntry>
</body></text></martif>
"""
TBX_3 = """<tbx type="TBX-Basic" style="dct" xml:lang="en" xmlns="urn:iso:std:iso:30042:ed-2"
 xmlns:min="http://www.tbxinfo.net/ns/min"><text><body>
<conceptEntry id="c1"><langSec xml:lang="en"><termSec><term>bank</term></termSec></langSec>
<langSec xml:lang="fr"><termSec><term>rive</term></termSec><termSec><term>banque</term>
<min:administrativeStatus>supersededTerm-admn-sts</min:administrativeStatus></termSec></langSec>
</conceptEntry></body></text></tbx>
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def read(folder: Path, name: str, text: str) -> list[Term]:
    return read_terms(written(folder, name, text), "en", "fr")


def test_tbx_of_2008_gives_every_source_form_and_forbids_what_is_deprecated(
    tmp_path: Path,
) -> None:
    terms = read(tmp_path, "t.tbx", TBX)
    assert terms == [
        Term(source, ("rive",), ("banque",), note="of a river") for source in ("bank", "shore")
    ]


def test_tbx_of_2019_in_its_style_with_prefixes(tmp_path: Path) -> None:
    assert read(tmp_path, "t.xml", TBX_3) == [Term("bank", ("rive",), ("banque",))]


def test_tables_with_a_header_name_their_columns(tmp_path: Path) -> None:
    wanted = [
        Term("bank", ("rive", "berge"), ("banque",), note="river"),
        Term("IT", ("informatique",), case=True),
    ]
    rows = (
        "source,target,forbidden,note,case",
        "bank,rive;berge,banque,river,",
        'IT,"informatique",,,yes',
    )
    assert read(tmp_path, "t.csv", "\n".join(rows)) == wanted
    assert read(tmp_path, "t.tsv", "\n".join(rows).replace(",", "\t").replace('"', "")) == wanted
    assert read(tmp_path, "u.csv", "en;fr\nbank;rive\r\n") == [Term("bank", ("rive",))]


def test_rows_of_one_source_are_one_term(tmp_path: Path) -> None:
    text = "source\ttarget\tforbidden\nbank\trive\t\nbank\tberge;banque\t\nbank\t\tbanque\n"
    assert read(tmp_path, "t.tsv", text) == [Term("bank", ("rive", "berge"), ("banque",))]


def test_a_glossary_of_omegat_has_no_header(tmp_path: Path) -> None:
    text = "\ufeff# Glossary in tab-separated format\nbank\trive\tof a river\nsea\tmer\n"
    assert read(tmp_path, "glossary.txt", text) == [
        Term("bank", ("rive",), note="of a river"),
        Term("sea", ("mer",)),
    ]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("t.tsv", "bank\trive\tof a river\n", "line 1: no header ('bank?rive?of a river')"),
        ("t.csv", "source,target\nbank,rive,berge\n", "line 2: 3 columns where the header has 2"),
        ("t.csv", 'source,target\na,b\nbank,"rive\n', "line 3: no row of CSV"),
        ("t.txt", "bank\trive\n\nbank rive\n", "line 3: 1 columns"),
        ("t.txt", "bank\trive\n\ufeffsea\tmer\n", "line 2: a byte-order mark in the middle"),
        ("t.tsv", "source\ttarget\n\trive\n", "line 2: no source term"),
        ("t.tsv", "source\ttarget\nbank\t;\n", "line 2: neither a target nor a forbidden one"),
        ("t.tsv", "source\ttarget\tcase\nbank\trive\tmaybe\n", "line 2: case is 'maybe'"),
        ("t.tsv", f"source\ttarget\nbank\t{'r' * 501}\n", "line 2: a term of 501 characters"),
        ("t.tsv", "source\ttarget\n", "no terms in it"),
        ("t.tsv", f"source\ttarget\n{'a' * 100_001}\tb\n", "line 2: longer than 100,000"),
        ("t.tbx", TBX.replace('"en-GB"', '"es"'), "no terms from en to fr; it has de, es, fr"),
        ("t.tbx", TBX.replace("rive", "ri&ve;"), "line 4: an entry that is no XML"),
        ("t.tbx", TBX.replace("</langSet>", ""), "line 4: an entry that is no XML"),
        ("t.tbx", TBX.replace("shore", "\ufeffshore"), "line 4: a byte-order mark"),
        ("t.tbx", TBX[: TBX.index("Ufer")], "line 12: termEntry: the file ends inside it"),
        ("t.tmx", "<tmx/>", "XML of root tmx; allowed: TBX"),
        ("t.csv", "", "the file is empty"),
    ],
)
def test_what_is_no_term_file_is_told_with_its_place(
    tmp_path: Path, name: str, text: str, told: str
) -> None:
    with pytest.raises(FormatError) as error:
        read(tmp_path, name, text)
    assert told in str(error.value) and name in str(error.value)
    assert "\n" not in str(error.value)


def test_entities_of_a_file_are_not_read(tmp_path: Path) -> None:
    """Neither those that grow without end nor files of the machine."""
    secret = written(tmp_path, "secret", "hidden")
    for entity in ('"lol">', f'SYSTEM "{secret}">'):
        text = TBX.replace('SYSTEM "TBXcoreStructV02.dtd">', f"[<!ENTITY e {entity}]>").replace(
            "rive", "&e;"
        )
        with pytest.raises(FormatError, match="Entity 'e' not defined"):
            read(tmp_path, "t.tbx", text)


def test_bytes_of_another_encoding_are_told(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_bytes(b"sea\tmer\nsummer\t\xe9t\xe9\n")
    with pytest.raises(FormatError, match="line 2: cannot be decoded"):
        read_terms(path, "en", "fr")


def test_too_many_terms_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term, "MOST_TERMS", 2)
    with pytest.raises(FormatError, match="more than 2 terms"):
        read(tmp_path, "t.txt", "a\tb\nc\td\ne\tf\n")


def test_a_file_that_is_too_large_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmnmt.terms.reading.MOST_BYTES", 3)
    with pytest.raises(FormatError, match="4 bytes; 3 at most are read"):
        read(tmp_path, "t.txt", "a\tb\n")


def test_packed_files_of_terms_are_read(tmp_path: Path) -> None:
    plain = read_terms(written(tmp_path, "t.tbx", TBX), "en", "fr")
    (tmp_path / "t.tbx.gz").write_bytes(gzip.compress(TBX.encode()))
    assert read_terms(tmp_path / "t.tbx.gz", "en", "fr") == plain
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("read me.pdf", "%PDF")
        archive.writestr("a/t.tbx", TBX)
        archive.writestr("b/t.csv", "en,fr\nweir,barrage\n")
    terms = read_terms(tmp_path / "t.zip", "en", "fr")
    assert terms[:-1] == plain and terms[-1].targets == ("barrage",)
    with zipfile.ZipFile(tmp_path / "none.zip", "w") as archive:
        archive.writestr("read me.pdf", "%PDF")
    with pytest.raises(FormatError, match=r"none.zip: no file of terms in it"):
        read_terms(tmp_path / "none.zip", "en", "fr")
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr("t.csv", "one,two\n")
    with pytest.raises(FormatError, match=r"bad.zip: t.csv, line 1: no header"):
        read_terms(tmp_path / "bad.zip", "en", "fr")
