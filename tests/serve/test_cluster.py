"""A cluster on this machine, of which each part is killed and hung under load: the short form of
`benchmarks/cluster_trial.py`. And the files for a cluster of containers and of units."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import cluster_trial
import pytest
import yaml
from cluster_trial import Plan, Trial, cluster_module
from elastic_server import script
from places import JRC, ROOT
from required import absent
from tiny_model import PAIRS, write_tiny_model

from tmnmt.formats import read_memories

CLUSTER = ROOT / "deploy" / "cluster"
NEEDED = {"redis": "redis-server", "proxies": "caddy"}


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that `nobody` can reach, who runs Elasticsearch (pytest's are private)."""
    folder = Path(tempfile.mkdtemp(prefix="tmnmt-cluster-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_cluster_whose_parts_are_killed_and_hang_loses_nothing(place: Path) -> None:
    if trouble := script().missing():
        absent("elasticsearch", trouble)
    for kind, program in NEEDED.items():
        if shutil.which(program) is None:
            absent(kind, f"no {program} is installed: apt-get install {program}")
    write_tiny_model(place / "model")
    segments = [*read_memories([JRC], "en", "fr")][:200]
    texts = [source for source, _ in PAIRS] + [segment.src for segment in segments[:6]]
    plan = Plan(connections=4, pause=0.2, quiet=0.5, kills=1, hangs=1, hanging=2.0, away=0.2)
    cluster = cluster_module().Cluster(
        place / "cluster", place / "model", nodes=1, memories=["law"], quick=True
    )
    told = list[str]()
    with cluster:
        trial = Trial(plan, texts, cluster.port)
        report = cluster_trial.run(cluster, trial, segments, told.append)
    assert not report["lost or too much"] and not report["wrong answers"]
    assert report["refused while servers restart"] == 0
    assert report["acknowledged changes"]["confirm"] and report["acknowledged changes"]["desk"]
    parts = ("elasticsearch-1", "redis", "tmnmt-1", "caddy")
    assert {f"{action} {part}" for action in ("kill", "hang") for part in parts} <= {*told}
    assert "stopping tmnmt-2" in told


def test_the_containers_are_the_parts_of_the_cluster() -> None:
    composed = yaml.safe_load((CLUSTER / "compose.yaml").read_text(encoding="utf-8"))
    (included,) = composed["include"]
    nodes = yaml.safe_load((CLUSTER / included).read_text(encoding="utf-8"))
    services = composed["services"]
    assert set(services) == {"redis", "tmnmt01", "tmnmt02", "proxy"}
    assert not set(services) & set(nodes["services"])
    variables = composed["x-server"]["environment"]
    named = (CLUSTER / "serve.toml").read_text(encoding="utf-8")
    assert all("${" + name + "}" in named for name in ("TMNMT_SESSIONS", "TMNMT_MODEL"))
    hosts = variables["TMNMT_CLUSTER"].removeprefix("elasticsearch+https://").split(",")
    assert {host.removesuffix(":9200") for host in hosts} == set(nodes["services"]) - {"setup"}
    asked = services["proxy"]["environment"]["TMNMT_SERVERS"].split()
    assert asked == ["tmnmt01:5051", "tmnmt02:5051"]
    mounted = [volume for service in services.values() for volume in service["volumes"]]
    for volume in mounted:
        source = volume.partition(":")[0]
        given = source in ("./keys.toml", "./models")  # by who runs it
        volumes = {**composed["volumes"], **nodes["volumes"]}
        assert given or source in volumes or (CLUSTER / source).is_file()
    for name in ("es01", "es02", "es03"):
        settings = nodes["services"][name]["volumes"][0].partition(":")[0]
        assert (CLUSTER / included).parent.joinpath(settings).is_file()


def test_the_unit_of_several_servers_is_one_of_systemd(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd-analyze is installed")
    folder = tmp_path / "tmnmt@.service.d"
    folder.mkdir()
    unit = (ROOT / "deploy" / "tmnmt.service").read_text(encoding="utf-8")
    (tmp_path / "tmnmt@.service").write_text(unit, encoding="utf-8")
    more = (CLUSTER / "instance.conf").read_text(encoding="utf-8")
    (folder / "instance.conf").write_text(more.replace("/opt/tmnmt/bin/tmnmt", sys.executable))
    verify = [program, "verify", str(tmp_path / "tmnmt@5051.service")]
    done = subprocess.run(
        verify, env={"SYSTEMD_UNIT_PATH": f"{tmp_path}:"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
