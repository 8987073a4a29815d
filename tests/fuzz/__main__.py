"""``python -m tests.fuzz``: looks for inputs that break a law, for as long as it is told.

    make fuzz MINUTES=10 TARGET=decoders
    python -m tests.fuzz --minutes 10 --target decoders --target schema
    python -m tests.fuzz --replay tests/fuzz/found/*.json

Coverage-guided by atheris where it is installed (extra ``fuzz``; its wheels are for Linux), by hypothesis otherwise. Each
target is run in a process of its own, one after another, and has an equal share of the time. A find is written to
``fuzz-finds/`` with its error, its place in the source and its bytes, once for each place; a run goes on behind it. What
ends the process (a hang of 25 s, 2 GiB of memory) leaves the input there as libFuzzer writes it. The exit status is 1 where
something was found.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import subprocess
import sys
import time
from pathlib import Path

SHARE_MIN_S = 2
HANG_S = 25
MEMORY_MIB = 2048
MAX_BYTES = 1 << 15


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10, help="of all targets together (default: 10)")
    parser.add_argument("--target", action="append", help="one of them, again for more (default: all)")
    parser.add_argument("--seed", type=int, help="of the mutations (default: by the clock)")
    parser.add_argument("--finds", type=Path, default=Path("fuzz-finds"), help="folder (default: fuzz-finds)")
    parser.add_argument("--engine", choices=["atheris", "hypothesis"], help="default: atheris where it is installed")
    parser.add_argument("--replay", nargs="+", type=Path, metavar="FILE", help="run finds again instead")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.replay:
        return replay(options.replay)
    engine = options.engine or ("atheris" if importlib.util.find_spec("atheris") else "hypothesis")
    if options.inside:
        return inside(options.target[0], options.minutes * 60, options.seed, options.finds, engine)
    return outside(options, engine)


def replay(paths: list[Path]) -> int:
    from tests.fuzz import finds, targets  # noqa: PLC0415 - the engine instruments what is imported

    broken = 0
    for path in paths:
        if path.suffix == ".json":
            find = finds.read_find(path)
        else:  # libFuzzer's own: decoders-crash-…, cuts-timeout-…
            find = finds.Find(path.name.partition("-")[0], "", "", path.read_bytes())
        try:
            targets.run(find.target, find.data)
        except Exception as error:  # noqa: BLE001 - any error is what a find is
            broken += 1
            print(f"{path}: {type(error).__name__}: {str(error)[:600]}")
        else:
            print(f"{path}: holds")
    return min(broken, 1)


def outside(options: argparse.Namespace, engine: str) -> int:
    """Every target in a process of its own, which a hang or the lack of memory ends alone."""
    from tests.fuzz import targets  # noqa: PLC0415

    names = options.target or list(targets.TARGETS)
    if unknown := [name for name in names if name not in targets.TARGETS]:
        print(f"no such target: {', '.join(unknown)} (there are {', '.join(targets.TARGETS)})", file=sys.stderr)
        return 2
    share = max(SHARE_MIN_S / 60, options.minutes / len(names))
    status = 0
    for number, name in enumerate(names):
        seed = int(time.time()) if options.seed is None else options.seed
        command = [
            sys.executable, "-m", "tests.fuzz", "--inside", "--engine", engine, "--target", name, "--minutes", str(share),
            "--seed", str(seed + number), "--finds", str(options.finds),
        ]  # fmt: skip
        done = subprocess.run(command, check=False)
        status |= int(done.returncode != 0)
    return status


class Session:
    """One target being fuzzed: counts what was run, and writes each find once."""

    def __init__(self, target: str, finds: Path, seconds: float) -> None:
        from tests.fuzz import finds as module  # noqa: PLC0415
        from tests.fuzz import targets  # noqa: PLC0415

        self.target, self.folder, self.module, self.run_one = target, finds, module, targets.run
        self.runs = 0
        self.known: dict[tuple[str, str, str], Path] = {}
        self.began = time.monotonic()
        self.seconds = seconds

    @property
    def is_over(self) -> bool:
        return time.monotonic() - self.began >= self.seconds

    def run(self, data: bytes) -> None:
        self.runs += 1
        try:
            self.run_one(self.target, data)
        except Exception as error:  # noqa: BLE001 - any error is what a find is
            find = self.module.find_of(self.target, data, error)
            if find.kind not in self.known:
                self.known[find.kind] = find.write(self.folder)
                print(f"{self.target}: {find.error[:300]} ({find.where}), in {self.known[find.kind]}", flush=True)

    def told(self) -> None:
        minutes = (time.monotonic() - self.began) / 60
        print(f"{self.target}: {self.runs:,} runs in {minutes:.1f} minutes, {len(self.known)} finds", flush=True)


def inside(target: str, seconds: float, seed: int, finds: Path, engine: str) -> int:
    return (with_atheris if engine == "atheris" else with_hypothesis)(target, seconds, seed, finds)


def with_atheris(target: str, seconds: float, seed: int, finds: Path) -> int:
    import atheris  # noqa: PLC0415 - an extra

    with atheris.instrument_imports(include=["streamkit"]):
        from tests.fuzz import seeds  # noqa: PLC0415
    from tests.fuzz.mutate import mutated  # noqa: PLC0415

    session = Session(target, finds, seconds)
    given = seeds.seeds(target)
    corpus = finds / f"corpus-{target}"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(given):
        (corpus / f"seed-{number}").write_bytes(data[:MAX_BYTES])

    def mutator(data: bytes, most: int, number: int) -> bytes:
        chance = random.Random(number)
        if chance.randrange(4) == 0:
            return atheris.Mutate(data, most)
        return mutated(chance, data, most)

    def once(data: bytes) -> None:
        session.run(data)
        if session.is_over:
            session.told()
            sys.stdout.flush()
            import os  # noqa: PLC0415

            os._exit(min(len(session.known), 1))  # libFuzzer looks at the clock only between its own rounds

    arguments = [
        "fuzz", str(corpus), f"-seed={seed % (1 << 31)}", f"-max_len={MAX_BYTES}", f"-timeout={HANG_S}", "-print_final_stats=0",
        f"-rss_limit_mb={MEMORY_MIB}", f"-artifact_prefix={finds}/{target}-", "-verbosity=0", f"-max_total_time={int(seconds) + 60}",
    ]  # fmt: skip
    atheris.Setup(arguments, once, custom_mutator=mutator)
    atheris.Fuzz()
    return 1


def with_hypothesis(target: str, seconds: float, seed: int, finds: Path) -> int:
    from hypothesis import HealthCheck, Phase, given, settings  # noqa: PLC0415
    from hypothesis import seed as seeded  # noqa: PLC0415
    from hypothesis import strategies as st  # noqa: PLC0415

    from tests.fuzz import seeds  # noqa: PLC0415
    from tests.fuzz.mutate import mutated  # noqa: PLC0415

    session = Session(target, finds, seconds)
    beginnings = seeds.seeds(target)
    rounds = 0
    while not session.is_over:

        @seeded(seed + rounds)
        @settings(
            max_examples=2000,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.sampled_from(beginnings), st.integers(0, (1 << 64) - 1))
        def once(data: bytes, number: int) -> None:
            if not session.is_over:
                session.run(mutated(random.Random(number), data, MAX_BYTES))

        once()
        rounds += 1
    session.told()
    return min(len(session.known), 1)


if __name__ == "__main__":
    sys.exit(main())
