// Every label of the page in its two languages.

const TEXTS = {
  en: {
    title: "Attention lab", subtitle: "Type a sentence, see what the model attends to, change it.",
    sentence: "sentence", run: "run", translate: "Translate", site: "site", layer: "layer", head: "head", unit: "unit",
    pieces: "pieces", words: "words", save: "save the map", mean: "mean", intact: "As the model translates it",
    changed: "With your changes", changes: "Changes", alternatives: "Other pieces at this position",
    explain: "Where these weights come from", other: "Tiếng Việt",
    warning: "A run knows only text like that it was trained on. Runs of the embedded corpus fail on other sentences.",
    hint: "Click a cell of the map to change its weight, or a word.", blockWord: "Block this word everywhere",
    blockCell: "Weight 0 here", boost: "Three times the weight", oneHot: "All weight on this word",
    uniform: "Equal weights in this row", off: "Switch this head off",
    remove: "Remove", lock: "Lock the translation before this piece",
    locked: "Locked: {0}", weight: "{0} attends to {1} with weight {2}.", row: "{0} attends to: {1}",
    column: "{0} in the source.", same: "The same translation.", another: "Another translation.",
    mattered: "The log-probability of the first translation changes by {0} nats, most at {1} ({2}).",
    score: "score", allowed: "allowed", value: "value (first numbers)", key: "key (first numbers)",
    query: "query (first numbers): {0}", context: "context (first numbers): {0}", yes: "yes", no: "no",
    waiting: "translating …", weights: "weight",
    failed: "The server cannot be reached: {0}", taken: "Take this piece", beam: "The beam, step by step",
  },
  vi: {
    title: "Phòng thí nghiệm chú ý", subtitle: "Gõ một câu, xem mô hình chú ý vào đâu, rồi thay đổi.",
    sentence: "câu", run: "mô hình", translate: "Dịch", site: "vị trí", layer: "tầng", head: "đầu", unit: "đơn vị",
    pieces: "mảnh từ", words: "từ", save: "lưu bản đồ", mean: "trung bình", intact: "Bản dịch của mô hình",
    changed: "Với thay đổi của bạn", changes: "Thay đổi", alternatives: "Các mảnh khác ở vị trí này",
    explain: "Các trọng số này được tính thế nào", other: "English",
    warning: "Mô hình chỉ biết loại văn bản nó đã học. Mô hình của kho dữ liệu kèm theo dịch sai các câu khác.",
    hint: "Bấm vào một ô của bản đồ để đổi trọng số, hoặc vào một từ.", blockWord: "Chặn từ này ở mọi bước",
    blockCell: "Trọng số 0 ở đây", boost: "Trọng số gấp ba", oneHot: "Toàn bộ trọng số vào từ này",
    uniform: "Trọng số bằng nhau ở hàng này", off: "Tắt đầu này",
    remove: "Bỏ", lock: "Khóa bản dịch trước mảnh này",
    locked: "Đã khóa: {0}", weight: "{0} chú ý vào {1} với trọng số {2}.", row: "{0} chú ý vào: {1}",
    column: "{0} trong câu nguồn.", same: "Bản dịch không đổi.", another: "Bản dịch khác.",
    mattered: "Log xác suất của bản dịch đầu thay đổi {0} nat, nhiều nhất ở {1} ({2}).",
    score: "điểm", allowed: "được phép", value: "giá trị (các số đầu)", key: "khóa (các số đầu)",
    query: "truy vấn (các số đầu): {0}", context: "ngữ cảnh (các số đầu): {0}", yes: "có", no: "không",
    waiting: "đang dịch …", weights: "trọng số",
    failed: "Không kết nối được với máy chủ: {0}", taken: "Chọn mảnh này", beam: "Chùm tìm kiếm, từng bước",
  },
};

export const language = new URLSearchParams(location.search).get("lang") === "vi" ? "vi" : "en";

// A label, with {0}, {1} ... replaced.
export function label(name, ...values) {
  return TEXTS[language][name].replace(/\{(\d)\}/g, (_, index) => values[index]);
}

// Fills every element that names its label.
export function fillLabels() {
  document.documentElement.lang = language;
  document.title = label("title");
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = label(element.dataset.text);
}

export const labelNames = Object.fromEntries(Object.entries(TEXTS).map(([code, texts]) => [code, Object.keys(texts)]));
