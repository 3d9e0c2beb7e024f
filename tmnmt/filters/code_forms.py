"""What is no word by its form, such as a file's name or a formula, by a table of forms."""

from __future__ import annotations

from tmnmt.codes.form import BY_FORM
from tmnmt.filters.marking import Marker


class CodeForms(Marker):
    """Finds what is no word by its form, to be copied."""

    finders = BY_FORM.finders
