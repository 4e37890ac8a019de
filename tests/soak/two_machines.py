"""Train on two machines that are network namespaces of this one, and compare the weights with those of one process.

    sudo python -m tests.soak.two_machines

Each machine has its own network interface and address, and a torchrun with one process. The same training runs three
times: in one process; on two machines; and on two machines of which one loses its training process, which torchrun
starts again. The weights must be bit for bit the same. Needs Linux and the right to create network namespaces; without
it, the test is skipped: a line says so, and the exit code is 0.
"""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from safetensors.torch import load_file

from tests.processes import children_of
from tests.tiny import TINY, write_corpora

ADDRESSES = ("10.77.53.1", "10.77.53.2")
STEPS = 240
SETTINGS = [
    *(item for item in TINY if not item.startswith("run_dir=")),
    f"trainer.max_steps={STEPS}",
    "trainer.log_every_n_steps=5",
    "validation.every=20",
    # Two processes draw other random numbers than one.
    "model.dropout=0",
    "resume=auto",
]


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


@contextmanager
def two_machines() -> Iterator[list[str]]:
    """Creates two network namespaces that are connected by a pair of interfaces of the same names."""
    names = [f"nmt{os.getpid()}{side}" for side in "ab"]
    with ExitStack() as stack:
        for name in names:
            ip("netns", "add", name)
            stack.callback(ip, "netns", "del", name)
        ip("link", "add", names[0], "netns", names[0], "type", "veth", "peer", "name", names[1], "netns", names[1])
        for name, address in zip(names, ADDRESSES, strict=True):
            ip("-n", name, "address", "add", f"{address}/24", "dev", name)
            ip("-n", name, "link", "set", name, "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names


def start(folder: Path, run: str, machine: int, name: str, log: Path) -> subprocess.Popen[bytes]:
    """torchrun on one of the machines, in a process group of its own; its output is added to a log."""
    # Debian gives the host's name the address 127.0.0.1, so both programs must be told which interface to use.
    # Beside other work, both torchruns may need several attempts until their processes meet.
    torchrun = ["--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", "--rdzv-id=1", "--max-restarts=10"]
    torchrun += [f"--rdzv-endpoint={ADDRESSES[0]}:29500", f"--rdzv-conf=is_host={1 - machine}"]
    torchrun += [f"--local-addr={ADDRESSES[machine]}"]
    training = ["-m", "nmt.train", *SETTINGS, f"run_dir={run}", "trainer=ddp", "trainer.num_nodes=2"]
    training += ["trainer.devices=1"]
    with log.open("ab") as output:
        return subprocess.Popen(
            ["ip", "netns", "exec", name, sys.executable, "-m", "torch.distributed.run", *torchrun, *training],
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": name},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def wait_for(log: Path, step: int, *processes: subprocess.Popen[bytes]) -> None:
    """Waits until a log names a step, or a later one."""
    while max(map(int, re.findall(rf"step (\d+)/{STEPS}", log.read_text(encoding="utf-8"))), default=0) < step:
        if any(process.poll() is not None for process in processes):
            sys.exit(f"A machine stopped before step {step}:\n{log.read_text(encoding='utf-8')}")
        time.sleep(0.2)


def stop(machine: subprocess.Popen[bytes]) -> None:
    """Ends a torchrun that is still running, and its training process, which has a process group of its own."""
    if machine.poll() is not None:
        return
    groups = [machine.pid, *children_of(machine.pid)]
    os.killpg(machine.pid, signal.SIGTERM)  # torchrun ends its processes, and kills them after 30 seconds
    try:
        machine.wait(timeout=45)
    except subprocess.TimeoutExpired:
        for group in groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        machine.wait()


def same_weights(one: Path, other: Path) -> bool:
    weights, others = load_file(one / "model.safetensors"), load_file(other / "model.safetensors")
    return weights.keys() == others.keys() and all(weight.equal(others[key]) for key, weight in weights.items())


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what has been started is ended
    with TemporaryDirectory() as folder_name, ExitStack() as stack:
        folder = write_corpora(Path(folder_name))
        try:
            names = stack.enter_context(two_machines())
        except (OSError, subprocess.CalledProcessError) as error:
            reason = (getattr(error, "stderr", None) or str(error)).strip()
            print(
                f"SKIPPED: two machines. Network namespaces cannot be created here ({reason}): run it as root, or with "
                "sudo."
            )
            return
        one = [*SETTINGS, "run_dir=one", "trainer.accumulate_grad_batches=2"]
        subprocess.run([sys.executable, "-m", "nmt.train", *one], cwd=folder, check=True, capture_output=True)
        results = []
        for run in ("two", "killed"):
            logs = [folder / f"{run}{machine}.log" for machine in (0, 1)]
            machines: list[subprocess.Popen[bytes]] = []
            try:
                machines += (start(folder, run, machine, names[machine], logs[machine]) for machine in (0, 1))
                if run == "killed":
                    wait_for(logs[0], 45, *machines)
                    (worker,) = children_of(machines[1].pid)
                    os.kill(worker, signal.SIGKILL)
                    print("killed the training process of the second machine", file=sys.stderr)
                codes = [machine.wait() for machine in machines]
            finally:
                for machine in machines:
                    stop(machine)
            same = codes == [0, 0] and same_weights(folder / "one", folder / run)
            resumed = logs[0].read_text(encoding="utf-8").count("resumed from last.ckpt")
            results.append(same and (resumed > 0) == (run == "killed"))
            outcome = "the weights of one process, bit for bit" if same else "OTHER WEIGHTS"
            print(f"{run}: exit codes {codes}, resumed {resumed} times, {outcome}")
            if not results[-1]:
                print(*("\n".join(log.read_text(encoding="utf-8").splitlines()[-40:]) for log in logs), sep="\n\n")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime:.0f} CPU seconds")
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
