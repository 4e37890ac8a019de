"""Completion of `nmt` in bash and zsh: a script with all commands, keys and choices, so that Tab starts no Python."""

from collections.abc import Iterator, Sequence
from typing import Any

from nmt.config.messages import unknown
from nmt.config.nodes import CONFIGS, read_yaml
from nmt.errors import Mistake

SHELLS = ("bash", "zsh")

# bash completes what follows the last '=' as a word of its own; zsh, through bashcompinit, the whole argument.
_SCRIPT = """\
_nmt() {{
  [ -n "${{ZSH_VERSION-}}" ] && setopt local_options sh_word_split
  local line=${{COMP_LINE:0:$COMP_POINT}} current prefix candidates
  current=${{line##*[[:space:]]}}
  set -- $line
  shift
  case $# in
    0) candidates="{commands}" ;;
    1) if [ -n "$current" ]; then candidates="{commands}"; fi ;;
  esac
  if [ -z "$candidates" ]; then
    case ${{1#nmt.}} in
{cases}
    esac
  fi
  COMPREPLY=($(compgen -W "$candidates" -- "$current"))
  if [ ${{#COMPREPLY[@]}} = 1 ] && [ "${{COMPREPLY[*]%=}}" != "${{COMPREPLY[*]}}" ]; then
    compopt -o nospace 2> /dev/null
  fi
  case $COMP_WORDBREAKS in
    *=*)
      prefix=${{current%"${{current##*=}}"}}
      COMPREPLY=("${{COMPREPLY[@]#"$prefix"}}")
      ;;
  esac
}}
complete -o default -F _nmt nmt
"""


def completion_script(shell: str, commands: Sequence[str]) -> str:
    """The script for a shell. Raises Mistake for a shell that is not in SHELLS."""
    if shell not in SHELLS:
        raise Mistake(unknown("shell", shell, SHELLS))
    cases = "\n".join(f'      {name}) candidates="{" ".join(candidates(name))}" ;;' for name in commands)
    script = _SCRIPT.format(commands=" ".join(commands), cases=cases)
    return script if shell == "bash" else f"autoload -U +X bashcompinit && bashcompinit\n{script}"


def candidates(command: str) -> list[str]:
    """What can follow a command: GROUP=CHOICE for each choice of its groups, KEY= for each key, and --help."""
    groups, config = _groups_and_keys(command)
    choices = [
        f"{group}={file.stem}"
        for group in groups
        if "@" not in group
        for file in sorted(CONFIGS.glob(f"{group}/*.yaml"))
    ]
    return [*choices, *sorted(f"{key}=" for key in _keys(config)), "--help"]


def _groups_and_keys(command: str) -> tuple[list[str], dict[str, Any]]:
    """The groups and the keys of a command's file, and of the command that it extends."""
    config = read_yaml(CONFIGS / f"{command}.yaml")
    groups, keys = list[str](), dict[str, Any]()
    for entry in config.pop("defaults", []):
        if isinstance(entry, dict):
            groups += entry
        elif entry != "_self_":
            extended_groups, extended_keys = _groups_and_keys(entry)
            groups += extended_groups
            keys |= extended_keys
    config.pop("hydra", None)
    return groups, {**keys, **config}


def _keys(node: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in node.items():
        if isinstance(value, dict) and value and not key.startswith("_"):
            yield from _keys(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"
