"""Lists of sizes on the command line, such as 16,64,256."""

from nmt.errors import Mistake


def size_list(option: str, text: str, least: int) -> list[int]:
    """The sizes in a list. Raises Mistake unless they are ascending and at least `least`."""
    sizes = [int(part) if part.isdecimal() else -1 for part in text.split(",")]
    if min(sizes) < least or sizes != sorted(set(sizes)):
        raise Mistake(f"{option} is '{text}'; use ascending numbers of at least {least}, such as {least},{2 * least}.")
    return sizes
