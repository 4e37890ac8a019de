"""The settings of nmt.score."""

from nmt.config.fields import Device, Keys, Positive, Text, TextOrTexts


class ScoreSettings(Keys):
    run_dir: TextOrTexts
    source: Text
    target: Text
    documents: Text | None
    batch_tokens: Positive
    device: Device
