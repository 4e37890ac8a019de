"""Exports of finished runs to CTranslate2, Hugging Face, ONNX and Argos, and translation with exported models."""
