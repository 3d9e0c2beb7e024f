"""An explained translation as one HTML page that loads nothing and never reads a text as HTML or
script.

The page is written segment by segment. Source and coloured target are HTML; what else belongs to a
segment lies beside it as JSON, which page.js draws when it is looked at: of a long document only
what is open costs anything."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tmnmt.cli.explanation import LEGEND, ORIGIN_TITLES, mean_gates
from tmnmt.quantities import quantity
from tmnmt.records import as_written, decode_subwords
from tmnmt.segments import Match, Token, Translation

if TYPE_CHECKING:
    from tmnmt.translator import Translator

DIGITS = 6  # of probabilities: their sums stay exact to 1e-5
SCALARS = ("probability", "generated", "plain")
TITLE = "Where every word comes from"
POLICY = (
    "default-src 'none'; style-src {style}; script-src {script}; base-uri 'none'; form-action "
    "'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
<script>{script}</script>
</head>
<body>
<header>
<h1>{title}</h1>
<ul class="legend">{legend}</ul>
<p class="settings">{settings}</p>
</header>
<aside id="inspector" aria-live="polite" aria-label="{title}" tabindex="0">
<p>Point at a word, or reach it with Tab and the arrow keys. Enter holds it, Escape lets go.</p>
</aside>
<main>
"""
ARTICLE = """<article id="s{number}">
<p class="source" lang="{src_lang}" dir="auto">{source}</p>
<p class="target" lang="{tgt_lang}" dir="auto">{target}</p>
{written}<details><summary>{told}</summary></details>
<script type="application/json">{data}</script>
</article>
"""
# where it is not what the tokens say
WRITTEN = """<p class="written" lang="{tgt_lang}" dir="auto">{written}</p>
"""
FOOT = """</main>
<footer>{totals}</footer>
</body>
</html>
"""


class Page:
    """Writes the page to `stream`: its head at once, a segment with every `add`, the totals
    with `end`."""

    def __init__(self, stream: TextIO, translator: Translator) -> None:
        self.stream, self.translator = stream, translator
        self._origins: Counter[str] = Counter()
        self._segments = 0
        self._at_start = True  # of a document
        self.stream.write(_head(_settings(translator)))

    def add(self, translation: Translation) -> None:
        """The next segment; a blank one parts documents."""
        if not translation.src.strip():
            self._at_start = True
            return
        if self._at_start and self._segments:
            self.stream.write("<hr>\n")
        self._at_start = False
        self._segments += 1
        self._origins.update(token.origin for token in translation.tokens)
        self.stream.write(self._article(translation))

    def end(self) -> None:
        """Totals, and the end of the page."""
        total = sum(self._origins.values())
        shares = (
            f"{self._origins[origin] / total:.1%} {description}"
            for origin, description in LEGEND.items()
            if total
        )
        totals = ", ".join(
            [quantity(self._segments, "segment"), quantity(total, "subword"), *shares]
        )
        self.stream.write(FOOT.format(totals=escape(totals)))

    def _article(self, translation: Translation) -> str:
        parts = [_matches(translation.matches)]
        parts += [_numbers(translation)] if translation.tokens else []
        agreements = [match.agreement for match in translation.matches if match.agreement]
        parts += [str(agreement) for agreement in agreements if agreement.rivals]
        summary = " · ".join(parts)
        text = as_written(translation)
        tgt_lang = escape(self.translator.tgt_lang)
        return ARTICLE.format(
            number=self._segments,
            src_lang=escape(self.translator.src_lang),
            tgt_lang=tgt_lang,
            source=escape(translation.src),
            target=_target(translation.tokens),
            written=WRITTEN.format(tgt_lang=tgt_lang, written=escape(text)) if text else "",
            told=escape(summary),
            data=in_script(self._data(translation)),
        )

    def _data(self, translation: Translation) -> dict[str, Any]:
        """What page.js draws of a segment: a list over tokens for every number that is not always
        0, and for what every memory layer did, by its name."""
        tokens = translation.tokens
        lists = {
            name: [round(getattr(token, name), DIGITS) for token in tokens] for name in SCALARS
        }
        return {name: values for name, values in lists.items() if any(values)} | {
            "provenance": _provenance(tokens),
            "matches": [
                self._match(match, _furthest(tokens, index))
                for index, match in enumerate(translation.matches)
            ],
            "attention": [
                [(r.match, r.position, round(r.weight, DIGITS)) for r in t.attention]
                for t in tokens
            ],
            "slots": [
                [(r.slot, r.text.replace("▁", " "), round(r.weight, DIGITS)) for r in t.slots]
                for t in tokens
            ],
        }

    def _match(self, match: Match, furthest: int) -> dict[str, Any]:
        """`pieces`: the positions of the pair that can be read, as text, the last of them its end;
        all that there are where words were taken from further on, as they stand."""
        from tmnmt.keys.pair_keys import encode_pair
        from tmnmt.vocab import EOS

        segment, vocab = match.segment, self.translator.vocab
        _, ids = encode_pair(
            (segment.src, segment.tgt), vocab, self.translator.pipeline.keys.max_subwords
        )
        if furthest >= len(ids) - 1:
            ids = [*vocab.encode(segment.tgt), EOS]
        return {
            "score": round(match.score, DIGITS),
            "document": segment.document,
            "src": segment.src,
            "pieces": decode_subwords([vocab.piece(word) for word in ids]),
        }


def _provenance(tokens: Sequence[Token]) -> list[dict[str, Any]]:
    """Of everything that memory layers did, in order: its name, what was read for it, whether it
    was mixed in, and its weights and gates over the tokens."""
    kinds = dict.fromkeys(
        (entry.name, entry.source, entry.is_mixed) for token in tokens for entry in token.provenance
    )
    parts = []
    for kind in kinds:
        of_kind = [
            [
                entry
                for entry in token.provenance
                if (entry.name, entry.source, entry.is_mixed) == kind
            ]
            for token in tokens
        ]
        numbers = {
            name: [
                round(sum(getattr(entry, field) for entry in entries), DIGITS)
                for entries in of_kind
            ]
            for name, field in (("weights", "weight"), ("gates", "gate"))
        }
        if any(numbers["gates"]):
            name, source, is_mixed = kind
            parts.append({"name": name, "source": source, "is_mixed": is_mixed, **numbers})
    return parts


def _furthest(tokens: tuple[Token, ...], match: int) -> int:
    """The last position of that match that a word was copied from; -1 where none was."""
    positions = (
        r.position for token in tokens if token.copied for r in token.sources if r.match == match
    )
    return max(positions, default=-1)


def in_script(data: dict[str, Any]) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace(
        "<", "\\u003c"
    )


def _head(settings: str) -> str:
    style, script = (
        Path(__file__).with_name(name).read_text(encoding="utf-8")
        for name in ("page.css", "page.js")
    )
    policy = POLICY.format(style=_hash(style), script=_hash(script))
    legend = "".join(
        f'<li><span class="{origin}">{escape(description)}</span></li>'
        for origin, description in LEGEND.items()
    )
    return HEAD.format(
        policy=policy,
        title=TITLE,
        style=style,
        script=script,
        legend=legend,
        settings=escape(settings),
    )


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _settings(translator: Translator) -> str:
    settings = translator.settings
    text = (
        f"model {translator.model_hash[:12]}, {translator.src_lang} to {translator.tgt_lang}, "
        f"mode {settings.mode}"
    )
    if settings.mode != "off":
        text += f", {settings.top_k} pairs of score {settings.threshold:g} or more"
    return text + f", session cache of {settings.cache}, beam {settings.beam}"


def _matches(matches: Sequence[Match]) -> str:
    if len(matches) < 2:
        return f"1 match of {matches[0].score:.2f}" if matches else "no match"
    return f"{len(matches)} matches, the best of {max(match.score for match in matches):.2f}"


def _numbers(translation: Translation) -> str:
    if translation.origin in ORIGIN_TITLES:
        return ORIGIN_TITLES[translation.origin]
    tokens = translation.tokens
    origins = Counter(token.origin for token in tokens)
    numbers = [] if math.isnan(translation.score) else [f"score {translation.score:.3f}"]
    numbers += [
        f"{origins[name]} of {quantity(len(tokens), 'subword')} {description}"
        for name, description in LEGEND.items()
        if origins[name] and name != "model"
    ]
    gates = ", ".join(f"{name} {mean:.2f}" for name, mean in mean_gates(tokens).items())
    return " · ".join([*numbers, f"mean gates: {gates}"] if gates else numbers)


def _target(tokens: tuple[Token, ...]) -> str:
    """Every subword in an element of its own, the blanks before words outside; the first can be
    reached by Tab."""
    parts = []
    for index, (token, text) in enumerate(
        zip(tokens, decode_subwords([token.text for token in tokens]), strict=True)
    ):
        blank = " " if index and text.startswith(" ") else ""
        tab = 0 if index == 0 else -1
        parts.append(
            f'{blank}<span class="token {token.origin}" role="button" '
            f'tabindex="{tab}">{escape(text.strip(" "))}</span>'
        )
    return "".join(parts)
