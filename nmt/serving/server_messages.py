"""The server's own messages in Vietnamese, for requests that prefer it; all other messages are in English."""

import re
from collections.abc import Mapping
from typing import Any

from fastapi import Request

from nmt.errors import TemplatedMessage

WHOLE_BODY = "the body"
"""The field named in an error about the whole body of a request."""

_INVALID, _LESS = "Yêu cầu không hợp lệ:", "hãy gửi ít văn bản hơn trong mỗi yêu cầu."
VIETNAMESE = {
    "There is nothing at {path}; /docs lists the paths of this server.": (
        "Không có gì ở {path}; xem các đường dẫn của máy chủ này tại /docs."
    ),
    "{path} does not take {method}; use {allowed}.": "{path} không nhận {method}; hãy dùng {allowed}.",
    "Internal error; the server's log has the details.": "Lỗi nội bộ; chi tiết có trong nhật ký của máy chủ.",
    "Invalid API key": "Khóa API không hợp lệ",
    "Missing API key; send it as api_key": "Thiếu khóa API; hãy gửi khóa trong api_key",
    "Invalid token": "Mã truy cập không hợp lệ",
    "Missing token; send it as Authorization: Bearer TOKEN": (
        "Thiếu mã truy cập; hãy gửi mã dưới dạng Authorization: Bearer TOKEN"
    ),
    "The server is busy; try again in {seconds} s.": "Máy chủ đang bận; hãy thử lại sau {seconds} giây.",
    "The run {name} cannot be loaded now; see the server's log for the reason.": (
        "Hiện không nạp được mô hình {name}; lý do có trong nhật ký của máy chủ."
    ),
    "None of the runs can be loaded now ({names}); see the server's log for the reasons.": (
        "Hiện không nạp được mô hình nào ({names}); lý do có trong nhật ký của máy chủ."
    ),
    "There is no run '{name}'; use one listed at /v1/runs.": (
        "Không có mô hình '{name}'; hãy chọn một mô hình trong /v1/runs."
    ),
    "The body took more than {seconds:g} s to arrive.": (
        "Sau {seconds:g} giây, máy chủ vẫn chưa nhận đủ nội dung yêu cầu."
    ),
    "The body is larger than {most} bytes; send less text per request.": (
        f"Nội dung yêu cầu dài hơn {{most}} byte; {_LESS}"
    ),
    "The request took more than {seconds:g} s; send less text per request.": (
        f"Việc xử lý yêu cầu mất hơn {{seconds:g}} giây; {_LESS}"
    ),
    "{code} is not supported; use one listed at /languages": (
        "Không hỗ trợ ngôn ngữ {code}; hãy dùng một ngôn ngữ trong /languages"
    ),
    "{name} format is not supported": "Không hỗ trợ định dạng {name}",
    "{target} is not available as a target language from {source}": "Không dịch được từ {source} sang {target}",
    "text has {number} bytes in UTF-8; it must have at most {most}.": (
        "text dài {number} byte khi mã hóa bằng UTF-8; giới hạn là {most} byte."
    ),
    "n_best is {number}; it must be at most {most}.": "n_best là {number}; giá trị này không được lớn hơn {most}.",
    "Invalid request: alternatives must be at most {most}": f"{_INVALID} alternatives không được lớn hơn {{most}}",
    "Invalid request: {number} sentences exceed the limit of {most}; send several requests": (
        f"{_INVALID} {{number}} câu vượt quá giới hạn {{most}} câu; hãy gửi thành nhiều yêu cầu"
    ),
    "Invalid request: {number} texts exceed the limit of {most}; send several requests": (
        f"{_INVALID} {{number}} văn bản vượt quá giới hạn {{most}} văn bản; hãy gửi thành nhiều yêu cầu"
    ),
    "Invalid request: request ({number} characters) exceeds text limit ({most} characters)": (
        f"{_INVALID} văn bản dài {{number}} ký tự, vượt quá giới hạn {{most}} ký tự"
    ),
    "The stream is read too slowly; read it faster, or use the request without /stream.": (
        "Luồng kết quả được đọc quá chậm; hãy đọc nhanh hơn, hoặc gửi yêu cầu không có /stream."
    ),
    "Invalid request: missing {field} parameter": f"{_INVALID} thiếu tham số {{field}}",
    "Invalid request: {field}: {problem}": f"{_INVALID} {{field}}: {{problem}}",
    "Invalid request: the body is not JSON; send JSON.": f"{_INVALID} nội dung không phải là JSON; hãy gửi JSON.",
    "Invalid request: the body is empty; send JSON.": f"{_INVALID} nội dung trống; hãy gửi JSON.",
    "Invalid request: the body is not declared as JSON; send JSON with the header Content-Type: application/json.": (
        f"{_INVALID} nội dung không được khai báo là JSON; hãy gửi JSON với tiêu đề Content-Type: application/json."
    ),
    "Invalid request: the body is not JSON; send JSON or a form.": (
        f"{_INVALID} nội dung không phải là JSON; hãy gửi JSON hoặc biểu mẫu."
    ),
    "Invalid request: the body looks like JSON, but is declared a form; send the header Content-Type: "
    "application/json.": (
        f"{_INVALID} nội dung giống JSON nhưng được gửi dưới dạng biểu mẫu; hãy gửi tiêu đề Content-Type: "
        "application/json."
    ),
    "Invalid request: the body must be a JSON object.": f"{_INVALID} nội dung phải là một đối tượng JSON.",
    "Invalid request: the text is not UTF-8; send UTF-8.": (
        f"{_INVALID} văn bản không được mã hóa bằng UTF-8; hãy gửi UTF-8."
    ),
    "Invalid request: the form has more than {most} fields; send fewer.": (
        f"{_INVALID} biểu mẫu có hơn {{most}} trường; hãy gửi ít trường hơn."
    ),
    "The server does not answer to the host '{host}'; add it to allowed_hosts.": (
        "Máy chủ không nhận yêu cầu gửi đến tên máy '{host}'; hãy thêm tên này vào allowed_hosts."
    ),
    "Pages of the site '{origin}' may not use this server; add it to allow_origins.": (
        "Các trang của '{origin}' không được phép dùng máy chủ này; hãy thêm địa chỉ đó vào allow_origins."
    ),
    "Invalid request: a text contains an unpaired surrogate; send valid Unicode.": (
        f"{_INVALID} văn bản chứa một surrogate không thành cặp; hãy gửi Unicode hợp lệ."
    ),
    "The text cannot be read as HTML; use format=text.": "Không đọc được văn bản dưới dạng HTML; hãy dùng format=text.",
    "The {side} is empty; write a sentence.": "{side} trống; hãy viết một câu.",
    "The {side} has {number} pieces; shorten it to at most {most}.": (
        "{side} có {number} từ con; hãy rút ngắn còn nhiều nhất {most} từ con."
    ),
    "The translation has {number} pieces, but the lab shows at most {most}; shorten the sentence.": (
        "Bản dịch có {number} từ con, nhưng phòng thực hành chỉ hiện được nhiều nhất {most} từ con; hãy rút ngắn câu."
    ),
    "The alignment of this sentence is not known; use a sentence from /v1/examples.": (
        "Câu này không có đáp án gióng hàng từ; hãy dùng một câu trong /v1/examples."
    ),
    "{name} is {index}; {site} has only {name} 0.": "{name} là {index}; {site} chỉ có {name} 0.",
    "{name} is {index}; {site} has {name}s 0 to {last}.": "{name} là {index}; {site} có {name} từ 0 đến {last}.",
    "Unknown attention site '{site}'. Available: {available}.": (
        "Mô hình không có loại chú ý '{site}'. Hãy chọn một trong các loại: {available}."
    ),
    "{name}_ids must be from {first} to {last}; smaller ids are PAD, UNK, BOS and EOS.": (
        "{name}_ids phải gồm các số từ {first} đến {last}; các số nhỏ hơn là PAD, UNK, BOS và EOS."
    ),
    "weights must be one number for each key, each at least 0, with a sum of at most 1.": (
        "weights phải có một số cho mỗi khóa (key), mỗi số không âm và tổng không quá 1."
    ),
    "The intervention changes nothing: set way (in Python, change), temperature, normalizer or half_width.": (
        "Yêu cầu này không thay đổi gì: hãy đặt way (trong Python: change), temperature, normalizer hoặc half_width."
    ),
    "temperature, normalizer and half_width change all heads and steps of a layer: leave out head and steps.": (
        "temperature, normalizer và half_width thay đổi mọi đầu chú ý và mọi bước của một tầng: hãy bỏ head và steps."
    ),
    "temperature is {asked}; it must be a finite number above 0.": (
        "temperature là {asked}; giá trị này phải là số hữu hạn lớn hơn 0."
    ),
    "The temperatures of {site} multiply to {temperature}: use less extreme ones.": (
        "Tích các nhiệt độ của {site} là {temperature}: hãy dùng các giá trị vừa phải hơn."
    ),
    "half_width needs a local window, which only cross attention can have, not {site}.": (
        "half_width cần cửa sổ cục bộ, mà chỉ chú ý chéo (cross) mới có thể có; {site} thì không."
    ),
    "half_width is {half_width}; it must be at most {most}.": (
        "half_width là {half_width}; giá trị này không được lớn hơn {most}."
    ),
    "half_width is {half_width}; it must be at least {least}.": (
        "half_width là {half_width}; giá trị này không được nhỏ hơn {least}."
    ),
    "There are {number} weights; {site} has {columns} columns.": "Có {number} trọng số, nhưng {site} có {columns} cột.",
    "The link {i}-{j} does not fit {source} source and {target} target words; count words from 0 and write the source "
    "word first.": (
        "Liên kết {i}-{j} không hợp với cặp câu có {source} từ nguồn và {target} từ đích; hãy đếm từ 0 và viết từ "
        "nguồn trước."
    ),
    "method={name} needs gradients, which precision=int8 does not support; use precision=float32.": (
        "method={name} cần gradient, nhưng precision=int8 không hỗ trợ; hãy dùng precision=float32."
    ),
    "method=integrated_gradients needs precision=float32; use that, or method=occlusion.": (
        "method=integrated_gradients cần precision=float32; hãy dùng precision=float32 hoặc method=occlusion."
    ),
    "method=value_zeroing takes no contrast, because it compares vectors; leave out contrast, or use "
    "method=occlusion.": (
        "method=value_zeroing so sánh các vectơ nên không dùng contrast; hãy bỏ contrast hoặc dùng method=occlusion."
    ),
    "contrast is '{contrast}', which is not a piece; it must be one piece of the target vocabulary, such as a row "
    "label of a map.": (
        "contrast là '{contrast}', không phải là từ con; hãy dùng đúng một từ con trong từ vựng đích, chẳng hạn nhãn "
        "của một hàng trong bản đồ."
    ),
    "contrast is '{contrast}', which is {number} pieces, {pieces}; it must be one piece of the target vocabulary, such "
    "as a row label of a map.": (
        "contrast là '{contrast}', gồm {number} từ con, {pieces}; hãy dùng đúng một từ con trong từ vựng đích, chẳng "
        "hạn nhãn của một hàng trong bản đồ."
    ),
    "{name} sets a beam search, but this run samples; leave out {name}.": (
        "{name} là thiết lập của tìm kiếm chùm (beam search), nhưng mô hình này dịch bằng cách lấy mẫu; hãy bỏ {name}."
    ),
    "Only a beam search has steps to watch, but this run samples; use a run with search=beam.": (
        "Chỉ tìm kiếm chùm (beam search) mới có các bước để xem, nhưng mô hình này dịch bằng cách lấy mẫu; hãy dùng "
        "mô hình có search=beam."
    ),
    "scorer=location has weights for {most} positions, but the sentence has {length}; shorten the sentence, or train "
    "with a larger scorer.max_length.": (
        "scorer=location có trọng số cho {most} vị trí, nhưng câu có {length} vị trí; hãy rút ngắn câu, hoặc huấn "
        "luyện với scorer.max_length lớn hơn."
    ),
}
"""The templates of messages."""
_PROBLEMS = {
    "string_type": "phải là văn bản",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "phải là số nguyên"),
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), "phải là một số"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "phải là true hoặc false"),
    **dict.fromkeys(("list_type", "tuple_type"), "phải là một danh sách"),
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), "phải là một đối tượng"),
    "greater_than_equal": "phải lớn hơn hoặc bằng {ge}",
    "less_than_n_best": "phải lớn hơn hoặc bằng n_best, tức là {n_best}",
    "less_than_equal": "phải nhỏ hơn hoặc bằng {le}",
    "less_than": "phải nhỏ hơn {lt}",
    "string_too_long": "không được dài quá {max_length} ký tự",
    "too_long": "không được có quá {max_length} phần tử",
    "too_short": "phải có ít nhất {min_length} phần tử",
    "literal_error": "phải là {expected}",
    "extra_forbidden": "không có trường này",
}
"""What pydantic says about a field, by the type of its error; anything else stays in English."""
_SIDES = {"source": "Câu nguồn", "target": "Bản dịch", "prefix": "Phần mở đầu"}

_LANGUAGE = re.compile(
    r"(?:^|,)\s*(?P<code>en|vi)(?:-[\w-]+)?\s*(?:;\s*q=(?P<quality>[01](?:\.\d{0,3})?)\s*)?(?=,|$)", re.IGNORECASE
)


class FieldProblem(str):
    """What pydantic says about a field of a request, with the values that it compares."""

    kind: str
    context: Mapping[str, Any]

    def __new__(cls, error: Mapping[str, Any]) -> "FieldProblem":
        problem = super().__new__(cls, error["msg"])
        problem.kind, problem.context = error["type"], error.get("ctx", {})
        return problem

    def in_vietnamese(self) -> str:
        """The problem in Vietnamese, or in English if the table does not contain it."""
        context = {name: str(value).replace(" or ", " hoặc ") for name, value in self.context.items()}
        return _PROBLEMS[self.kind].format(**context) if self.kind in _PROBLEMS else str(self)


def in_language(message: str, language: str) -> str:
    """The message in the language 'en' or 'vi'.

    Raises KeyError for a TemplatedMessage that the table does not contain; any other message stays in English.
    """
    if language == "en":
        return message
    if isinstance(message, TemplatedMessage):
        values = dict(message.values)
        if "side" in values:
            values["side"] = _SIDES[values["side"]]
        if isinstance(problem := values.get("problem"), FieldProblem):
            values["problem"] = problem.in_vietnamese()
        if values.get("field") == WHOLE_BODY:
            values["field"] = "nội dung"
        return VIETNAMESE[message.template].format(**values)
    return VIETNAMESE.get(message, message)


def message_of(error: Exception) -> str:
    """The message of an error; str(error) would lose its template."""
    message: str = error.args[0]
    return message


def request_language(request: Request) -> str:
    """The language in which the sender of a request wants errors."""
    return preferred_language(request.headers.get("accept-language", ""))


def preferred_language(accept_language: str) -> str:
    """'en' or 'vi', whichever an Accept-Language header prefers; 'en' if it names neither."""
    best, highest = "en", 0.0
    for match in _LANGUAGE.finditer(accept_language):
        quality = 1.0 if match["quality"] is None else float(match["quality"])
        if quality > highest:  # of equal ones, the first
            best, highest = match["code"].lower(), quality
    return best
