"""LibreTranslate's interface: fields, answers and errors as its clients expect them."""

import pytest
from fastapi.testclient import TestClient

from nmt.serving.service import Limits

ASKED = {"q": "one two.", "source": "en", "target": "vi"}


def error(answer: object) -> tuple[int, str]:
    body = answer.json()
    assert set(body) == {"error"}
    return answer.status_code, body["error"]


def test_a_text_gives_a_text_and_a_list_a_list(client: TestClient) -> None:
    one = client.post("/translate", json=ASKED).json()
    many = client.post("/translate", json={**ASKED, "q": ["one two.", "", "three"]}).json()
    assert set(one) == set(many) == {"translatedText"}
    assert one["translatedText"] == many["translatedText"][0]
    assert many["translatedText"][1] == ""
    assert client.post("/translate", json={**ASKED, "q": []}).json() == {"translatedText": []}


def test_a_form_is_read_like_json(client: TestClient) -> None:
    assert client.post("/translate", data=ASKED).json() == client.post("/translate", json=ASKED).json()


def test_json_without_its_header_is_answered_with_the_header(client: TestClient) -> None:
    header = {"content-type": "application/x-www-form-urlencoded"}
    answer = client.post("/translate", content='{"q": "one", "source": "en", "target": "vi"}', headers=header)
    assert answer.status_code == 400
    assert answer.json()["error"].endswith("send the header Content-Type: application/json.")


def test_a_form_is_utf_8_also_where_it_is_not_percent_encoded(client: TestClient) -> None:
    header = {"content-type": "application/x-www-form-urlencoded"}
    sent = client.post("/translate", content="q=số 北&source=vi&target=vi".encode(), headers=header)
    assert sent.json() == {"translatedText": "số 北"}
    assert error(client.post("/translate", content=b"q=\xff&source=vi&target=vi", headers=header)) == (
        400,
        "Invalid request: the text is not UTF-8; send UTF-8.",
    )


def test_fields_in_the_address_are_read_like_a_form(client: TestClient) -> None:
    assert client.post("/translate", params=ASKED).json() == client.post("/translate", json=ASKED).json()
    mixed = client.post("/translate", params={"source": "en"}, data={"q": "one two.", "target": "vi"})
    assert mixed.json() == client.post("/translate", json=ASKED).json()


def test_a_field_that_is_given_several_times_is_a_list(client: TestClient) -> None:
    texts = ["one two.", "three"]
    listed = client.post("/translate", json={**ASKED, "q": texts}).json()
    assert client.post("/translate", data={**ASKED, "q": texts}).json() == listed
    deepl = [client.post("/v2/translate", data={"text": text, "target_lang": "vi"}) for text in (texts[0], texts)]
    assert [len(each.json()["translations"]) for each in deepl] == [1, 2]


def test_further_translations_are_given_where_they_are_asked_for(client: TestClient) -> None:
    one = client.post("/translate", json={**ASKED, "alternatives": 2}).json()
    many = client.post("/translate", json={**ASKED, "q": ["one two."], "alternatives": 2}).json()
    assert len(one["alternatives"]) == 2
    assert many["alternatives"] == [one["alternatives"]]


def test_the_language_is_detected_for_auto(client: TestClient) -> None:
    asked = {**ASKED, "source": "auto", "q": "one two three four"}
    one = client.post("/translate", json=asked).json()
    assert one["detectedLanguage"]["language"] == "en"
    assert 50 < one["detectedLanguage"]["confidence"] <= 100
    many = client.post("/translate", json={**asked, "q": [asked["q"]]}).json()
    assert many["detectedLanguage"] == [one["detectedLanguage"]]
    [first, second] = client.post("/detect", json={"q": "một hai ba bốn"}).json()
    assert (first["language"], second["language"]) == ("vi", "en")
    assert first["confidence"] + second["confidence"] == pytest.approx(100, abs=0.1)


def test_each_text_of_a_list_is_translated_from_its_own_language(client: TestClient) -> None:
    texts = ["one two three four", "một hai ba bốn"]
    found = client.post("/translate", json={"q": texts, "source": "auto", "target": "vi"}).json()
    assert [each["language"] for each in found["detectedLanguage"]] == ["en", "vi"]
    assert found["translatedText"][0] != texts[0]
    assert found["translatedText"][1] == texts[1]


def test_the_same_language_is_no_translation(client: TestClient) -> None:
    assert client.post("/translate", json={**ASKED, "target": "en"}).json() == {"translatedText": "one two."}


def test_html_keeps_its_tags(client: TestClient) -> None:
    found = client.post("/translate", json={**ASKED, "q": "<p>one <b>two</b></p>", "format": "html"}).json()
    assert found["translatedText"].startswith("<p>")
    assert found["translatedText"].endswith("</b></p>")


def test_deepl(client: TestClient) -> None:
    answer = client.post("/v2/translate", json={"text": ["one two.", "three"], "target_lang": "VI"}).json()
    assert [each["detected_source_language"] for each in answer["translations"]] == ["EN", "EN"]
    assert [each["billed_characters"] for each in answer["translations"]] == [8, 5]
    for code in (None, "", " ", "EN-GB", "en_US"):
        coded = client.post(
            "/v2/translate", json={"text": ["one two.", "three"], "target_lang": "vi", "source_lang": code}
        )
        assert coded.json() == answer
    wrong = client.post("/v2/translate", json={"text": ["one"], "target_lang": "XX"})
    assert (wrong.status_code, wrong.json()) == (
        400,
        {
            "error": "xx is not supported; use one listed at /languages",
            "message": "xx is not supported; use one listed at /languages",
        },
    )
    assert answer["translations"][0]["text"] == client.post("/translate", json=ASKED).json()["translatedText"]


@pytest.mark.parametrize(
    "changes",
    [
        {"source": "EN", "target": "Vi"},
        {"source": "en-US", "target": " vi"},
        {"source": "EN_us ", "target": "vi_VN"},
        {"format": None},
        {"format": ""},
        {"format": "TEXT"},
        {"alternatives": None},
    ],
)
def test_met_clients_write_codes_in_any_case_and_no_format(client: TestClient, changes: dict) -> None:
    assert client.post("/translate", json={**ASKED, **changes}).json() == client.post("/translate", json=ASKED).json()


def test_met_nothing_to_translate_is_copied(client: TestClient) -> None:
    texts = ["123", "😀", "https://example.org/", "1.", "- 2 -"]
    assert client.post("/translate", json={**ASKED, "q": texts}).json() == {"translatedText": texts}
    page = client.post("/translate", json={**ASKED, "q": "<b>12</b> 😀 &amp;", "format": "html"}).json()
    assert page == {"translatedText": "<b>12</b> 😀 &amp;"}
    [[copied]] = [client.post("/v1/translate", json={"text": "123", "n_best": 3}).json()["translations"]]
    assert copied == {"text": "123", "log_prob": 0.0, "score": 0.0}
    first = client.post("/translate", json={**ASKED, "q": ["one two.", "1. one two."]}).json()["translatedText"]
    assert first[1] == f"1. {first[0]}"


def test_unknown_characters_are_reported(client: TestClient) -> None:
    texts = ["one 北京.", "😀 one", "two 京 ü"]
    assert client.post("/translate", json={**ASKED, "q": texts}).json()["unknownCharacters"] == "北京ü"
    deepl = client.post("/v2/translate", json={"text": texts, "source_lang": "en", "target_lang": "vi"}).json()
    assert deepl["unknown_characters"] == "北京ü"
    for text, prefix, unknown in (("one 北京.", "", "北京"), ("one 😀", "", ""), ("one 😀", "một", "😀")):
        answer = client.post("/v1/translate", json={"text": text, "prefix": prefix}).json()
        assert answer["unknown_characters"] == unknown, "with a prefix, the model reads the whole line"


def test_languages_settings_and_health(client: TestClient) -> None:
    assert client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["vi", "en"]},
        {"code": "vi", "name": "Vietnamese", "targets": ["vi"]},
    ]
    assert client.get("/health").json() == {"status": "ok"}
    settings = client.get("/frontend/settings").json()
    assert settings["charLimit"] == 200
    assert settings["language"]["source"] == {"code": "en", "name": "English"}
    assert settings["keyRequired"] is False


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({"q": None}, 400, "Invalid request: q: Input should be a valid string"),
        ({"target": "xx"}, 400, "xx is not supported; use one listed at /languages"),
        ({"source": ""}, 400, "Invalid request: missing source parameter"),
        ({"source": " "}, 400, "Invalid request: missing source parameter"),
        ({"target": "-"}, 400, "Invalid request: missing target parameter"),
        ({"source": "xx"}, 400, "xx is not supported; use one listed at /languages"),
        ({"source": "vi", "target": "en"}, 400, "en is not available as a target language from vi"),
        ({"format": "pdf"}, 400, "pdf format is not supported"),
        ({"alternatives": 4}, 400, "Invalid request: alternatives must be at most 3"),
        ({"alternatives": -1}, 400, "Invalid request: alternatives: Input should be greater than or equal to 0"),
        ({"q": "a" * 201}, 400, "Invalid request: request (201 characters) exceeds text limit (200 characters)"),
        ({"q": "One. " * 11}, 400, "Invalid request: 11 sentences exceed the limit of 10; send several requests"),
        ({"q": "a" * 6000}, 413, "The body is larger than 5000 bytes; send less text per request."),
    ],
)
def test_what_cannot_be_translated_is_refused(client: TestClient, changes: dict, status: int, message: str) -> None:
    assert error(client.post("/translate", json={**ASKED, **changes})) == (status, message)


@pytest.mark.parametrize("field", ["q", "source", "target"])
def test_a_missing_field_is_named(client: TestClient, field: str) -> None:
    asked = {key: value for key, value in ASKED.items() if key != field}
    assert error(client.post("/translate", json=asked)) == (400, f"Invalid request: missing {field} parameter")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{", "Invalid request: the body is not JSON; send JSON or a form."),
        (r'{"q": "\ud800"}', "Invalid request: a text contains an unpaired surrogate; send valid Unicode."),
        ("[1]", "Invalid request: the body must be a JSON object."),
    ],
)
def test_a_body_that_is_no_object_is_refused(client: TestClient, body: str, message: str) -> None:
    answer = client.post("/translate", content=body, headers={"content-type": "application/json"})
    assert error(answer) == (400, message)


def test_keys(serve) -> None:
    client = serve(keys=frozenset({"secret"}))
    for path in ("/v1/runs", "/v1/examples"):
        assert error(client.get(path)) == (403, "Missing API key; send it as api_key")
        assert client.get(path, headers={"authorization": "Bearer secret"}).status_code == 200
    assert error(client.post("/translate", json=ASKED)) == (403, "Missing API key; send it as api_key")
    assert error(client.post("/translate", json={**ASKED, "api_key": "other"})) == (403, "Invalid API key")
    assert client.post("/translate", json={**ASKED, "api_key": "secret"}).status_code == 200
    deepl, header = {"text": ["one"], "target_lang": "VI"}, {"authorization": "DeepL-Auth-Key secret"}
    assert client.post("/v2/translate", json=deepl).status_code == 403
    assert client.post("/v2/translate", json=deepl, headers=header).status_code == 200
    assert client.post("/v1/attend", json={"text": "one"}).status_code == 403
    assert client.get("/frontend/settings").json()["keyRequired"] is True


def test_metrics(serve) -> None:
    client = serve(metrics_token="token")
    client.post("/translate", json=ASKED)
    missing, unknown = client.get("/metrics"), client.get("/metrics", headers={"authorization": "Bearer other"})
    assert error(missing) == (403, "Missing token; send it as Authorization: Bearer TOKEN")
    assert error(unknown) == (403, "Invalid token")
    text = client.get("/metrics", headers={"authorization": "Bearer token"}).text
    assert 'nmt_requests_total{path="/translate",status="200"} 1.0' in text
    assert 'nmt_request_seconds_count{path="/translate"} 1.0' in text


def test_pages_of_other_origins_may_only_ask_where_allowed(serve) -> None:
    asked = {"origin": "https://my.org"}
    assert "access-control-allow-origin" not in serve().get("/health", headers=asked).headers
    allowed = serve(origins=("https://my.org",)).get("/health", headers=asked)
    assert allowed.headers["access-control-allow-origin"] == "https://my.org"
    assert "default-src 'self'" in allowed.headers["content-security-policy"]


def test_a_request_that_takes_too_long_is_cancelled(serve) -> None:
    limits = Limits(characters=200, sentences=10, alternatives=3, body_bytes=5000, seconds=1e-9, requests=100)
    status, message = error(serve(limits).post("/translate", json=ASKED))
    assert (status, message) == (504, "The request took more than 1e-09 s; send less text per request.")


def test_an_unknown_path_is_an_error_like_all_others(client: TestClient) -> None:
    assert error(client.get("/nope")) == (
        404,
        "There is nothing at /nope; /docs lists the paths of this server.",
    )
    assert error(client.get("/translate")) == (405, "/translate does not take GET; use POST.")
