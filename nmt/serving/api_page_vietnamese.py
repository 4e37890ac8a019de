"""The texts of the API page in Vietnamese, by their English."""

TEXTS = {
    "Translates with trained runs and shows their attention.": (
        "Dịch bằng các mô hình đã huấn luyện và cho thấy chúng chú ý vào đâu."
    ),
    """
Programs written for [LibreTranslate](https://docs.libretranslate.com/) or DeepL can use the first two groups unchanged.
The lab's own interface shows what a run attends to. Every error is a JSON object
whose `error` field contains one sentence; in DeepL's interface, `message` repeats it.

If the server requires an API key, send it as `Authorization: Bearer KEY`, as `Authorization: DeepL-Auth-Key KEY`, as
`api_key` in the query string, or, in LibreTranslate's interface, as `api_key` in the body.
""": """
Các chương trình viết cho [LibreTranslate](https://docs.libretranslate.com/) hoặc DeepL dùng được hai nhóm đầu mà không
cần sửa. Giao diện riêng của phòng thực hành cho biết mô hình chú ý vào đâu. Mọi lỗi đều được trả về dưới dạng một
đối tượng JSON có trường `error` chứa một câu thông báo; trong giao diện của DeepL, `message` lặp lại câu đó.

Nếu máy chủ cần khóa API, hãy gửi khóa dưới dạng `Authorization: Bearer KEY`, `Authorization: DeepL-Auth-Key KEY`,
`api_key` trong chuỗi truy vấn, hoặc, trong giao diện của LibreTranslate, `api_key` trong nội dung yêu cầu.
""",
    "LibreTranslate's interface: JSON, forms, or query parameters.": (
        "Giao diện của LibreTranslate: JSON, biểu mẫu hoặc tham số truy vấn."
    ),
    "Translation in DeepL's API format, as JSON or form data.": (
        "Dịch theo định dạng API của DeepL, bằng JSON hoặc biểu mẫu."
    ),
    "Attention, scores, alternatives and interventions, one sentence at a time.": (
        "Sự chú ý, điểm số, các lựa chọn khác và việc thay đổi sự chú ý, mỗi lần một câu."
    ),
    "A health check, and metrics for Prometheus.": "Kiểm tra tình trạng máy chủ, và số liệu cho Prometheus.",
    "an API key; only needed if the server has keys": "khóa API; chỉ cần nếu máy chủ dùng khóa",
    # ------------------------------------------------------------------ endpoints
    "Translates a text or a list of texts, line by line and sentence by sentence.": (
        "Dịch một văn bản hoặc một danh sách văn bản, theo từng dòng và từng câu."
    ),
    "The server's languages, most likely first, each with the confidence that the text is in it.": (
        "Các ngôn ngữ của máy chủ, xếp theo khả năng giảm dần, kèm mức độ chắc chắn là văn bản thuộc ngôn ngữ đó."
    ),
    "The languages, each with the languages that it can be translated into, including itself.": (
        "Các ngôn ngữ, mỗi ngôn ngữ kèm những ngôn ngữ đích có thể dịch sang, kể cả chính nó."
    ),
    "The settings that a LibreTranslate web page requests when it starts.": (
        "Các thiết lập mà trang web LibreTranslate yêu cầu khi khởi động."
    ),
    "Translates texts in DeepL's format; send the API key in the header Authorization: DeepL-Auth-Key KEY.": (
        "Dịch văn bản theo định dạng của DeepL; hãy gửi khóa API trong tiêu đề Authorization: DeepL-Auth-Key KEY."
    ),
    "The runs that this server offers, each with its engine; those that cannot be loaded have an error.": (
        "Các mô hình của máy chủ này và chương trình dịch của mỗi mô hình; mô hình không nạp được có trường error."
    ),
    "A run: its model, its attention at every site, and its test scores.": (
        "Một mô hình: kiến trúc, các loại chú ý và điểm trên tập kiểm tra."
    ),
    "The best translations of a sentence, with log-probabilities in nats and the scores that rank them.": (
        "Các bản dịch tốt nhất của một câu, kèm log xác suất tính bằng nat và điểm dùng để xếp hạng."
    ),
    "A search as server-sent events: `beams` after each step, then `done` with the translation, or `error`.": (
        "Quá trình tìm kiếm dưới dạng server-sent events: `beams` sau mỗi bước, rồi `done` kèm bản dịch, hoặc `error`."
    ),
    "The attention at every site, layer and head, for the run's own translation or a given one.": (
        "Bản đồ của mọi loại chú ý, mọi tầng và mọi đầu, cho bản dịch của mô hình hoặc bản dịch được gửi kèm."
    ),
    "The log-probability of each piece of a translation, in nats.": (
        "Log xác suất của từng từ con trong một bản dịch, tính bằng nat."
    ),
    "The most likely pieces at each position of the run's own translation or a given one.": (
        "Những từ con có xác suất cao nhất ở mỗi vị trí trong bản dịch của mô hình hoặc bản dịch được gửi kèm."
    ),
    "The translation, its pieces scored with changed attention, and what the search finds with changed attention.": (
        "Bản dịch, điểm của từng từ con khi sự chú ý bị thay đổi, và bản dịch tìm được với sự chú ý đã thay đổi."
    ),
    "One row of a map with every number behind it: query, keys, scores, mask, weights, values and context.": (
        "Một hàng của bản đồ với mọi con số tạo nên nó: truy vấn, khóa, điểm số, mặt nạ, trọng số, giá trị và ngữ cảnh."
    ),
    """How much each source piece matters for each piece of the run's own translation or a given one.

Values are in nats, except for value zeroing, where they are the cosine distances by which the decoder's output
moves.""": """Mỗi từ con nguồn quan trọng đến đâu với mỗi từ con trong bản dịch của mô hình hoặc bản dịch được gửi kèm.

Các giá trị tính bằng nat; riêng với value zeroing, đó là độ lệch của đầu ra bộ giải mã, đo bằng khoảng cách cosin.""",
    """An attribution as server-sent events: `progress` with the percentage that is done, then `done` with what
/v1/attribute answers, or `error`. It ends when the client disconnects.""": (
        "Mức đóng góp (attribution) dưới dạng server-sent events: `progress` kèm số phần trăm đã xong, rồi `done` kèm "
        "kết quả như của /v1/attribute, hoặc `error`. Việc tính toán dừng lại khi máy khách ngắt kết nối."
    ),
    """Sentences to try a run on: those of its own splits that it stores, unless it was trained on the embedded corpus,
and some of that corpus's pairs, whose alignments are known (`aligned`), if the run has the same languages.""": (
        "Các câu để thử một mô hình: các câu được lưu cùng mô hình, lấy từ chính ngữ liệu của nó (trừ khi nó được huấn "
        "luyện trên ngữ liệu kèm theo); thêm một số cặp câu đã biết gióng hàng từ (`aligned`) của ngữ liệu kèm theo, "
        "nếu mô hình có cùng ngôn ngữ."
    ),
    "The gold alignment of an example, plus the links of the run, the diagonal and a guess with their error rates.": (
        "Gióng hàng đúng (gold) của một câu mẫu, cùng các liên kết của mô hình, của đường chéo và của người đoán, kèm "
        "tỉ lệ lỗi."
    ),
    "Whether the server is running.": "Cho biết máy chủ có đang chạy không.",
    """Whether the server can take another sentence now; a load balancer asks this.

429 if the queue is full, and 503 if no run can be loaded. `broken` names the runs that cannot be loaded.
`outdated` names those whose last request got an old version, because the changed folder cannot be loaded.""": (
        "Cho biết máy chủ có nhận thêm được câu nào ngay bây giờ không; dành cho bộ cân bằng tải.\n\n"
        "429 nếu hàng đợi đã đầy, và 503 nếu không nạp được mô hình nào. `broken` nêu tên các mô hình không nạp được, "
        "`outdated` nêu tên các mô hình mà lần yêu cầu gần nhất vẫn dùng bản cũ, vì thư mục đã thay đổi nhưng không "
        "nạp được."
    ),
    "The server's metrics in Prometheus's text format.": "Số liệu của máy chủ theo định dạng văn bản của Prometheus.",
    # ------------------------------------------------------------------ responses
    "Successful Response": "Thành công",
    "The request is not valid; `error` says why.": "Yêu cầu không hợp lệ; `error` cho biết vì sao.",
    "The API key is missing or unknown, or the host or the page's site is not allowed.": (
        "Thiếu khóa API hoặc khóa không đúng, hoặc tên máy hay trang web không được phép."
    ),
    "There is no such run, or nothing at this path.": "Không có mô hình này, hoặc không có gì ở đường dẫn này.",
    "The body took too long to arrive.": "Nội dung yêu cầu đến quá chậm.",
    "The body is larger than the server allows.": "Nội dung yêu cầu lớn hơn mức máy chủ cho phép.",
    "Too many sentences are waiting.": "Quá nhiều câu đang chờ.",
    "seconds to wait before the next attempt": "số giây cần chờ trước khi thử lại",
    "Internal error; the server's log has the details.": "Lỗi nội bộ; chi tiết có trong nhật ký của máy chủ.",
    "The run cannot be loaded, or its directory was removed.": "Không nạp được mô hình, hoặc thư mục của nó đã bị xóa.",
    "The request took longer than the server allows.": "Yêu cầu mất nhiều thời gian hơn mức máy chủ cho phép.",
    "events named beams, then done or error": "các sự kiện beams, rồi done hoặc error",
    "events named progress, then done or error": "các sự kiện progress, rồi done hoặc error",
    # ------------------------------------------------------------------ fields
    "The fields of /translate.": "Các trường của /translate.",
    "The fields of /detect.": "Các trường của /detect.",
    "The fields of /v2/translate.": "Các trường của /v2/translate.",
    "a text, or a list of texts": "một văn bản, hoặc một danh sách văn bản",
    "texts": "các văn bản",
    "a language code, or auto; case and region are ignored": (
        "mã ngôn ngữ, hoặc auto; không phân biệt chữ hoa với chữ thường, và bỏ qua mã vùng"
    ),
    "a language code; case and region are ignored": (
        "mã ngôn ngữ; không phân biệt chữ hoa với chữ thường, và bỏ qua mã vùng"
    ),
    "a language code; null to detect it": "mã ngôn ngữ; null: tự nhận biết",
    "text, also if null; or html": "text (null cũng có nghĩa là text) hoặc html",
    "html: tags are kept; null: plain text": "html: giữ các thẻ; null: văn bản thuần",
    "number of additional translations to return": "số bản dịch bổ sung cần trả về",
    "name of a run in /v1/runs; the first one by default": (
        "tên một mô hình trong /v1/runs; mặc định là mô hình đầu tiên"
    ),
    "a sentence in the source language": "một câu bằng ngôn ngữ nguồn",
    "from 0; null for the mean of all layers": "đếm từ 0; null: trung bình mọi tầng",
    "from 0; null for the mean of all heads": "đếm từ 0; null: trung bình mọi đầu chú ý",
    "from 0; null for every layer": "đếm từ 0; null: mọi tầng",
    "from 0; null for every head": "đếm từ 0; null: mọi đầu chú ý",
    "links [source word, target word]; words are counted from 0": (
        "các liên kết [từ nguồn, từ đích]; từ được đếm từ 0"
    ),
    "a translation; by default the run's own": "một bản dịch; mặc định là bản dịch của mô hình",
    "piece ids without BOS and EOS": "số hiệu các từ con, không có BOS và EOS",
    "the piece ids that the translation begins with; 0 leaves a position to the search": (
        "số hiệu các từ con mở đầu bản dịch; 0: vị trí đó do thuật toán tìm kiếm quyết định"
    ),
    "null for the run's own beam size": "null: độ rộng chùm của mô hình",
    "null for the run's own penalty": "null: mức phạt độ dài của mô hình",
    "pieces to return for each position": "số từ con trả về cho mỗi vị trí",
    "explain why each piece is preferred to this piece of the target vocabulary": (
        "giải thích vì sao mỗi từ con được chọn thay vì từ con này của từ vựng đích"
    ),
    "position of the query, from 0": "vị trí của truy vấn, đếm từ 0",
    "positions of the queries, from 0; null for all": "vị trí các truy vấn, đếm từ 0; null: mọi vị trí",
    "for scale: positions of the keys, from 0": "với scale: vị trí các khóa, đếm từ 0",
    "for scale; 0 blocks the keys": "với scale; 0: chặn các khóa",
    "for weights: one for each key; at least 0, with a sum of at most 1": (
        "với weights: một số cho mỗi khóa; không âm, tổng không quá 1"
    ),
    "for head: the head whose weights are used": "với head: dùng trọng số của đầu chú ý này",
    "the characters, each once, that the model never or hardly ever saw in training, so that it may invent their "
    "translation; only if the texts contain any": (
        "những ký tự, mỗi ký tự một lần, mà mô hình chưa hoặc hầu như chưa gặp khi huấn luyện, nên có thể bịa ra bản "
        "dịch của chúng; chỉ có nếu văn bản chứa ký tự như vậy"
    ),
    "the length of the text; DeepL's own client needs it": "độ dài văn bản; thư viện của DeepL cần số này",
    "from 0 to 100; about 0 for a text in none of the server's languages": (
        "từ 0 đến 100; gần 0 nếu văn bản không thuộc ngôn ngữ nào của máy chủ"
    ),
    "milliseconds": "mili giây",
    "the text that all translations begin with": "phần mở đầu chung của mọi bản dịch",
    "only if source is auto": "chỉ có khi source là auto",
    "only if requested": "chỉ có khi được yêu cầu",
    "a sentence": "một câu",
    "the same sentence; only in DeepL's interface": "chính câu đó; chỉ có trong giao diện của DeepL",
    # ------------------------------------------------------------------ schemas
    "A question about the word alignment of one of the examples.": "Câu hỏi về gióng hàng từ của một câu mẫu.",
    "A request for the most likely pieces at each position.": "Yêu cầu những từ con có xác suất cao nhất ở mỗi vị trí.",
    "A question about how much each source piece matters for each target piece.": (
        "Câu hỏi về mức độ quan trọng của mỗi từ con nguồn đối với mỗi từ con đích."
    ),
    "A question about one row of a map.": "Câu hỏi về một hàng của bản đồ.",
    "New weights (`way`) for some heads and steps, or a new temperature, normalizer or window for a whole layer.": (
        "Trọng số mới (`way`) cho một số đầu chú ý và bước, hoặc nhiệt độ, hàm chuẩn hóa hay cửa sổ mới cho cả tầng."
    ),
    "The response of /v2/translate; the translations are in the order of the texts.": (
        "Phản hồi của /v2/translate; các bản dịch được xếp theo thứ tự của các văn bản."
    ),
    "The translation of one text.": "Bản dịch của một văn bản.",
    "A language that a web page selects by default.": "Ngôn ngữ mà trang web chọn mặc định.",
    "A language that a text may be written in.": "Một ngôn ngữ có thể là ngôn ngữ của văn bản.",
    "A request to translate a sentence with and without changes to the attention.": (
        "Yêu cầu dịch một câu, khi giữ nguyên và khi thay đổi sự chú ý."
    ),
    "A language and the languages that it can be translated into.": (
        "Một ngôn ngữ và những ngôn ngữ đích có thể dịch sang từ ngôn ngữ đó."
    ),
    "A question about a sentence and the run's own translation of it, or a given one.": (
        "Câu hỏi về một câu và bản dịch của mô hình, hoặc bản dịch được gửi kèm."
    ),
    "The response of /frontend/settings.": "Phản hồi của /frontend/settings.",
    "A request for each step of a search; if a site is given, each step includes the map of its best hypothesis.": (
        "Yêu cầu từng bước của quá trình tìm kiếm; nếu có site, mỗi bước kèm bản đồ của bản dịch dở dang tốt nhất."
    ),
    "A request for translations.": "Yêu cầu dịch.",
    "The response of /translate; its fields are lists if q is a list.": (
        "Phản hồi của /translate; các trường là danh sách nếu q là danh sách."
    ),
    "The body of every error.": "Nội dung phản hồi của mọi lỗi.",
}
