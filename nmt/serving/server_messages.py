"""The server's own messages in Vietnamese, for requests that prefer it; all other messages are in English."""

import re

from fastapi import Request

from nmt.errors import TemplatedMessage

_INVALID, _LESS = "Yêu cầu không hợp lệ:", "hãy gửi ít văn bản hơn trong mỗi yêu cầu."
VIETNAMESE = {
    "There is nothing at {path}; /docs lists the paths of this server.": (
        "Không có gì ở {path}; xem các đường dẫn của máy chủ này tại /docs."
    ),
    "{path} does not take {method}; use {allowed}.": "{path} không nhận {method}; hãy dùng {allowed}.",
    "Internal error; the server's log has the details.": "Lỗi của máy chủ; chi tiết có trong nhật ký của máy chủ.",
    "Invalid API key": "Khóa API không hợp lệ",
    "Missing API key; send it as api_key": "Thiếu khóa API; hãy gửi khóa trong api_key",
    "The server is busy; try again in {seconds} s.": "Máy chủ đang bận; hãy thử lại sau {seconds} giây.",
    "The run {name} cannot be loaded now; see the server's log for the reason.": (
        "Hiện không nạp được mô hình {name}; lý do có trong nhật ký của máy chủ."
    ),
    "There is no run '{name}'; use one listed at /v1/runs.": (
        "Không có mô hình '{name}'; hãy chọn một mô hình trong /v1/runs."
    ),
    "The body took more than {seconds:g} s to arrive.": "Nội dung yêu cầu đến chậm hơn {seconds:g} giây.",
    "The body is larger than {most} bytes; send less text per request.": (
        f"Nội dung yêu cầu dài hơn {{most}} byte; {_LESS}"
    ),
    "The request took more than {seconds:g} s; send less text per request.": (
        f"Yêu cầu mất hơn {{seconds:g}} giây; {_LESS}"
    ),
    "{code} is not supported": "Không hỗ trợ ngôn ngữ {code}",
    "{name} format is not supported": "Không hỗ trợ định dạng {name}",
    "{target} is not available as a target language from {source}": "Không dịch được từ {source} sang {target}",
    "n_best is {number}; it must be at most {most}.": "n_best là {number}; số này không được quá {most}.",
    "Invalid request: alternatives must be at most {most}": f"{_INVALID} alternatives không được quá {{most}}",
    "Invalid request: {number} sentences exceed the limit of {most}": (
        f"{_INVALID} {{number}} câu vượt quá giới hạn {{most}} câu"
    ),
    "Invalid request: {number} texts exceed the limit of {most}": (
        f"{_INVALID} {{number}} văn bản vượt quá giới hạn {{most}} văn bản"
    ),
    "Invalid request: request ({number}) exceeds text limit ({most})": (
        f"{_INVALID} văn bản dài {{number}} ký tự, vượt quá giới hạn {{most}} ký tự"
    ),
    "The stream is read too slowly; choose a smaller beam_size.": (
        "Luồng kết quả được đọc quá chậm; hãy chọn beam_size nhỏ hơn."
    ),
    "Invalid request: missing {field} parameter": f"{_INVALID} thiếu tham số {{field}}",
    "Invalid request: {field}: {problem}": f"{_INVALID} {{field}}: {{problem}}",
    "Invalid request: the body is not JSON; send JSON or a form.": (
        f"{_INVALID} nội dung không phải là JSON; hãy gửi JSON hoặc biểu mẫu."
    ),
    "Invalid request: the body looks like JSON, but is declared a form; send the header Content-Type: "
    "application/json.": (
        f"{_INVALID} nội dung giống JSON nhưng được gửi như biểu mẫu; hãy gửi tiêu đề Content-Type: application/json."
    ),
    "Invalid request: the body must be a JSON object.": f"{_INVALID} nội dung phải là một đối tượng JSON.",
    "Invalid request: the text is not UTF-8; send UTF-8.": f"{_INVALID} văn bản không phải là UTF-8; hãy gửi UTF-8.",
    "Invalid request: the form has more than {most} fields; send fewer.": (
        f"{_INVALID} biểu mẫu có hơn {{most}} trường; hãy gửi ít trường hơn."
    ),
    "The server does not answer to the host '{host}'; add it to allowed_hosts.": (
        "Máy chủ không trả lời cho tên '{host}'; hãy thêm tên này vào allowed_hosts."
    ),
    "Pages of the site '{origin}' may not use this server; add it to allow_origins.": (
        "Các trang của '{origin}' không được dùng máy chủ này; hãy thêm trang này vào allow_origins."
    ),
    "Invalid request: a text contains an unpaired surrogate; send valid Unicode.": (
        f"{_INVALID} văn bản có một mã surrogate lẻ; hãy gửi Unicode hợp lệ."
    ),
    "The text cannot be read as HTML; use format=text.": "Không đọc được văn bản như HTML; hãy dùng format=text.",
    "The {side} is empty; write a sentence.": "{side} trống; hãy viết một câu.",
    "The {side} has {number} pieces; shorten it to at most {most}.": (
        "{side} có {number} từ con; hãy rút ngắn còn nhiều nhất {most} từ con."
    ),
    "The alignment of this sentence is not known; use a sentence from /v1/examples.": (
        "Không biết gióng hàng từ của câu này; hãy dùng một câu trong /v1/examples."
    ),
}
"""The templates of messages."""
_SIDES = {"source": "Câu nguồn", "target": "Bản dịch", "prefix": "Phần mở đầu"}

_LANGUAGE = re.compile(
    r"(?:^|,)\s*(?P<code>en|vi)(?:-[\w-]+)?\s*(?:;\s*q=(?P<quality>[01](?:\.\d{0,3})?)\s*)?(?=,|$)", re.IGNORECASE
)


def in_language(message: str, language: str) -> str:
    """The message in the language 'en' or 'vi', in English if the table does not contain it."""
    if language == "en":
        return message
    if isinstance(message, TemplatedMessage):
        values = dict(message.values)
        if "side" in values:
            values["side"] = _SIDES[values["side"]]
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
