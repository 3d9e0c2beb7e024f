"""What is copied for its form, and what prose has, too."""

from __future__ import annotations

import csv
from random import Random
from time import process_time

import pytest
from places import ROOT

from tmnmt.checks import Check, checks
from tmnmt.codes.form import BY_FORM, EXACT, FORMS, Copied
from tmnmt.codes.placeholders import ALL_FINDERS, by_pattern, with_placeholders
from tmnmt.codes.record import Text

EVERY = Copied((*ALL_FINDERS, *BY_FORM.finders))
PROSE = [  # that no model or vocabulary needs to be told of
    "e.g. the U.S. and/or Mr. O'Brien at 10:30 a.m., i.e. his/her 20-day visit (3rd floor).",
    "GENERAL PROVISIONS",
    "PART IV - TAXES, SECTION 12(2)(b)",
    "Section 12a applies to the U.K. in the 1990s; 50% of $5.00 or $1,200.50, 5:1, 24/7, 2/3.",
    "Directive 2002/85/EC, No 1408/71, SOR/2006-124",
    "Ph.D. students (p. 12), No. 5, vs. others; co-operate, T-shirt, X-ray, e-mail.",
    "The word *not* is emphasised; see note*.",
    'a sentence.Next one begins; "quoted.", etc. ',
    "5 km/h, 20 °C, 30°, 100%, 5'10\", 1/2, 10-12, -5, +3, (a), a), iv)",
    "a: b, :), ;-), -- dash -- and --- more, the licence(s), user's, A.M.; a.m./p.m.",
    "The permit[1] is void [sic]; see the note[a] and list[12].",
    "-a list, wait...what, yes...No, Hello,world; the end.The start ____ and ...",
    "&Open file",
    "_Save As...",
]


def token_rows() -> list[dict[str, str]]:
    path = ROOT / "tests" / "data" / "kept-tokens.tsv"
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize(
    ("text", "copied"),
    [
        ("Use :func:`open`, ``None``, `x` or :c:func:`!a <b>`.", None),
        ("The :ref:`text <label>` of a :term:`file object`", None),
        ("#{n} %{n} @{n} {{> part}} {{{raw}}} {:>5} {!r} {-brand} {#if} {% if a %}", None),
        ("<%= x %> <?php echo 1 ?> [% name %] [[Page|text]] $t(a.b) $(NAME)", None),
        ("%<n>d %1 %L2 %name %NAME% %I64d %-5.2f %zu", None),
        ("&copy; &#39; &#x27;", None),
        ("a &lt;b&gt;it&lt;/b&gt; b", ["&lt;b&gt;it&lt;/b&gt;"]),
        ("$HOME $this->name @name @:common.key #fff !count ~p :name -v --keep=a .htaccess", None),
        (
            "_owner_ __name__ snake_case MAX_SIZE Class::method a->b open() os.path() C++ C# k=v",
            None,
        ),
        (
            "/etc/passwd ~/x ./run ..\\x C:\\dir\\a.txt src/main.py notes.txt example.org os.path",
            None,
        ),
        ("sys.argv[12] my_list[3][4] argv2[1] items[12].name rows[2][k]", None),
        (
            'Use the <meta name="referrer" content="no-referrer"> of a <file> in this.',
            ['<meta name="referrer" content="no-referrer">'],
        ),
        ("Set items[12] = 3 in this.", ["items[12]"]),
        ("arr[0] a[i] sys.argv[-1] args['name'] os.environ[\"HOME\"] row[0][j] x[max_size]", None),
        ("F1 H2O 0x1F A-12/B UTF-8 km2 4B COVID-19", None),
        ("camelCase iPhone McDonald getName()", None),
        ("192.168.0.1/24 v1.2.3.4 2026-01-31 2026-01-31T10:30:00Z §\u00a012 № 5 5′", None),
        ("Click &Open in this window to see the whole text.", ["&Open"]),
    ],
)
def test_what_is_copied(text: str, copied: list[str] | None) -> None:
    found = EVERY.tokens(text.replace("\u00a0", " "))
    if copied is not None:
        assert found == copied
        return
    left = text.replace("\u00a0", " ")
    for one in found:
        left = left.replace(one, "", 1)
    words = "Use or The of a in and this"
    assert set(left.replace(",", " ").replace(".", " ").split()) <= set(words.split()), left


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_not(text: str) -> None:
    assert EVERY.tokens(text) == []


def test_every_token_but_marks_of_prose_is_one() -> None:
    """The others stay by other ways: signs that are a vocabulary's matter, numbers, tags."""
    others = ["<0/>", "100%", "®", "m²", "• x", "—", "ΔT", "10:30", "<br/>"]
    missed = [
        row["token"]
        for row in token_rows()
        if row["token"].strip('"') not in EVERY.tokens(f"The permit of {row['token']} is valid.")
    ]
    assert missed == others


def test_a_pattern_of_the_user_goes_first_and_a_larger_thing_around_it_stays_whole() -> None:
    first = (by_pattern(r"[A-Z]{3}"), by_pattern(r"of the Act"))

    def found(text: str) -> list[str]:
        codes = with_placeholders(Text(text), EVERY.finders, first).codes
        return [code.markup for code in codes]

    assert found("ABC of the Act") == ["ABC", "of the Act"]
    assert found("https://x.org/ABC/d") == ["https://x.org/ABC/d"]
    assert found("_of the Act_") == ["of the Act"]  # in place of _of


def test_what_is_lost_is_told() -> None:
    src = Text("Set MAX_SIZE of a.txt to ``None`` and see :term:`file object`, H2O and {x}.")
    tgt = Text("Mettez MAX de a.txt à None et voyez :term:`objet fichier`, de l'eau et {y}.")
    lost = [check for check in checks(src, tgt) if check.name == "placeholders"]
    assert lost == [Check("placeholders", "lost: {x} MAX_SIZE ``None``, made: {y}")]
    assert not EXACT.tokens("H2O camelCase")  # which people may write otherwise


@pytest.mark.parametrize(
    "piece",
    [
        "_",
        "a_",
        "a.",
        "a/",
        ":a",
        "`",
        "``",
        "&a",
        "$a(",
        "{",
        "[[",
        "<%",
        "-",
        "--a",
        "1a",
        "aB",
        "1.",
        "a-1",
        "..\\",
        "/",
        "~/",
        "%<a",
        "&lt;b&gt;",
        "a::",
        "a->",
        "@:a",
        "a=",
    ],
)
def test_a_long_text_takes_no_long_time(piece: str) -> None:
    start = process_time()
    BY_FORM.tokens(piece * 5000)
    assert process_time() - start < 5


def test_signs_leave_no_match_out() -> None:
    """An expression finds the same with its signs and without them: in the tokens of the table, in
    prose, and in texts put together at random from parts of what is copied."""
    every = [row["token"] for row in token_rows()] + PROSE
    draw = Random(5)
    parts = [*"abX19 .-:/\\_`$%@#&{}[]()<>=!~|+§№′", "::", "->", "http", "www", "&lt;", "[X", "()"]
    every += ["".join(draw.choices(parts, k=draw.randint(2, 14))) for _ in range(4000)]
    for form in FORMS:
        for signs, expression in form.expressions:
            guarded, free = by_pattern(expression, signs=signs), by_pattern(expression)
            for text in every:
                assert [*guarded(text)] == [*free(text)], (form.name, expression, text)


def test_a_text_without_the_signs_is_not_searched() -> None:
    assert not [*by_pattern("[a-z]+", signs="$")("abc")]
    assert [*by_pattern("[a-z]+", signs=("$", "bc"))("abc")]
