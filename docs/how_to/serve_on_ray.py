from pathlib import Path

from ray import serve

from nmt.serving.application import application
from nmt.serving.batcher import Batcher
from nmt.serving.gallery import Gallery
from nmt.serving.service import Access, Limits, Service


def build():
    """The HTTP application of a replica."""
    gallery = Gallery([Path("/runs/production")], device="cpu", precision="float32", max_models=4)
    batcher = Batcher(gallery, batch_tokens=4096, batch_window=0.005, max_waiting=1024)
    limits = Limits(characters=5000, sentences=200, alternatives=4, body_bytes=1_000_000, seconds=60.0, requests=768)
    return application(Service(gallery, batcher, limits, Access(frozenset(), None, (), {"*"})))


@serve.deployment(num_replicas=2)
@serve.ingress(build)
class Translation:
    """Replicas of the server."""


app = Translation.bind()
