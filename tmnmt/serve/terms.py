"""Lists of terms by the names under which they are served, and the glossaries that clients make,
which are kept in the storage, each of one tenant."""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tmnmt.errors import FormatError, UsageError
from tmnmt.serve.fields import ENTRIES, MOST_NAME
from tmnmt.serve.http_error import Refused, unknown, wrong
from tmnmt.serve.keys import NAME, NAMES, Caller
from tmnmt.serve.languages import Language, distance, language
from tmnmt.serve.storage.records import Dictionary, Entries, Glossary
from tmnmt.terms.find import Finder, TermPlace
from tmnmt.terms.homonyms import in_domain
from tmnmt.terms.reading import read_terms
from tmnmt.terms.term import Term, form, merged

if TYPE_CHECKING:
    from tmnmt.serve.storage.base import GlossaryStorage
    from tmnmt.terms.term_list import TermList
    from tmnmt.translator import Translator

Pair = tuple[Language, Language]
CACHE_SIZE = 32  # lists made ready for a model that are kept
MOST_TERMS = 200_000  # of all glossaries that a request names; made ready, some 280 bytes each
MOST_MADE = 1_000_000  # of the lists made ready that are kept
MOST_GLOSSARIES = 1_000  # of one tenant
OF_SESSION = "session-"  # begins the id of the glossary of a session, before that of the session


@dataclass(frozen=True)
class Served:
    """A list of a file. `terms`: of every pair of languages for which it has some."""

    name: str
    terms: Mapping[Pair, Sequence[Term]]

    def find_terms(self, pair: Pair) -> Sequence[Term] | None:
        return next(
            (terms for served_pair, terms in self.terms.items() if _serves(served_pair, pair)), None
        )


def open_terms(arguments: Iterable[str], pairs: Sequence[tuple[str, str]]) -> list[Served]:
    """The lists of the option --terms. `pairs`: the languages of the models. Raises FormatError for
    what is no list, or has no terms of these languages, and UsageError for what is no name."""
    lists = list[Served]()
    for argument in arguments:
        label, sign, location = argument.partition("=")
        is_named = bool(sign) and NAME.fullmatch(label) is not None and not Path(argument).exists()
        path = Path(location if is_named else argument)
        name = label if is_named else path.name.partition(".")[0]
        if not NAME.fullmatch(name):
            raise UsageError(
                f"{argument}: {name!r} cannot be the name of a list; write NAME={path}, with "
                f"{NAMES}"
            )
        if name in [term_list.name for term_list in lists]:
            raise UsageError(f"two lists of terms are called {name}; write NAME=FILE")
        lists.append(Served(name, _of_pairs(path, pairs)))
    return lists


def _of_pairs(path: Path, pairs: Sequence[tuple[str, str]]) -> dict[Pair, Sequence[Term]]:
    terms = dict[Pair, Sequence[Term]]()
    for number, (source, target) in enumerate(pairs, 1):
        try:
            terms[language(source), language(target)] = read_terms(path, source, target)
        except FormatError:
            if number == len(pairs) and not terms:
                raise
    return terms


def _serves(served: Pair, requested: Pair) -> bool:
    return all(
        distance(*languages) is not None for languages in zip(requested, served, strict=True)
    )


@dataclass
class _TermSet:
    """Lists that are used together: what finds their terms, how many terms there are, what is wrong
    with the domain that chooses their meanings, and the set made ready for models, by the model's
    hash and whether a given form must come."""

    finder: Finder
    size: int
    problem: str = ""
    ready: dict[tuple[str, bool], TermList] = field(default_factory=dict)


class TermLists:
    """All of them, and those made ready that were used last."""

    def __init__(self, served: Sequence[Served], storage: GlossaryStorage) -> None:
        self._served = {term_list.name: term_list for term_list in served}
        self._storage = storage
        self._sets: dict[object, _TermSet] = {}
        self._lock = threading.Lock()

    @property
    def served(self) -> list[str]:
        """The names of all lists of files."""
        return list(self._served)

    def names(self, caller: Caller, pair: Pair | None = None) -> list[str]:
        """Of the lists that the caller sees, in their order; of these languages."""
        return [
            name
            for name, term_list in self._served.items()
            if caller.has(name) and (pair is None or term_list.find_terms(pair) is not None)
        ]

    def are_served(self, names: Iterable[str]) -> bool:
        """Whether none of them is of a glossary, which the storage would be asked for."""
        return all(name in self._served for name in names)

    def listed(self, caller: Caller) -> list[tuple[str, Pair, int]]:
        """Name, languages, and how many terms, of every list that the caller sees."""
        return [
            (name, pair, len(terms))
            for name in self.names(caller)
            for pair, terms in self._served[name].terms.items()
        ]

    def ready(
        self,
        translator: Translator,
        pair: Pair,
        names: Sequence[str],
        caller: Caller,
        hard: bool,
        domain: str = "",
    ) -> TermList | None:
        """These lists, and glossaries by their ids, for a translator; None: none is named. Of a
        term of several meanings the one counts that belongs to `domain`, where one does. Raises
        Refused for a list that is not there, or not for this caller, or is of other languages, and
        for more than `MOST_TERMS` terms of glossaries."""
        if not names:
            return None
        lists = self._lists(names, pair, caller)
        with self._lock:
            term_set = self._set_of(names, pair, lists, domain)
            key = translator.model_hash, hard
            if key not in term_set.ready:
                from tmnmt.terms.term_list import TermList

                term_set.ready[key] = TermList(
                    term_set.finder,
                    translator.vocab,
                    hard,
                    translator.tgt_lang,
                    translator.src_lang,
                )
            return term_set.ready[key]

    def check_domain(self, pair: Pair, names: Sequence[str], caller: Caller, domain: str) -> None:
        """Checks that a domain chooses between meanings of these lists. Raises Refused where they
        have words of several meanings, and none of a meaning names the domain, for a domain without
        any list, and as `ready` does."""
        if not domain:
            return
        if len(domain) > MOST_NAME:
            raise wrong(f"terms_domain may have {MOST_NAME} characters")
        if not names:
            raise wrong("terms_domain is of terms, and there are none")
        lists = self._lists(names, pair, caller)
        with self._lock:
            problem = self._set_of(names, pair, lists, domain).problem
        if problem:
            raise wrong(f"terms_domain: {problem}")

    def find(
        self, text: str, pair: Pair, names: Sequence[str], caller: Caller, domain: str = ""
    ) -> list[TermPlace]:
        """The terms of these lists that stand in a text, in its order (`Finder.find`), with the
        meanings that `ready` gives them. No model is needed. Raises Refused as `ready` does."""
        if not names:
            return []
        lists = self._lists(names, pair, caller)
        with self._lock:
            finder = self._set_of(names, pair, lists, domain).finder
        return finder.find(text)

    def _set_of(
        self,
        names: Sequence[str],
        pair: Pair,
        lists: Sequence[tuple[str, Sequence[Term]]],
        domain: str,
    ) -> _TermSet:
        """These lists, made ready now or before. The sets that were made first are forgotten where
        there are too many."""
        key = pair, tuple(version for version, _ in lists), domain
        if key not in self._sets:
            size = sum(len(terms) for _, terms in lists)
            while len(self._sets) >= CACHE_SIZE or (
                self._sets
                and sum(term_set.size for term_set in self._sets.values()) + size > MOST_MADE
            ):
                del self._sets[next(iter(self._sets))]
            terms, problem = _combined(names, [terms for _, terms in lists]), ""
            if domain:
                try:
                    terms = in_domain(terms, domain, pair[0].code)
                except UsageError as error:
                    problem = str(error)
            self._sets[key] = _TermSet(Finder(terms), size, problem)
        return self._sets[key]

    def keeps(self, terms: TermList | None) -> bool:
        """Whether a list is among those that were used last; None is."""
        with self._lock:
            return terms is None or any(
                terms is ready_list
                for term_set in self._sets.values()
                for ready_list in term_set.ready.values()
            )

    def _lists(
        self, names: Sequence[str], pair: Pair, caller: Caller
    ) -> list[tuple[str, Sequence[Term]]]:
        """Each list once, however often it is named. Raises Refused as `ready` does."""
        lists, size = list[tuple[str, Sequence[Term]]](), 0
        for name in dict.fromkeys(names):
            lists.append(self._resolve(name, pair, caller))
            size += len(lists[-1][1]) if name not in self._served else 0
            if size > MOST_TERMS:
                raise Refused(
                    413,
                    "too_large",
                    "glossaries of {limit} terms are kept to",
                    values={"limit": MOST_TERMS},
                )
        return lists

    def _resolve(self, name: str, pair: Pair, caller: Caller) -> tuple[str, Sequence[Term]]:
        """What tells this list from any other, and its terms."""
        if name in self._served:
            if not caller.has(name):
                raise unknown("there is no such list of terms")
            terms = self._served[name].find_terms(pair)
            if terms is None:
                raise Refused(400, "wrong_language", "a list of terms is of other languages")
            return f"= {name}", terms
        for dictionary in self.get(name, caller).dictionaries:
            if _serves(dictionary.languages, pair):
                text = json.dumps(dictionary.entries)
                version = hashlib.sha256(text.encode()).hexdigest()
                return version, [Term(source, (target,)) for source, target in dictionary.entries]
        raise Refused(400, "wrong_language", "a glossary is of other languages")

    def glossaries(self, caller: Caller) -> list[Glossary]:
        """Those of the caller's tenant that are of no session, in the order in which they were
        made."""
        glossaries = self._storage.tenant_glossaries(caller.tenant)
        return [glossary for glossary in glossaries if not glossary.id.startswith(OF_SESSION)]

    def in_session(self, session: str, names: Sequence[str], caller: Caller) -> tuple[str, ...]:
        """The names of lists with that of the session's own, which counts before the others, where
        it has one."""
        id = OF_SESSION + session
        has_terms = self._storage.get(caller.tenant, id) is not None
        return (*names, id) if has_terms else tuple(names)

    def session_entries(self, session: str, caller: Caller) -> Entries:
        """The terms that were added in a session."""
        glossary = self._storage.get(caller.tenant, OF_SESSION + session)
        return glossary.dictionaries[0].entries if glossary is not None else ()

    def add_in_session(
        self, session: str, pair: Pair, source: str, target: str, caller: Caller
    ) -> Entries:
        """The terms of a session with another one, which takes the place of that of the same
        source; "" as its target takes the term out. Raises Refused as `entries_of` does, and where
        there are too many glossaries."""
        with self._lock:
            remaining = [
                entry
                for entry in self.session_entries(session, caller)
                if entry[0].casefold() != source.strip().casefold()
            ]
            entries = (
                entries_of([*remaining, (source, target)]) if target.strip() else tuple(remaining)
            )
            id, codes = OF_SESSION + session, [language.code for language in pair]
            dictionary = Dictionary(codes[0], codes[1], entries)
            if not self._storage.change(caller.tenant, id, None, [dictionary]):
                self._make(id, "", [dictionary], caller)
            return entries

    def end_session(self, session: str, caller: Caller) -> None:
        """Deletes the terms of a session, where it has some."""
        self._storage.delete(caller.tenant, OF_SESSION + session)

    def get(self, id: str, caller: Caller) -> Glossary:
        """Raises Refused for one that is not there, or another tenant's."""
        glossary = self._storage.get(caller.tenant, id)
        if glossary is None:
            raise unknown("there is no such list of terms")
        return glossary

    def make(self, name: str, dictionaries: Sequence[Dictionary], caller: Caller) -> Glossary:
        """Raises Refused where there are too many."""
        return self._make(str(uuid.uuid4()), name, dictionaries, caller)

    def _make(
        self, id: str, name: str, dictionaries: Sequence[Dictionary], caller: Caller
    ) -> Glossary:
        glossary = Glossary(
            id,
            name,
            datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            tuple(dictionaries),
        )
        if not self._storage.make(glossary, caller.tenant, MOST_GLOSSARIES):
            raise Refused(429, "busy", "there are too many glossaries; delete some", 60)
        return glossary

    def change(
        self, id: str, caller: Caller, name: str | None, dictionaries: Sequence[Dictionary] = ()
    ) -> Glossary:
        """Another name, and dictionaries in the place of those of their languages. Raises Refused
        as `get` does."""
        self._storage.change(caller.tenant, id, name, dictionaries)
        return self.get(id, caller)

    def delete(self, id: str, caller: Caller) -> None:
        """Raises Refused as `get` does."""
        if not self._storage.delete(caller.tenant, id):
            raise unknown("there is no such list of terms")

    def delete_dictionary(self, id: str, source: str, target: str, caller: Caller) -> None:
        """Raises Refused where there is no such dictionary."""
        self.get(id, caller)
        if not self._storage.delete_dictionary(caller.tenant, id, source, target):
            raise unknown("there is no such dictionary")


def _combined(names: Sequence[str], lists: Sequence[Sequence[Term]]) -> list[Term]:
    """The terms of several lists. Those of a session take the place of others of their sources."""
    of_session = [name.startswith(OF_SESSION) for name in dict.fromkeys(names)]
    session_sources = {
        term.source.casefold()
        for terms, is_chosen in zip(lists, of_session, strict=True)
        for term in terms
        if is_chosen
    }
    terms = (
        term
        for terms, is_chosen in zip(lists, of_session, strict=True)
        for term in terms
        if is_chosen or term.source.casefold() not in session_sources
    )
    return merged(terms, "the lists of terms")


def entries_of(pairs: Iterable[tuple[str, str]]) -> Entries:
    """Pairs of terms as a dictionary has them. Raises Refused for what is none."""
    entries = dict[str, str]()
    for number, (source, target) in enumerate(pairs, 1):
        try:
            cleaned = form(source, f"entry {number}"), form(target, f"entry {number}")
        except FormatError as error:
            raise wrong(str(error)) from error
        if not all(cleaned):
            raise wrong("entry {number} of a glossary needs a source and a target", number=number)
        entries[cleaned[0]] = cleaned[1]
    if not entries:
        raise wrong("a glossary needs an entry")
    if len(entries) > ENTRIES:
        raise Refused(
            413, "too_large", "a glossary may have {limit} entries", values={"limit": ENTRIES}
        )
    return tuple(entries.items())
