"""Try hostile but plausible command lines of every command, and count how they end.

    python -m tests.soak.command_lines --inputs 3000 --seed 2 --commands translate score

The kinds of command lines that break the law of tests/command_lines.py are printed, with an example of each, and the
exit code is 1. --show prints every message once.
"""

import argparse
import re
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from command_lines import COMMANDS, World, command_lines, faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", nargs="*", default=COMMANDS, choices=COMMANDS)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    codes, broken, slow, messages = Counter[tuple[str, int]](), Counter[str](), Counter[str](), dict[str, str]()
    started = time.monotonic()
    with TemporaryDirectory() as folder:
        world = World(Path(folder))
        for number, line in enumerate(command_lines(options.inputs, options.seed, options.commands), start=1):
            begun = time.monotonic()
            ended = world.run(line)
            seconds = time.monotonic() - begun
            codes[line.name, ended.code] += 1
            slow[line.name] += seconds
            found = faults(line, ended)
            if seconds > 10 or (ended.code == 143 and line.name not in ("train", "pretrain")):
                print(f"[{number}] {seconds:.0f} s: {line}", flush=True)
            last = ended.errors.rstrip("\n").rpartition("\n")[2]
            for fault in found:
                broken[fault] += 1
                if broken[fault] <= 12:
                    print(f"[{number}] {fault}: {line}\n    {ended.code}: {last[:600]!a}", flush=True)
                    if fault == "a traceback":
                        print("    " + "\n    ".join(ended.errors.strip().split("\n")[-9:-2]), flush=True)
                    if "change" in fault or "write" in fault:
                        print("   ", sorted(ended.created | ended.changed | ended.outside)[:8], flush=True)
                    if "words" in fault or "results" in fault:
                        print("   ", (ended.output if "results" in fault else ended.errors)[:400], flush=True)
            if options.show and ended.code in (1, 2):
                kind = re.sub(r"[\w./]*\d[\w./]*", "0", last)
                messages.setdefault(kind[:60], f"{line}\n    {last[:400]}")
        world.close()
    for name in COMMANDS:
        counts = {code: number for (command, code), number in sorted(codes.items()) if command == name}
        if counts:
            print(f"{name:20} {sum(counts.values()):>6} in {slow[name]:5.0f} s: exit codes {counts}")
    for message in messages.values():
        print(message)
    seconds = time.monotonic() - started
    print(
        f"{options.inputs} command lines in {seconds:.0f} s, seed {options.seed}: {dict(broken) or 'all keep the law'}"
    )
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
