"""The settings of nmt.export_attention."""

from nmt.config.shared_settings import DrawingSettings, MapFileSettings


class ExportAttentionSettings(DrawingSettings, MapFileSettings):
    pass
