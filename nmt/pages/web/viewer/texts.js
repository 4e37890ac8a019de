// @ts-check
// Every label of the viewer in English and Vietnamese.

import { GLOSSARY } from "../glossary.js";
import { labelFrom } from "../language.js";

/** @type {Record<string, Record<string, string>>} */
const TEXTS = {
  en: {
    ...GLOSSARY.en,
    title: "Attention maps", loading: "loading the maps …", old: "This page needs a browser from 2023 or later.", switch: "Tiếng Việt",
    selection: "Selection", sentence: "sentence", previousSentence: "previous sentence", nextSentence: "next sentence", ofRank: " (translation {0})",
    site: "site", unit: "unit", pieces: "pieces", words: "words", labeled: "rows labeled by", predicts: "predicted word", reads: "word read",
    word: "target word", previousWord: "previous target word", nextWord: "next target word", compare: "compare",
    film: "Film", play: "Play", stop: "Stop", run: "run", step: "step", runs: "{0} runs", steps: "{0} steps", stepName: "step {0}",
    layer: "layer", head: "head", map: "Map", secondMap: "Second map", noWeight: "weight 0", centers: "center of the local window",
    entropy: "entropy of each head in nats", entropyHint: "entropy of each head in nats, mean over the rows: low = sharp, high = spread out",
    missingFile: "The file {0} is missing: keep it beside this page.",
    olderPage: "This page is older than its files ({0}): reload it, or export the maps again.",
    hint: "Point at a word to see what it attends to. Click to pin it. The arrow keys move through the target.",
    noSiteOfrun: "This run has no attention at {0}.", noSiteOfstep: "This step has no attention at {0}.",
    noLineOfrun: "This run has no line {0}, translation {1}.", noLineOfstep: "This step has no line {0}, translation {1}.",
    source: "source", attendedSource: "source, attended to", attendedTarget: "target, attended to", columns: "columns", rows: "rows",
    targetreads: "target, read", targetpredicts: "target, predicted", each: "{0}, each to ± 0.002",
    ofMap: "Heat map of {0}, line {1}, {2} attention, layer {3}, head {4}, {5} target by {6} source {7}. The word lists give the same information.",
    ofHead: "layer {0}, head {1}: {2}", ofCell: "layer {0}, head {1} – {2}", noWeights: "no weights", nats: "{0} nats",
    layerNumber: "layer {0}", headNumber: "head {0}", nothing: "nothing above 0.01", window: " (window around p = {0})",
    atPosition: "position {0}", atPositions: "positions {0}–{1}", atStep: "step {0}", atSteps: "steps {0}–{1}", atStepReads: "step {0} reads", atStepsReads: "steps {0}–{1} reads",
    keys: "Keyboard shortcuts", keyWord: "previous or next target word (source word, if one has the focus)", keyHead: "previous or next head",
    keyLayer: "previous or next layer; also Page Up and Page Down", keyMean: "mean of the heads; press again for the mean of the layers too",
    keySentence: "next or previous sentence", keyUnit: "switch between words and pieces", keyPin: "pin the focused word",
    keyLeave: "unpin; leave a menu, so that these keys work again", keyFilm: "play or stop the film", keyKeys: "show or hide this list", space: "space",
    encoder_self: "encoder_self", decoder_self: "decoder_self", cross: "cross", context: "context", mean: "mean",
    termCross: "cross",
    termSelf: "encoder_self, decoder_self", aboutSelf: "What the words of one sentence look at in the same sentence.",
    termHead: "head",
    termWeight: "weight", aboutWeight: "How much of its attention a row gives to a column; the weights of a row sum to 1.",
    termPieces: "pieces",
    termEnd: "</s>",
    termEntropy: "entropy", aboutEntropy: "How far a head spreads its weights: 0 nats is all weight on one column, and equal weights on n columns are ln n nats.",
  },
  vi: {
    ...GLOSSARY.vi,
    title: "Bản đồ chú ý", loading: "đang nạp các bản đồ …", old: "Trang này cần trình duyệt phát hành từ năm 2023 trở đi.", switch: "English",
    selection: "Lựa chọn", sentence: "câu", previousSentence: "câu trước", nextSentence: "câu sau", ofRank: " (bản dịch {0})",
    site: "loại chú ý", unit: "đơn vị", pieces: "từ con", words: "từ", labeled: "nhãn của hàng", predicts: "từ được dự đoán", reads: "từ được đọc",
    word: "từ đích", previousWord: "từ đích trước", nextWord: "từ đích sau", compare: "so sánh",
    film: "Phim", play: "Phát", stop: "Dừng", run: "mô hình", step: "bước", runs: "{0} mô hình", steps: "{0} bước", stepName: "bước {0}",
    layer: "tầng", head: "đầu chú ý", map: "Bản đồ", secondMap: "Bản đồ thứ hai", noWeight: "trọng số 0", centers: "tâm của cửa sổ cục bộ",
    entropy: "entropy của từng đầu chú ý, tính bằng nat", entropyHint: "entropy của từng đầu chú ý (nat), trung bình trên các hàng: thấp = tập trung, cao = dàn trải",
    missingFile: "Thiếu tệp {0}: hãy đặt tệp đó cùng thư mục với trang này.",
    olderPage: "Trang này cũ hơn các tệp của nó ({0}): hãy tải lại trang, hoặc xuất lại các bản đồ.",
    hint: "Trỏ vào một từ để xem nó chú ý đến đâu. Bấm để ghim từ đó. Dùng các phím mũi tên để chuyển giữa các từ đích.",
    noSiteOfrun: "Mô hình này không có {0}.", noSiteOfstep: "Bước này không có {0}.",
    noLineOfrun: "Mô hình này không có dòng {0}, bản dịch {1}.", noLineOfstep: "Bước này không có dòng {0}, bản dịch {1}.",
    source: "nguồn", attendedSource: "nguồn, được chú ý", attendedTarget: "đích, được chú ý", columns: "cột", rows: "hàng",
    targetreads: "đích, được đọc", targetpredicts: "đích, được dự đoán", each: "{0}, sai số mỗi ô ± 0,002",
    ofMap: "Bản đồ nhiệt của {0}, dòng {1}, {2}, tầng {3}, đầu chú ý {4}, {5} × {6} {7} (đích × nguồn). Hai danh sách từ cho cùng thông tin.",
    ofHead: "tầng {0}, đầu chú ý {1}: {2}", ofCell: "tầng {0}, đầu chú ý {1} – {2}", noWeights: "không có trọng số", nats: "{0} nat",
    layerNumber: "tầng {0}", headNumber: "đầu {0}", nothing: "không có trọng số nào trên 0,01", window: " (cửa sổ quanh p = {0})",
    atPosition: "vị trí {0}", atPositions: "vị trí {0}–{1}", atStep: "bước {0}", atSteps: "bước {0}–{1}", atStepReads: "bước {0} đọc", atStepsReads: "bước {0}–{1} đọc",
    keys: "Phím tắt", keyWord: "từ đích trước hoặc sau (từ nguồn, nếu đang chọn từ nguồn)", keyHead: "đầu chú ý trước hoặc sau",
    keyLayer: "tầng trước hoặc sau; cũng dùng được Page Up và Page Down", keyMean: "trung bình các đầu chú ý; nhấn lần nữa: trung bình cả các tầng",
    keySentence: "câu sau hoặc trước", keyUnit: "chuyển giữa từ và từ con", keyPin: "ghim từ đang chọn",
    keyLeave: "bỏ ghim; rời ô chọn để các phím này lại có tác dụng", keyFilm: "phát hoặc dừng phim", keyKeys: "hiện hoặc ẩn danh sách này", space: "phím cách",
    encoder_self: "tự chú ý ở bộ mã hóa", decoder_self: "tự chú ý ở bộ giải mã", cross: "chú ý chéo", context: "ngữ cảnh", mean: "trung bình",
    termCross: "chú ý chéo",
    termSelf: "tự chú ý", aboutSelf: "Những chỗ mà các từ của một câu nhìn vào trong chính câu đó.",
    termHead: "đầu chú ý",
    termWeight: "trọng số", aboutWeight: "Phần chú ý mà một hàng dành cho một cột; các trọng số của một hàng có tổng bằng 1.",
    termPieces: "từ con",
    termEnd: "</s>",
    termEntropy: "entropy", aboutEntropy: "Mức độ dàn trải trọng số của một đầu chú ý: 0 nat nếu dồn hết vào một cột, ln n nat nếu chia đều cho n cột.",
  },
};

/** The terms of the glossary, each with the name of its explanation. */
export const TERMS = [
  ["termCross", "aboutCross"], ["termSelf", "aboutSelf"], ["termHead", "aboutHead"], ["termWeight", "aboutWeight"],
  ["termPieces", "aboutPieces"], ["termEnd", "aboutEnd"], ["termEntropy", "aboutEntropy"],
];

/** A label in which {0}, {1} ... are replaced by the values. */
export const label = labelFrom(TEXTS);
