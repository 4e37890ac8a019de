"""The page that is one file in a browser on one core: how long until a translation and the effect of a change appear."""

import argparse
import os
import statistics
import time
from pathlib import Path
from typing import Any

from nmt.errors import Mistake
from nmt.files import existing_file
from nmt.text.lines import read_lines
from scripts.bench.viewer_cost import chromium

_STEPS = {"opened": "first translation after opening", "translation": "whole translation", "change": "result of a change"}

# Resolves to the milliseconds from a click until the page shows all results.
_UNTIL_SHOWN = """selector => new Promise(resolve => {
    const results = document.querySelector("#results"), began = performance.now();
    new MutationObserver((_, observer) => {
        if (results.ariaBusy !== "false") return;
        observer.disconnect();
        requestAnimationFrame(() => resolve(performance.now() - began));
    }).observe(results, { attributes: true });
    document.querySelector(selector).click();
})"""
