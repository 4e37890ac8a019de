"""Lists of sizes on a command line: 16,64,256."""


def size_list(option: str, text: str, least: int) -> list[int]:
    """The numbers of a list. Raises ValueError unless they rise and are at least `least`."""
    sizes = [int(part) if part.isdecimal() else -1 for part in text.split(",")]
    if min(sizes) < least or sizes != sorted(set(sizes)):
        raise ValueError(f"{option} is '{text}'; give rising numbers of at least {least}, as in {least},{2 * least}.")
    return sizes
