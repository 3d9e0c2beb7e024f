"""The writer of a base behind an address: a prompt for every piece, several in flight, and a second
try where an answer breaks a rule."""

from __future__ import annotations

import logging
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tmnmt.codes.record import Placed
from tmnmt.engine.extension import Extension, Extensions, check_all
from tmnmt.engine.links import Array, Linkable
from tmnmt.engine.piece import Piece
from tmnmt.engine.run_statistics import Tally
from tmnmt.engine.settings import Settings
from tmnmt.engine.writer import DocumentMemory, Draft, Writer
from tmnmt.errors import ModelError
from tmnmt.hosted.address import check_address
from tmnmt.hosted.answer import Answer, Question, parse_answer
from tmnmt.hosted.answer_cache import AnswerCache, answers_of, key_of
from tmnmt.hosted.connection import Connection, Message, Reply, read_key
from tmnmt.hosted.model import MODES, HostedBackbone
from tmnmt.hosted.parallel import run_parallel
from tmnmt.hosted.prompt import Pair, PromptData, Template, load_template, tokens_of
from tmnmt.hosted.tags import guessed_links, moved_links, tagged
from tmnmt.index.base import Index
from tmnmt.keys.pair_keys import NoPairKeys, PairKeyStore
from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.folder import Model
from tmnmt.segments import Translation
from tmnmt.text import one_line

TIMES_TOKENS, MORE_TOKENS = 4, 256  # that an answer may have, of those of its text
SECOND_REQUEST = "A first answer to this text broke a rule. {faults} Keep to all rules this time."
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ChatDraft(Draft):
    """What a base behind an address has written for a piece.

    question: what was asked.
    answer: what it has answered."""

    question: Question
    answer: Answer

    def links(self, target: str) -> Array | None:
        text = self.answer.text
        if not text.marks:
            return None
        return moved_links(text.links(self.question.text), text.plain, target)


@dataclass(frozen=True)
class _Request:
    """A question, with the chat that asks it."""

    question: Question
    messages: tuple[Message, ...]


@dataclass
class ChatWriter(Writer[ChatDraft]):
    """A base behind an address.

    connection: what asks it.
    template: what it is told.
    settings: how to translate.
    languages: the codes of both languages.
    features: the features on the way of a sentence.
    tally: what the times are added to.
    answers: the answers that are kept; None where none are.
    keys: the keys of pairs, of which there are none.
    modes: the modes in which it reads a memory."""

    connection: Connection
    template: Template
    settings: Settings
    languages: tuple[str, str]
    features: Extensions
    tally: Tally
    answers: AnswerCache | None
    keys: PairKeyStore
    modes: tuple[str, ...] = MODES

    @property
    def extensions(self) -> Extensions:
        return self.features

    def restricted(self, settings: Settings, extensions: Extensions) -> ChatWriter:
        return replace(self, settings=settings, features=extensions)

    def drafts(
        self, pieces: Sequence[Piece], documents: Sequence[DocumentMemory], explain: bool = False
    ) -> list[ChatDraft]:
        requests = [
            self._request(piece, document)
            for piece, document in zip(pieces, documents, strict=True)
        ]
        distinct = {self._key(request): request for request in requests}
        with self.tally.timed("decode"):
            answers = run_parallel(
                self._answer, [*distinct.items()], self.settings.requests, self.connection.abort
            )
        by_key = dict(zip(distinct, answers, strict=True))
        return [
            ChatDraft(answer.text.plain, len(answer.text.plain) + 1, request.question, answer)
            for request in requests
            for answer in [by_key[self._key(request)]]
        ]

    def messages(self, piece: Piece, document: DocumentMemory) -> Sequence[Message]:
        """The chat that asks for the translation of a piece.

        piece: the piece, with what the memories have for it.
        document: what is remembered of its document."""
        return self._request(piece, document).messages

    def _request(self, piece: Piece, document: DocumentMemory) -> _Request:
        source = piece.segment.source
        start = _start_of(piece)
        text = tagged(source.read_text, start, piece.model_text)
        masks = frozenset(source.placement.masks.values())
        question = Question(text, masks, self.languages[1], self._checks)
        settings, original = self.settings, source.original
        masked = [source.masked_pair(match.segment) for match in piece.matches]
        data = PromptData(
            languages=self.languages,
            text=text.markup(),
            tags=text.tags,
            numbers=[mask for mask in sorted(masks) if mask in piece.model_text],
            terms=[
                Pair(words, " / ".join(targets))
                for name, extension in self.features.items()
                for words, targets in extension.wordings(piece, document.knowledge.get(name))
            ],
            examples=[Pair(pair.src, pair.tgt) for pair in masked],
            confirmed=[Pair(*pair) for pair in document.last_pairs(settings.last_pairs)],
            note=original.note if isinstance(original, Placed) else "",
            previous=one_line(piece.segment.neighbours[0]),
            next=one_line(piece.segment.neighbours[1]),
        )
        return _Request(question, tuple(self.template.fit(data, settings.prompt_tokens)))

    def _checks(self, source: str, target: str) -> list[Any]:
        return check_all(self.features, source, target)

    def _most_tokens(self, request: _Request) -> int:
        return TIMES_TOKENS * tokens_of(request.question.text.markup()) + MORE_TOKENS

    def _key(self, request: _Request) -> bytes:
        most_tokens = self._most_tokens(request)
        return key_of(self.connection.address, request.messages, most_tokens)

    def _answer(self, item: tuple[bytes, _Request]) -> Answer:
        """The answer to a request; it is asked once more where the first one breaks a rule. An
        answer that breaks none is kept."""
        key, request = item
        question, counts = request.question, self.connection
        if self.answers is not None and (text := self.answers.get(key)) is not None:
            answer = parse_answer(question, Reply(text))
            if not answer.faults:
                counts.count("kept answers")
                return answer
        most_tokens, deadline = self._most_tokens(request), self.connection.deadline()
        reply = self.connection.ask(request.messages, most_tokens, deadline)
        answer = parse_answer(question, reply)
        if answer.faults:
            counts.count("second tries")
            messages = _second_messages(request.messages, _reason(answer.faults))
            reply = self.connection.ask(messages, most_tokens, deadline)
            second = parse_answer(question, reply)
            is_better = len(second.faults) <= len(answer.faults)
            if is_better and not _recites(second.text.plain, _reason(answer.broken_rules)):
                answer = second
            if answer.faults:
                counts.count("broken rules")
        if self.answers is not None and not answer.faults:
            self.answers.put(key, reply.text)
        return answer

    def translation(self, piece: Piece, draft: ChatDraft) -> Translation:
        source = piece.segment.source
        text = source.restore_piece(draft.text, piece.model_text)
        checks = draft.answer.checks
        if not piece.matches and source.refuses(text, piece.model_text):
            text, checks = piece.model_text, ()
        translation = Translation(
            piece.text, text, math.nan, piece.matches, origin="model", user_checks=checks
        )
        return self.annotated(translation)

    def annotated(self, translation: Translation) -> Translation:
        for extension in self.features.values():
            translation = extension.annotate(translation, None)
        return translation

    def link(self, segments: Sequence[Linkable]) -> None:
        for segment in segments:
            for number, source, target in segment.unlinked():
                segment.link(number, guessed_links(source, target))


def _reason(faults: Sequence[str]) -> str:
    return SECOND_REQUEST.format(faults=" ".join(faults))


def _recites(text: str, reason: str) -> bool:
    """Whether a second answer repeats what was wrong with the first, as small models do, in place
    of a translation: four words of it in a row. Numbers are no words, since a right answer has
    those that were missing."""
    words = reason.split()
    runs = (words[start : start + 4] for start in range(len(words) - 3))
    return any(
        " ".join(run) in text for run in runs if all(re.search(r"[^\W\d_]", word) for word in run)
    )


def _second_messages(messages: Sequence[Message], reason: str) -> list[Message]:
    """The same chat, in which the system says what was wrong with a first answer."""
    system = [m["content"] for m in messages if m["role"] == "system"]
    user_messages = [message for message in messages if message["role"] != "system"]
    return [{"role": "system", "content": "\n\n".join([*system, reason])}, *user_messages]


def _start_of(piece: Piece) -> int:
    """Where a piece begins in what the model reads of its segment."""
    whole, part = piece.segment.source.read, piece.model_text
    start = whole.find(part)
    if piece.number and whole.count(part) > 1:  # about as far as the pieces before it reach
        start = whole.find(
            part, max(0, len(whole) * piece.number // piece.segment.size - len(part))
        )
    return max(start, 0)


def make_chat_writer(
    model: Model,
    layers: MemoryLayers | None,
    indexes: Sequence[Index],
    settings: Settings,
    device: str,
    tally: Tally,
    extensions: Extensions,
) -> ChatWriter:
    """The writer of a base behind an address. What leaves the machine is told in the log.

    Raises UsageError for an address that may not be asked, or a key or template that cannot be
    read."""
    if not isinstance(model.backbone, HostedBackbone):
        raise ModelError(f"{model.folder}: no base behind an address")
    address = model.backbone.address
    check_address(address, settings.plain_http)
    key = read_key(_path(settings.key_file), os.environ)
    template = load_template(_path(settings.prompt))
    log.info("%s: %s", address, _notice(template, settings, extensions))
    return ChatWriter(
        Connection(address, key, settings.request_seconds),
        template,
        settings,
        (model.config["src_lang"], model.config["tgt_lang"]),
        extensions,
        tally,
        answers_of(address) if settings.keep_answers else None,
        NoPairKeys(),
    )


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)


# what the names of a template put into a prompt, in words
CONTENTS: Mapping[str, str] = {
    "text": "the texts that are translated",
    "examples": "pairs of the memories that are like them",
    "terms": "their terms",
    "confirmed": "pairs that were confirmed last in the document",
    "note": "notes of the file",
    "previous": "the texts beside them",
}


def _notice(template: Template, settings: Settings, extensions: Extensions) -> str:
    """What leaves the machine."""
    names = [name for name in CONTENTS if re.search(rf"\{{[#?]?{name}\}}", template.text)]
    is_absent = {
        "examples": not settings.retrieves,
        "confirmed": not settings.last_pairs,
        "terms": not any(
            type(extension).wordings is not Extension.wordings for extension in extensions.values()
        ),
    }
    *first, last = [CONTENTS[name] for name in names if not is_absent.get(name)]
    return f"gets {', '.join(first)}{' and ' if first else ''}{last}; nothing else is sent"
