"""The interfaces that existing programs use: LibreTranslate's, and translation in DeepL's format."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, HTTPException, Request
from pydantic import BaseModel, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from nmt.config.direction import LANGUAGES
from nmt.errors import TemplatedMessage
from nmt.serving.batcher import Task
from nmt.serving.gallery import OfferedRun
from nmt.serving.requests import Body, failures, read, takes, within
from nmt.serving.service import Service, ThisService
from nmt.serving.texts import translated_html, translated_texts

router = APIRouter(tags=["LibreTranslate"])
deepl = APIRouter(tags=["DeepL"])


def _as_list(value: Any) -> Any:
    """Puts a single text into a list, because a form with only one text yields a string."""
    return [value] if isinstance(value, str) else value


def _code(language: Any) -> Any:
    """A language code as this server writes it: 'en' for 'EN', 'en-US' and 'en_US'."""
    if isinstance(language, str):
        language = language.replace("_", "-").partition("-")[0].strip().lower()
    if not language:  # LibreTranslate, too, says that an empty code is missing
        raise PydanticCustomError("missing", "Field required")
    return language


def _optional_code(language: Any) -> Any:
    """A language code like `_code`, or None for a blank one."""
    is_blank = not language or (isinstance(language, str) and not language.strip())
    return None if is_blank else _code(language)


def _format(name: Any) -> Any:
    """The name of a format in lower case; clients that leave the choice to the server send null or ''."""
    return (name or "text").lower() if name is None or isinstance(name, str) else name


Code = Annotated[str, BeforeValidator(_code)]


class TranslateBody(Body):
    """The fields of /translate."""

    q: str | list[str] = Field(description="a text, or a list of texts", examples=["How old is Mai?"])
    source: Code = Field(description="a language code, or auto; case and region are ignored", examples=["en"])
    target: Code = Field(description="a language code; case and region are ignored", examples=["vi"])
    format: Annotated[str, BeforeValidator(_format)] = Field("text", description="text, also if null; or html")
    alternatives: Annotated[int, BeforeValidator(lambda number: number or 0)] = Field(
        0, ge=0, description="number of additional translations to return"
    )
    api_key: str | None = None


class DetectBody(Body):
    """The fields of /detect."""

    q: str | list[str] = Field(description="a text, or a list of texts", examples=["How old is Mai?"])
    api_key: str | None = None


class DeepLBody(Body):
    """The fields of /v2/translate."""

    text: Annotated[list[str], BeforeValidator(_as_list)] = Field(description="texts", examples=[["How old is Mai?"]])
    target_lang: Code = Field(description="a language code; case and region are ignored", examples=["VI"])
    source_lang: Annotated[str | None, BeforeValidator(_optional_code)] = Field(
        None, description="a language code; null to detect it"
    )
    tag_handling: Annotated[Literal["html", "text"], BeforeValidator(_format)] = Field(
        "text", description="html: tags are kept; null: plain text"
    )


UNKNOWN = (
    "the characters, each once, that the model never or hardly ever saw in training, so that it may invent their "
    "translation; only if the texts contain any"
)


class Detection(BaseModel):
    """A language that a text may be written in."""

    confidence: float = Field(description="from 0 to 100; about 0 for a text in none of the server's languages")
    language: str


class TranslateResponse(BaseModel):
    """The response of /translate; its fields are lists if q is a list."""

    translatedText: str | list[str]  # noqa: N815
    detectedLanguage: Detection | list[Detection] | None = Field(None, description="only if source is auto")  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = Field(None, description="only if requested")
    unknownCharacters: str | None = Field(None, description=UNKNOWN)  # noqa: N815


class Language(BaseModel):
    """A language and the languages that it can be translated into."""

    code: str
    name: str
    targets: list[str]


class DefaultLanguage(BaseModel):
    """A language that a web page selects by default."""

    code: str
    name: str


class Settings(BaseModel):
    """The response of /frontend/settings."""

    charLimit: int  # noqa: N815
    frontendTimeout: int = Field(description="milliseconds")  # noqa: N815
    apiKeys: bool  # noqa: N815
    keyRequired: bool  # noqa: N815
    suggestions: bool
    filesTranslation: bool  # noqa: N815
    supportedFilesFormat: list[str]  # noqa: N815
    language: dict[Literal["source", "target"], DefaultLanguage]


class DeepLTranslation(BaseModel):
    """The translation of one text."""

    detected_source_language: str
    text: str
    billed_characters: int = Field(description="the length of the text; DeepL's own client needs it")


class DeepLResponse(BaseModel):
    """The response of /v2/translate; the translations are in the order of the texts."""

    translations: list[DeepLTranslation]
    unknown_characters: str | None = Field(None, description=UNKNOWN)


@router.post(
    "/translate",
    response_model=TranslateResponse,
    response_model_exclude_unset=True,
    openapi_extra=takes(TranslateBody),
    responses=failures(),
)
async def translate(request: Request, service: ThisService) -> dict[str, Any]:
    """Translates a text or a list of texts, line by line and sentence by sentence."""
    body = await read(request, TranslateBody)
    service.check_key(request, body.api_key)
    texts = [body.q] if isinstance(body.q, str) else body.q
    service.check_texts(texts)
    answer: dict[str, Any] = {}
    sources = [body.source] * len(texts)
    if body.source == "auto":
        detected = [service.languages.detect(text)[0] for text in texts]
        sources = [language.language for language in detected]
        answer["detectedLanguage"] = _like(body.q, [language._asdict() for language in detected])
    translations = await translated(
        service, request, texts, sources, target=body.target, kind=body.format, alternatives=body.alternatives
    )
    answer["translatedText"] = _like(body.q, [versions[0] for versions in translations.texts])
    if body.alternatives:
        answer["alternatives"] = _like(body.q, [versions[1:] for versions in translations.texts])
    if translations.unknown_characters:
        answer["unknownCharacters"] = translations.unknown_characters
    return answer


@router.post(
    "/detect",
    response_model=list[Detection],
    openapi_extra=takes(DetectBody),
    responses=failures(400, 403, 408, 413, 500),
)
async def detect(request: Request, service: ThisService) -> list[dict[str, Any]]:
    """The server's languages, most likely first, each with the confidence that the text is in it."""
    body = await read(request, DetectBody)
    service.check_key(request, body.api_key)
    texts = [body.q] if isinstance(body.q, str) else body.q
    service.check_texts(texts)
    text = "\n".join(texts)
    return [language._asdict() for language in service.languages.detect(text)]


@router.get("/languages", response_model=list[Language])
async def languages(service: ThisService) -> list[dict[str, Any]]:
    """The languages, each with the languages that it can be translated into, including itself."""
    return [
        {"code": code, "name": LANGUAGES.get(code, code), "targets": [*service.languages.targets(code), code]}
        for code in service.languages.codes
    ]


@router.get("/frontend/settings", response_model=Settings)
async def frontend_settings(service: ThisService) -> dict[str, Any]:
    """The settings that a LibreTranslate web page requests when it starts."""
    first = service.languages.directions[0]
    return {
        "charLimit": service.limits.characters,
        "frontendTimeout": 500,
        "apiKeys": bool(service.access.keys),
        "keyRequired": bool(service.access.keys),
        "suggestions": False,
        "filesTranslation": False,
        "supportedFilesFormat": [],
        "language": {
            side: {"code": code, "name": LANGUAGES.get(code, code)}
            for side, code in (("source", first.source), ("target", first.target))
        },
    }


@deepl.post(
    "/v2/translate",
    response_model=DeepLResponse,
    response_model_exclude_unset=True,
    openapi_extra=takes(DeepLBody),
    responses=failures(),
)
async def translate_deepl(request: Request, service: ThisService) -> dict[str, Any]:
    """Translates texts in DeepL's format; send the API key in the header Authorization: DeepL-Auth-Key KEY."""
    body = await read(request, DeepLBody)
    service.check_key(request)
    service.check_texts(body.text)
    sources = [body.source_lang or service.languages.detect(text)[0].language for text in body.text]
    translations = await translated(
        service, request, body.text, sources, target=body.target_lang, kind=body.tag_handling, alternatives=0
    )
    answer: dict[str, Any] = {
        "translations": [
            {"detected_source_language": source.upper(), "text": versions[0], "billed_characters": len(text)}
            for text, source, versions in zip(body.text, sources, translations.texts, strict=True)
        ]
    }
    if translations.unknown_characters:
        answer["unknown_characters"] = translations.unknown_characters
    return answer


class TranslatedTexts(NamedTuple):
    """The translations of the texts of a request."""

    texts: list[list[str]]
    """The translations of each text, best first."""
    unknown_characters: str
    """The characters of all texts that the runs' vocabularies do not contain, each once."""


async def translated(
    service: Service,
    request: Request,
    texts: Sequence[str],
    sources: Sequence[str],
    *,
    target: str,
    kind: str,
    alternatives: int,
) -> TranslatedTexts:
    """The translations of each text from its source language.

    A text that is already in the target language is left unchanged. Raises HTTPException 400 for an invalid request.
    """
    for code in (*sources, target):
        if code not in service.languages.codes:
            raise HTTPException(
                400, TemplatedMessage("{code} is not supported; use one listed at /languages", code=code)
            )
    if kind not in ("text", "html"):
        raise HTTPException(400, TemplatedMessage("{name} format is not supported", name=kind))
    if alternatives > service.limits.alternatives:
        raise HTTPException(
            400,
            TemplatedMessage("Invalid request: alternatives must be at most {most}", most=service.limits.alternatives),
        )
    runs = {code: _run_for(service, code, target) for code in dict.fromkeys(sources) if code != target}
    translate_all = translated_html if kind == "html" else translated_texts

    async def every_text() -> TranslatedTexts:
        results = [[text] for text in texts]
        unknown: dict[str, None] = {}  # a set that keeps its order
        number = 0  # of sentences in all languages
        for source, run in runs.items():
            indices = [index for index, code in enumerate(sources) if code == source]

            async def translate(sentences: Sequence[str], run: str = run.name) -> list[list[str]]:
                nonlocal number
                number += len(sentences)
                if number > service.limits.sentences:
                    raise HTTPException(
                        400,
                        TemplatedMessage(
                            "Invalid request: {number} sentences exceed the limit of {most}; send several requests",
                            number=number,
                            most=service.limits.sentences,
                        ),
                    )
                translations = await service.batcher.translate(Task(run, n_best=alternatives + 1), sentences)
                for sentence in translations:
                    unknown.update(dict.fromkeys(sentence.unknown_characters))
                return [[version.text for version in sentence.translations] or [""] for sentence in translations]

            translations = await translate_all([texts[index] for index in indices], source, alternatives + 1, translate)
            for index, versions in zip(indices, translations, strict=True):
                results[index] = versions
        return TranslatedTexts(results, "".join(unknown))

    return await within(request, service.limits.seconds, every_text())


def _run_for(service: Service, source: str, target: str) -> OfferedRun:
    """The run that translates from `source` into `target`. Raises HTTPException 400 if the server offers none."""
    run = service.gallery.for_direction(source, target)
    if run is None:
        raise HTTPException(
            400,
            TemplatedMessage(
                "{target} is not available as a target language from {source}", target=target, source=source
            ),
        )
    return run


def _like(query: str | list[str], answers: list[Any]) -> Any:
    """The first answer if the request has a single text, or all answers if it has a list."""
    return answers[0] if isinstance(query, str) else answers
