"""The film of a run: a page that plays the attention maps of its validations."""

import logging
from pathlib import Path

from nmt.errors import Mistake
from nmt.maps.map_files import MapFolder, map_folders
from nmt.pages.viewer import viewed_runs, write_viewer

logger = logging.getLogger(__name__)


def write_film(probes: Path) -> None:
    """Writes the page that plays the maps in a folder of probes, one step after another, if there are any."""
    try:
        # A folder without a manifest was left by a process that was stopped while writing.
        folders = [MapFolder(folder) for folder in map_folders(probes) if folder != probes]
        if folders:
            write_viewer(probes / "viewer.html", viewed_runs(folders))
    except (OSError, Mistake) as error:
        # A finished run must not fail because of a picture.
        logger.warning("The film of the probes in %s could not be written: %s", probes, error)
