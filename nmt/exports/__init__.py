"""Takes finished runs away: CTranslate2, Hugging Face, ONNX and Argos, and translation with their engines."""
