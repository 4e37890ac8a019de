"""A launcher of Hydra that needs no other package, and runs each job in a process of its own, as if on a machine."""

import os
import signal
from collections.abc import Sequence

from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus, run_job
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig, open_dict


class MachinesLauncher(Launcher):
    """Runs the jobs one after another and ignores how they end. Machine number `lost` loses its power at once."""

    def __init__(self, lost: int) -> None:
        self.lost = lost

    def setup(self, *, hydra_context: object, task_function: object, config: DictConfig) -> None:
        self.hydra_context, self.task_function, self.config = hydra_context, task_function, config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        for number, overrides in enumerate(job_overrides, initial_job_idx):
            machine = os.fork()
            if machine == 0:
                try:
                    self._run(number, overrides)
                finally:
                    os._exit(1)
            os.waitpid(machine, 0)
        return [JobReturn(status=JobStatus.COMPLETED) for _ in job_overrides]

    def _run(self, number: int, overrides: Sequence[str]) -> None:
        if number == self.lost:
            os.kill(os.getpid(), signal.SIGKILL)
        config = self.hydra_context.config_loader.load_sweep_config(self.config, list(overrides))
        with open_dict(config):
            config.hydra.job.id, config.hydra.job.num = str(number), number
        HydraConfig.instance().set_config(config)
        run_job(
            hydra_context=self.hydra_context,
            task_function=self.task_function,
            config=config,
            job_dir_key="hydra.sweep.dir",
            job_subdir_key="hydra.sweep.subdir",
        )


# Hydra imports every module of the package hydra_plugins that it finds.
ConfigStore.instance().store(
    group="hydra/launcher",
    name="machines",
    node={"_target_": "hydra_plugins.machines.MachinesLauncher", "lost": -1},
)
