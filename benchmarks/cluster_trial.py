"""Kills and hangs each part of a cluster on this machine while people translate, search, confirm,
take back and write in one document through its proxy. It starts the cluster
(`deploy/cluster/cluster.py`) and looks whether anything is lost that was acknowledged, or any
answer is another than in quiet.

    python benchmarks/cluster_trial.py models/law.en-fr --texts texts.txt --memory law.tmx

With `--kills 1 --hangs 1 --seconds-of-hanging 10` it takes some five minutes on a quiet machine.
Every connection is a person with a session, and with segments of the one document. What is refused
or lost on its way is asked again, with the same name, until it is answered; the times are those
from the first try to the answer. A wrong answer is another translation of a text, or other matches
in a memory that nobody changes, than before the load; a confirmed pair that the next request does
not find; or one that it finds after it was taken back. The servers are restarted, one after the
other, at the end: then nothing at all may be refused."""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import desk_kill
from killed_server import ask
from serve_load import Client

ROOT = Path(__file__).resolve().parents[1]
KINDS = (
    *("confirm", "search", "desk") * 3,
    *("translate", "in session") * 2,
    "undo",
)
DOCUMENT_SOURCES, TIMES = 4, 3  # of each person in the document; how often each comes
QUIET, RESTART = "quiet", "restart servers"
LONGEST_TRY, PAUSE_AFTER = 150.0, 0.3  # seconds of a request; before it is sent again
SETTLING = 240.0  # seconds in which everything is answered once all parts are back


def cluster_module() -> ModuleType:
    """deploy/cluster/cluster.py."""
    path = ROOT / "deploy" / "cluster" / "cluster.py"
    spec = importlib.util.spec_from_file_location("cluster", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["cluster"] = module
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Plan:
    """What a trial does.

    connections: how many people there are.
    pause: mean seconds between two requests of a person.
    quiet: seconds of quiet before the first failure, and after each one.
    kills: how often each part is killed.
    hangs: how often each part hangs.
    hanging: seconds for which it hangs.
    away: seconds between a kill and the start.
    seed: of everything that is drawn."""

    connections: int = 12
    pause: float = 1.0
    quiet: float = 10.0
    kills: int = 3
    hangs: int = 2
    hanging: float = 20.0
    away: float = 3.0
    seed: int = 48


@dataclass
class Expected:
    """What the quiet cluster answers.

    translations: by their texts.
    matches: by their texts."""

    translations: dict[str, str] = field(default_factory=dict)
    matches: dict[str, Any] = field(default_factory=dict)


class Trial:
    """What all people did, and what was wrong."""

    def __init__(self, plan: Plan, texts: Sequence[str], port: int) -> None:
        """plan: what is done.
        texts: what is translated and searched for.
        port: that of the proxy."""
        self.plan, self.texts, self.port = plan, texts, port
        self.phases = [QUIET]  # one after the other
        self.until = float("inf")
        self.expected = Expected()
        self.seconds: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        self.refused: Counter[tuple[str, str, str]] = Counter()
        self.wrong: list[str] = []
        self.acknowledged: Counter[str] = Counter()
        self.desk = ""
        self.people: list[Person] = []

    def phase_since(self, number: int) -> str:
        """What went wrong meanwhile, or else that it was quiet.

        number: that of the phase in which something began."""
        return next((phase for phase in self.phases[number:] if phase != QUIET), QUIET)

    def expect(self, ports: Sequence[int]) -> None:
        """Learns what is answered while nothing else is asked. Ends the program where servers do
        not answer alike.

        ports: those of the servers."""
        for text in self.texts:
            answers = [
                (translated(ask(port, *translate(text))), found(ask(port, *search(text))))
                for port in ports
            ]
            if any(answer != answers[0] for answer in answers):
                raise SystemExit(f"two servers answer differently: {answers}")
            self.expected.translations[text], self.expected.matches[text] = answers[0]

    async def begin(self) -> None:
        """Opens the document and a session for everybody."""
        plan = self.plan
        each = DOCUMENT_SOURCES * TIMES
        lines = [
            f"Notice {person} of {source}"
            for person in range(plan.connections)
            for source in range(DOCUMENT_SOURCES)
            for _ in range(TIMES)
        ]
        self.desk = desk_kill.begun(self.port, lines, "team")
        for number in range(plan.connections):
            part = desk_kill.Person([*range(number * each + 1, (number + 1) * each + 1)])
            session = ask(self.port, "POST", "/v1/sessions", {"write_to": "team"})["id"]
            self.people.append(Person(self, number, f"/v1/sessions/{session}", part))

    async def work(self, trouble: Callable[[], Awaitable[None]]) -> None:
        """Lets all people work until the trouble is over. Raises TimeoutError where something is
        not answered after that.

        trouble: makes it."""

        async def finish() -> None:
            await trouble()
            self.phases.append(QUIET)
            self.until = 0.0

        async with asyncio.TaskGroup() as group:
            working = [group.create_task(person.work()) for person in self.people]
            await group.create_task(finish())
            _, pending = await asyncio.wait(working, timeout=SETTLING)
            if pending:
                raise TimeoutError(f"{len(pending)} requests are not answered")


def translate(text: str) -> tuple[str, str, Any]:
    """A request for a translation that reads what nobody changes."""
    return "POST", "/v1/translate", {"texts": [text], "memories": ["law"]}


def search(text: str, memory: str = "law", threshold: float = 0.5) -> tuple[str, str, Any]:
    """A request for matches."""
    body = {"texts": [text], "k": 3, "threshold": threshold}
    return "POST", f"/v1/memories/{memory}/search", body


def translated(answer: Any) -> str:
    return str(answer["translations"][0]["text"])


def found(answer: Any) -> list[tuple[str, str, float]]:
    (matches,) = (entry["matches"] for entry in answer["results"])
    return [(match["src"], match["tgt"], match["score"]) for match in matches]


class Person:
    """Somebody with a session, who knows what was acknowledged."""

    def __init__(self, trial: Trial, number: int, session: str, desk: desk_kill.Person) -> None:
        self._trial, self._number, self.session, self.desk = trial, number, session, desk
        self._client = Client(trial.port)
        self._draw = random.Random(trial.plan.seed * 1000 + number)
        self._count = 0
        self.pairs: dict[str, tuple[str, str]] = {}  # source and target by segment
        self._gone: list[tuple[str, str]] = []  # taken back, or another took their place

    async def work(self) -> None:
        """Works until the time is over."""
        try:
            await self._work()
        finally:
            await self._client.close()

    async def _work(self) -> None:
        trial = self._trial
        while time.monotonic() < trial.until:
            kind = self._draw.choice(KINDS)
            await {
                "confirm": self._confirm,
                "search": self._search,
                "translate": self._translate,
                "in session": self._in_session,
                "undo": self._undo,
                "desk": self._write,
            }[kind]()
            await asyncio.sleep(self._draw.expovariate(1 / trial.plan.pause))

    async def _ask(
        self, kind: str, method: str, path: str, body: Any, expected: Sequence[str] = ()
    ) -> Any:
        """The answer, which is asked for until it comes; that of an expected code of an error, too,
        where the request was sent before."""
        trial, start, tries = self._trial, time.monotonic(), 0
        begun = len(trial.phases) - 1
        while True:
            tries += 1
            since = len(trial.phases) - 1
            try:
                request = self._client.ask(method, path, body)
                status, answer = await asyncio.wait_for(request, LONGEST_TRY)
            except (OSError, EOFError, TimeoutError, ValueError, IndexError) as error:
                trial.refused[trial.phase_since(since), kind, type(error).__name__] += 1
            else:
                code = "" if isinstance(answer, str) else answer.get("error", {}).get("code", "")
                if status == 200 and isinstance(answer, str):
                    raise SystemExit(f"{kind}: {method} {path}: {answer!r}")
                if status == 200 or (tries > 1 and code in expected):
                    break
                trial.refused[trial.phase_since(since), kind, f"{status} {code}".strip()] += 1
                if status in (400, 404, 409):
                    trial.wrong.append(f"{kind}: {status} {code} {answer}")
                    if tries > 20:
                        break
            await asyncio.sleep(PAUSE_AFTER)
        trial.seconds[trial.phase_since(begun), kind].append(time.monotonic() - start)
        return answer

    def _mind(self, kind: str, is_right: bool, what: str) -> None:
        if not is_right:
            self._trial.wrong.append(f"{self._trial.phases[-1]}: {kind}: {what}")

    async def _confirm(self) -> None:
        """A new pair, or another target of a segment."""
        self._count += 1
        name = f"{self._number}/{self._count}"
        corrects = bool(self.pairs) and self._draw.random() < 0.3
        segment = self._draw.choice([*self.pairs]) if corrects else str(self._count)
        text = f"{self._draw.choice(self._trial.texts)} ({self._number}/{segment})"
        source = self.pairs[segment][0] if corrects else text
        body = {"src": source, "tgt": f"{source[::-1]} {name}", "segment": segment, "request": name}
        await self._ask("confirm", "POST", f"{self.session}/confirm", body)
        self._trial.acknowledged["confirm"] += 1
        if corrects:
            self._gone.append(self.pairs[segment])
        self.pairs[segment] = source, str(body["tgt"])

    async def _undo(self) -> None:
        if not self.pairs:
            return
        segment = self._draw.choice([*self.pairs])
        body = {"segment": segment}
        await self._ask("undo", "POST", f"{self.session}/undo", body, ["nothing_confirmed"])
        self._trial.acknowledged["undo"] += 1
        self._gone.append(self.pairs.pop(segment))

    async def _search(self) -> None:
        trial, text = self._trial, self._draw.choice(self._trial.texts)
        if self._draw.random() < 0.5 or not self.pairs:
            matches = found(await self._ask("search", *search(text)))
            expected = trial.expected.matches[text]
            self._mind("search", matches == expected, f"{text}: {matches}, not {expected}")
            return
        source, target = self._draw.choice([*self.pairs.values()])
        matches = found(await self._ask("search", *search(source, "team", 1.0)))
        there = [tgt for src, tgt, _ in matches if src == source]
        self._mind("search", there == [target], f"{source}: {there}, not {target}")
        if self._gone:
            gone = self._draw.choice(self._gone)
            matches = found(await self._ask("search", *search(gone[0], "team", 1.0)))
            self._mind("search", gone not in [m[:2] for m in matches], f"{gone} was taken back")

    async def _translate(self) -> None:
        text = self._draw.choice(self._trial.texts)
        told = translated(await self._ask("translate", *translate(text)))
        expected = self._trial.expected.translations[text]
        self._mind("translate", told == expected, f"{text}: {told}, not {expected}")

    async def _in_session(self) -> None:
        """Of what was confirmed, which is taken as it stands."""
        if not self.pairs:
            return
        source, target = self._draw.choice([*self.pairs.values()])
        body = {"texts": [source]}
        answer = await self._ask("in session", "POST", f"{self.session}/translate", body)
        told = translated(answer)
        self._mind("in session", told == target, f"{source}: {told}, not {target}")

    async def _write(self) -> None:
        """In the document: a draft, a confirmation with repetitions, or one that is taken back."""
        method, path, body = desk_kill.chosen(self.desk, self._draw)
        if path == "/undo" and self.desk.known.get(body["number"], (None, None))[1] is None:
            return
        where = self._trial.desk + path
        answer = await self._ask("desk", method, where, body, ["nothing_confirmed"])
        if "error" in answer:  # taken back by a try whose answer was lost
            answer = await self._ask("desk", "GET", f"{self._trial.desk}/segments", None)
            mine = [r for r in answer["segments"] if r["number"] in self.desk.numbers]
            answer = {"segments": mine}
        desk_kill.learn(self.desk, answer)
        self._trial.acknowledged["desk"] += 1


def check(trial: Trial, port: int, memory: Any, initial: int) -> list[str]:
    """What is lost or wrong at the end, in words.

    trial: what was done.
    port: that of a server.
    memory: the index that was written to.
    initial: how many pairs it had at the beginning."""
    faults, expected = list[str](), Counter[tuple[str, str]]()
    for person in trial.people:
        answer = ask(port, "GET", f"{person.session}/confirmed")["pairs"]
        there = Counter((pair["src"], pair["tgt"]) for pair in answer)
        known = Counter(person.pairs.values())
        expected += known
        faults += [f"lost from {person.session}: {pair}" for pair in known - there]
        faults += [f"too much in {person.session}: {pair}" for pair in there - known]
    try:
        desk_kill.check(port, trial.desk, [person.desk for person in trial.people])
    except SystemExit as error:
        faults.append(str(error))
    session = ask(port, "GET", trial.desk)["session"]["id"]
    answer = ask(port, "GET", f"/v1/sessions/{session}/confirmed")["pairs"]
    expected += Counter({(pair["src"], pair["tgt"]) for pair in answer})
    there = Counter((segment.src, segment.tgt) for segment in memory.segments())
    faults += [f"lost from the memory: {pair}" for pair in expected - there]
    faults += [f"too much in the memory: {pair}" for pair in there - expected]
    memory.verify()
    return faults


async def failures(trial: Trial, cluster: Any, tell: Callable[[str], None]) -> None:
    """Kills and hangs every part, and restarts the servers."""
    plan, draw = trial.plan, random.Random(trial.plan.seed)
    await asyncio.sleep(plan.quiet)
    groups = (cluster.nodes, [cluster.redis], cluster.servers, [cluster.proxy])
    for number in range(max(plan.kills, plan.hangs)):
        for action, count in (("kill", plan.kills), ("hang", plan.hangs)):
            for parts in groups:
                if number < count:
                    part = parts[number % len(parts)]
                    what = f"{action} {part.name.rstrip('-0123456789')}"
                    tell(f"{action} {part.name}")
                    trial.phases.append(what)
                    await asyncio.sleep(draw.uniform(0, 0.5))
                    start = time.monotonic()
                    if action == "kill":
                        await asyncio.to_thread(part.kill)
                        await asyncio.sleep(plan.away)
                        await asyncio.to_thread(part.start)
                    else:
                        part.signal(signal.SIGSTOP)
                        await asyncio.sleep(plan.hanging)
                        part.signal(signal.SIGCONT)
                    await asyncio.to_thread(cluster.wait_until_whole)
                    tell(f"all are back after {time.monotonic() - start:.0f} s")
                    trial.phases.append(QUIET)
                    await asyncio.sleep(plan.quiet)
    trial.phases.append(RESTART)
    await asyncio.to_thread(cluster.restart_servers, tell)
    await asyncio.sleep(1)


def run(
    cluster: Any, trial: Trial, segments: Sequence[Any], tell: Callable[[str], None]
) -> dict[str, Any]:
    """Runs a trial on a cluster that is not started; what came of it.

    cluster: the cluster, with a memory "law" beside the one that is written to.
    trial: what is done.
    segments: those of "law", English and French.
    tell: is told what is done."""
    from tmnmt.index.elastic.address import parse_address
    from tmnmt.index.elastic.index import ElasticIndex

    start = time.monotonic()
    cluster.start([*cluster.nodes, cluster.redis], tell)
    cluster.build("law", segments, "en", "fr")
    cluster.build("team", [], "en", "fr")
    cluster.start(cluster.servers, tell)
    cluster.start([cluster.proxy], tell)
    cluster.wait_until_whole()
    trial.expect(cluster.server_ports)
    started = time.monotonic()
    asyncio.run(trial.begin())
    asyncio.run(trial.work(lambda: failures(trial, cluster, tell)))
    with closing(ElasticIndex.open(parse_address(cluster.address("team")))) as memory:
        faults = check(trial, cluster.server_ports[0], memory, 0)
    phases = list(dict.fromkeys(phase for phase, _ in trial.seconds))
    return {
        "seconds of starting": round(started - start),
        "seconds under load": round(time.monotonic() - started),
        "acknowledged changes": dict(trial.acknowledged),
        "lost or too much": faults,
        "wrong answers": trial.wrong,
        "refused": {" | ".join(key): count for key, count in sorted(trial.refused.items())},
        "refused while servers restart": sum(
            count for (phase, *_), count in trial.refused.items() if phase == RESTART
        ),
        "times": {
            phase: {
                kind: percentiles(trial.seconds[phase, kind])
                for kind in dict.fromkeys(KINDS)
                if trial.seconds.get((phase, kind))
            }
            for phase in phases
        },
    }


def percentiles(taken: Sequence[float]) -> dict[str, float]:
    """p50, p99 and the longest, in ms."""
    at = statistics.quantiles(taken, n=100, method="inclusive") if len(taken) > 1 else [*taken] * 99
    told = {"n": len(taken), "p50": at[49], "p99": at[98], "longest": max(taken)}
    return {name: value if name == "n" else round(1000 * value) for name, value in told.items()}


def main() -> None:
    """Prints a table, and writes all of it as JSON where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    plan = Plan()
    parser.add_argument("model", type=Path)
    parser.add_argument("--texts", type=Path, required=True, help="one a line")
    parser.add_argument("--memory", type=Path, required=True, help="a file of translated segments")
    parser.add_argument("--most", type=int, default=20_000, help="segments of the memory")
    parser.add_argument(
        "--folder", type=Path, help="of the cluster; a new temporary one by default"
    )
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--connections", type=int, default=plan.connections)
    parser.add_argument("--pause", type=float, default=plan.pause, help="mean seconds")
    parser.add_argument("--quiet", type=float, default=plan.quiet, help="seconds after a failure")
    parser.add_argument("--kills", type=int, default=plan.kills, help="of each part")
    parser.add_argument("--hangs", type=int, default=plan.hangs, help="of each part")
    parser.add_argument("--seconds-of-hanging", type=float, default=plan.hanging)
    parser.add_argument("--seed", type=int, default=plan.seed)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    from itertools import islice

    from tmnmt.formats import read_memories

    plan = Plan(
        given.connections,
        given.pause,
        given.quiet,
        given.kills,
        given.hangs,
        given.seconds_of_hanging,
        seed=given.seed,
    )
    texts = [line for line in given.texts.read_text(encoding="utf-8").splitlines() if line.strip()]
    segments = [*islice(read_memories([given.memory], "en", "fr"), given.most)]
    folder = given.folder or Path(tempfile.mkdtemp(prefix="tmnmt-cluster-"))
    module, load, start = cluster_module(), os.getloadavg(), time.monotonic()

    def tell(line: str) -> None:
        print(f"{time.monotonic() - start:6.0f} s  {line}", file=sys.stderr, flush=True)

    with module.Cluster(folder, given.model, given.nodes, memories=["law"], quick=True) as cluster:
        cluster.folder.chmod(0o755)
        trial = Trial(plan, texts, cluster.port)
        report = run(cluster, trial, segments, tell)
    report["load before and after"] = [load[0], os.getloadavg()[0]]
    print(f"{'':<28} {'n':>6} {'p50 ms':>8} {'p99':>8} {'longest':>8}")
    for phase, kinds in report["times"].items():
        for kind, told in kinds.items():
            name = f"{phase}, {kind}"
            times = (f"{told[which]:>8,}" for which in ("p50", "p99", "longest"))
            print(f"{name:<28} {told['n']:>6}", *times)
    for what, value in report.items():
        if what != "times":
            print(f"{what}: {value}")
    if given.json is not None:
        given.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if (
        report["lost or too much"]
        or report["wrong answers"]
        or report["refused while servers restart"]
    ):
        sys.exit(1)


if __name__ == "__main__":
    main()
