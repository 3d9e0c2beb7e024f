"""What the model writes, as its language and region set text."""

from __future__ import annotations

from tmnmt.codes.record import Source
from tmnmt.filters.contract import Filter, ModelOutput, Undo
from tmnmt.typography import typography_of

_FIXED = "\ue0fe"  # stands for a quote that is not set otherwise; of private use


class Typesetting(Filter, Undo):
    """Sets quotes, blanks and opening marks as the target's language has them."""

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        return source, self if self.reader.typography else None

    def restore_piece(self, output: ModelOutput) -> str:
        if output.is_typed:
            return output.text
        text = output.text
        for mask in output.masks:  # the quotes of a string of code belong to it
            text = text.replace(f'"{mask}"', f"{_FIXED}{mask}{_FIXED}")
        typeset = typography_of(self.reader.typography).typeset(text)
        return typeset.replace(_FIXED, '"') if _FIXED not in output.text else output.text
