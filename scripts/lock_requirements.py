"""Write requirements/*.txt: the exact version and the hashes of every package that make installs.

  pip install uv && python -m scripts.lock_requirements

base.txt has what nmt needs, and serve.txt, docs.txt and dev.txt what each extra adds. They fit Python 3.11 to 3.13 on
Linux, macOS and Windows. torch has the hashes of all its wheels on PyPI and of the wheel for CPUs that the published
figures were made with. What torch alone needs (CUDA, on Linux) is left out: a machine without a GPU must not download
it, and the wheel of torch names its exact versions. So pip installs torch and these packages without checking hashes.
"""

import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("serve", "docs", "dev")
TORCH_ALONE = re.compile(r"(nvidia|cuda|triton)\b")
# torch 2.13.0+cpu for Python 3.11 on Linux with x86-64.
TORCH_FOR_CPUS = "6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b"
BUILD = "hatchling>=1.26\neditables\n"  # pip cannot check the hashes of what it installs to build a package


def locked(extra: str | None) -> list[str]:
    """The requirements with an extra, each with its hashes on lines of their own."""
    with tempfile.TemporaryDirectory() as folder:
        build = Path(folder) / "build.in"
        build.write_text(BUILD, encoding="utf-8")
        options = ["--universal", "--python-version", "3.11", "--generate-hashes", "--no-annotate", "--no-header"]
        options += ["--no-emit-index-url", "--quiet", "--constraint", "constraints.txt"]
        options += ["--extra", extra] if extra else []
        command = ["uv", "pip", "compile", *options, "pyproject.toml", str(build)]
        text = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    requirements = re.split(r"\n(?=\S)", text.strip())
    kept = [requirement for requirement in requirements if not TORCH_ALONE.match(requirement)]
    return [
        f"{requirement} \\\n    --hash=sha256:{TORCH_FOR_CPUS}" if requirement.startswith("torch==") else requirement
        for requirement in kept
    ]


def main() -> None:
    base = locked(None)
    for name, requirements in {"base": base, **{extra: locked(extra) for extra in EXTRAS}}.items():
        added = requirements if name == "base" else [package for package in requirements if package not in base]
        head = f"# Written by scripts/lock_requirements.py{'' if name == 'base' else ', to install after base.txt'}.\n"
        (ROOT / "requirements" / f"{name}.txt").write_text(head + "\n".join(added) + "\n", encoding="utf-8")
        print(f"requirements/{name}.txt: {len(added)} packages")


if __name__ == "__main__":
    main()
