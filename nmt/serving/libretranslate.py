"""The interfaces that programs already speak: LibreTranslate's, and DeepL's shape of a translation."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import py3langid
from fastapi import APIRouter, HTTPException, Request
from pydantic import Field

from nmt.serving.engine import Engine, Task
from nmt.serving.gallery import Gallery
from nmt.serving.requests import Body, Limits, check_key, failures, read, takes, within
from nmt.serving.texts import translated_html, translated_texts

NAMES = {"en": "English", "vi": "Vietnamese", "de": "German", "fr": "French", "cs": "Czech", "ru": "Russian"}


class TranslateBody(Body):
    """What /translate takes."""

    q: str | list[str] = Field(description="a text, or a list of texts")
    source: str = Field(description="a language code, or auto")
    target: str = Field(description="a language code")
    format: str = Field("text", description="text or html")
    alternatives: int = Field(0, ge=0, description="how many further translations to return")
    api_key: str | None = None


class DetectBody(Body):
    """What /detect takes."""

    q: str | list[str]
    api_key: str | None = None


class DeepLBody(Body):
    """What /v2/translate takes."""

    text: list[str]
    target_lang: str
    source_lang: str | None = None
    tag_handling: Literal["html"] | None = None


class Languages:
    """The languages of a gallery, and which of them a text is in."""

    def __init__(self, gallery: Gallery) -> None:
        self.directions = list(dict.fromkeys(run.direction for run in gallery.offered.values()))
        self.codes = sorted({code for each in self.directions for code in (each.source, each.target)})

    def targets(self, source: str) -> list[str]:
        """The languages that can be translated into from `source`."""
        return [each.target for each in self.directions if each.source == source]

    def detect(self, text: str) -> list[dict[str, Any]]:
        """The languages that a text may be in, the most likely first, with a confidence from 0 to 100."""
        py3langid.set_languages(self.codes)
        ranked = [(code, float(log_prob)) for code, log_prob in py3langid.rank(text)]
        highest = max(log_prob for _, log_prob in ranked)
        total = sum(math.exp(log_prob - highest) for _, log_prob in ranked)
        return [
            {"confidence": round(100 * math.exp(log_prob - highest) / total, 1), "language": code}
            for code, log_prob in ranked
        ]


class Interface:
    """What the endpoints below need."""

    def __init__(self, gallery: Gallery, engine: Engine, limits: Limits, keys: frozenset[str]) -> None:
        self.gallery, self.engine, self.limits, self.keys = gallery, engine, limits, keys
        self.languages = Languages(gallery)

    async def translated(
        self, request: Request, texts: Sequence[str], source: str, target: str, kind: str, alternatives: int
    ) -> list[list[str]]:
        """The translations of each text, best first. Raises HTTPException for what cannot be translated."""
        self.check_size(texts)
        for code in (source, target):
            if code not in self.languages.codes:
                raise HTTPException(400, f"{code} is not supported")
        if kind not in ("text", "html"):
            raise HTTPException(400, f"{kind} format is not supported")
        if alternatives > self.limits.alternatives:
            raise HTTPException(400, f"Invalid request: alternatives must be at most {self.limits.alternatives}")
        if source == target:
            return [[text] for text in texts]
        run = self.gallery.for_direction(source, target)
        if run is None:
            raise HTTPException(400, f"{target} is not available as a target language from {source}")
        number = alternatives + 1
        settings = (("n_best", number), ("beam_size", max(5, number))) if alternatives else ()

        async def translate(sentences: Sequence[str]) -> list[list[str]]:
            if len(sentences) > self.limits.sentences:
                raise HTTPException(
                    400,
                    f"Invalid request: {len(sentences)} sentences exceed the limit of {self.limits.sentences}",
                )
            found = await self.engine.translate(Task(run.name, settings), sentences)
            return [[each.text for each in translations] or [""] for translations in found]

        way = translated_html if kind == "html" else translated_texts
        return await within(request, self.limits.seconds, way(texts, source, number, translate))

    def check_size(self, texts: Sequence[str]) -> None:
        """Raises HTTPException 400 for more characters than a request may have."""
        characters = sum(map(len, texts))
        if characters > self.limits.characters:
            raise HTTPException(
                400, f"Invalid request: request ({characters}) exceeds text limit ({self.limits.characters})"
            )


def routes(interface: Interface) -> APIRouter:
    """LibreTranslate's endpoints and DeepL's."""
    router = APIRouter(tags=["LibreTranslate"])

    @router.post("/translate", openapi_extra=takes(TranslateBody), responses=failures())
    async def translate(request: Request) -> dict[str, Any]:
        """Translates a text or a list of texts; lines and sentences are translated one by one."""
        body = await read(request, TranslateBody)
        check_key(request, body.api_key, interface.keys)
        texts = [body.q] if isinstance(body.q, str) else body.q
        answer: dict[str, Any] = {}
        source = body.source
        if source == "auto":
            interface.check_size(texts)
            detected = [interface.languages.detect(text)[0] for text in texts] or [{"confidence": 0, "language": "en"}]
            source = interface.languages.detect("\n".join(texts))[0]["language"]
            answer["detectedLanguage"] = detected[0] if isinstance(body.q, str) else detected
        found = await interface.translated(request, texts, source, body.target, body.format, body.alternatives)
        best, rest = [each[0] for each in found], [each[1:] for each in found]
        answer["translatedText"] = best[0] if isinstance(body.q, str) else best
        if body.alternatives:
            answer["alternatives"] = rest[0] if isinstance(body.q, str) else rest
        return answer

    @router.post("/detect", openapi_extra=takes(DetectBody), responses=failures())
    async def detect(request: Request) -> list[dict[str, Any]]:
        """The languages that a text may be in, among those of this server."""
        body = await read(request, DetectBody)
        check_key(request, body.api_key, interface.keys)
        text = body.q if isinstance(body.q, str) else "\n".join(body.q)
        interface.check_size([text])
        return interface.languages.detect(text)

    @router.get("/languages")
    async def languages() -> list[dict[str, Any]]:
        """The languages, and those that each can be translated into."""
        known = interface.languages
        return [
            {"code": code, "name": NAMES.get(code, code), "targets": [*known.targets(code), code]}
            for code in known.codes
            if known.targets(code)
        ]

    @router.get("/frontend/settings")
    async def frontend_settings() -> dict[str, Any]:
        """What a web page of LibreTranslate asks for at its start."""
        first = interface.languages.directions[0]
        return {
            "charLimit": interface.limits.characters,
            "frontendTimeout": 500,
            "apiKeys": bool(interface.keys),
            "keyRequired": bool(interface.keys),
            "suggestions": False,
            "filesTranslation": False,
            "supportedFilesFormat": [],
            "language": {
                side: {"code": code, "name": NAMES.get(code, code)}
                for side, code in (("source", first.source), ("target", first.target))
            },
        }

    @router.post("/v2/translate", tags=["DeepL"], openapi_extra=takes(DeepLBody), responses=failures())
    async def deepl(request: Request) -> dict[str, Any]:
        """The same in DeepL's shape; the key is in the header Authorization: DeepL-Auth-Key KEY."""
        body = await read(request, DeepLBody)
        check_key(request, None, interface.keys)
        target = body.target_lang.partition("-")[0].lower()
        interface.check_size(body.text)
        given = body.source_lang and body.source_lang.lower()
        source = given or interface.languages.detect("\n".join(body.text))[0]["language"]
        found = await interface.translated(request, body.text, source, target, body.tag_handling or "text", 0)
        return {
            "translations": [{"detected_source_language": source.upper(), "text": versions[0]} for versions in found]
        }

    return router
