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
    uniform: "Equal weights in this row", shuffle: "Shuffle this row", off: "Switch this head off",
    remove: "Remove", lock: "Lock the translation before this piece",
    locked: "Locked: {0}", weight: "{0} attends to {1} with weight {2}.", row: "{0} attends to: {1}",
    column: "{0} in the source.", same: "The same translation.", another: "Another translation.",
    mattered: "The log-probability of the first translation changes by {0} nats, most at {1} ({2}).",
    score: "score", allowed: "allowed", value: "value (first numbers)", key: "key (first numbers)",
    query: "query (first numbers): {0}", context: "context (first numbers): {0}", yes: "yes", no: "no",
    waiting: "translating …", weights: "weight",
    failed: "The server cannot be reached: {0}", taken: "Take this piece", beam: "The beam, step by step",
    second: "compare with", none: "no other run", view: "view", heat: "heat map", lines: "lines",
    difference: "difference", minus: "{0} minus {1}", original: "original", yourChange: "your change",
    otherWords: "The two runs split this sentence into different pieces; show words to see the difference.",
    minusHint: "Both read the first translation. Red: more weight in the first; blue: more in the second; at most {0}.",
    logProb: "log p = {0} nats, {1} per piece", drag: "weight of this cell; or drag it up and down",
    wholeLayer: "Change a whole layer: temperature, normalizer, window",
    wholeLayerHint: "These change all heads of the selected layers, without training again.",
    temperature: "temperature of the scores", normalizer: "normalizer", asTrained: "as trained",
    halfWidth: "window half-width D", search: "Search settings", beamSize: "beam size",
    lengthPenalty: "length penalty α", outside: "not from the corpus", guess: "Guess the alignment, then reveal",
    guessHint: "Which source word does each word of the translation come from? Choose cells, then reveal.",
    reveal: "Reveal", clear: "Clear",
    guessLegend: "●: link of the grammar, ○: possible link; color: the model's weight; ring: its largest; ✓: your guess.",
    you: "you", model: "the model", diagonal: "the diagonal", aer: "alignment error rate", precision: "precision",
    isWeight: "{0} = {1}", isTimes: "{0} × {1}", isUniform: "{0}: equal weights", isShuffled: "{0}: shuffled",
    isBlocked: "{0} blocked", isSetting: "{0} = {1}",
    recall: "recall", guessed: "{0} – {1}", numbers: "the numbers",
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
    uniform: "Trọng số bằng nhau ở hàng này", shuffle: "Xáo trộn hàng này", off: "Tắt đầu này",
    remove: "Bỏ", lock: "Khóa bản dịch trước mảnh này",
    locked: "Đã khóa: {0}", weight: "{0} chú ý vào {1} với trọng số {2}.", row: "{0} chú ý vào: {1}",
    column: "{0} trong câu nguồn.", same: "Bản dịch không đổi.", another: "Bản dịch khác.",
    mattered: "Log xác suất của bản dịch đầu thay đổi {0} nat, nhiều nhất ở {1} ({2}).",
    score: "điểm", allowed: "được phép", value: "giá trị (các số đầu)", key: "khóa (các số đầu)",
    query: "truy vấn (các số đầu): {0}", context: "ngữ cảnh (các số đầu): {0}", yes: "có", no: "không",
    waiting: "đang dịch …", weights: "trọng số",
    failed: "Không kết nối được với máy chủ: {0}", taken: "Chọn mảnh này", beam: "Chùm tìm kiếm, từng bước",
    second: "so sánh với", none: "không so sánh", view: "cách xem", heat: "bản đồ nhiệt", lines: "đường nối",
    difference: "hiệu", minus: "{0} trừ {1}", original: "ban đầu", yourChange: "thay đổi của bạn",
    otherWords: "Hai mô hình tách câu này thành các mảnh khác nhau; hãy xem theo từ để thấy hiệu.",
    minusHint: "Cả hai đọc bản dịch đầu. Đỏ: bên đầu nhiều trọng số hơn; xanh: bên sau nhiều hơn; nhiều nhất {0}.",
    logProb: "log p = {0} nat, {1} mỗi mảnh", drag: "trọng số của ô này; hoặc kéo ô lên xuống",
    wholeLayer: "Thay đổi cả tầng: nhiệt độ, chuẩn hóa, cửa sổ",
    wholeLayerHint: "Thay đổi mọi đầu của các tầng đã chọn, không cần huấn luyện lại.",
    temperature: "nhiệt độ của điểm", normalizer: "hàm chuẩn hóa", asTrained: "như khi huấn luyện",
    halfWidth: "nửa độ rộng cửa sổ D", search: "Cài đặt tìm kiếm", beamSize: "độ rộng chùm",
    lengthPenalty: "phạt độ dài α", outside: "ngoài kho dữ liệu", guess: "Đoán dóng hàng từ, rồi xem đáp án",
    guessHint: "Mỗi từ của bản dịch đến từ từ nào của câu nguồn? Chọn các ô rồi xem đáp án.",
    reveal: "Xem đáp án", clear: "Xóa",
    guessLegend: "●: liên kết của ngữ pháp, ○: liên kết có thể; màu: trọng số của mô hình; viền: lớn nhất; ✓: bạn đoán.",
    you: "bạn", model: "mô hình", diagonal: "đường chéo", aer: "tỉ lệ lỗi dóng hàng", precision: "độ chính xác",
    isWeight: "{0} = {1}", isTimes: "{0} × {1}", isUniform: "{0}: trọng số bằng nhau", isShuffled: "{0}: xáo trộn",
    isBlocked: "chặn {0}", isSetting: "{0} = {1}",
    recall: "độ phủ", guessed: "{0} – {1}", numbers: "các con số",
  },
};

export const language = new URLSearchParams(location.search).get("lang") === "vi" ? "vi" : "en";

// A label, with {0}, {1} ... replaced.
export function label(name, ...values) {
  return (TEXTS[language][name] ?? name).replace(/\{(\d)\}/g, (_, index) => values[index]);
}

// Fills every element that names its label.
export function fillLabels() {
  document.documentElement.lang = language;
  document.title = label("title");
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = label(element.dataset.text);
}

export const labelNames = Object.fromEntries(Object.entries(TEXTS).map(([code, texts]) => [code, Object.keys(texts)]));
