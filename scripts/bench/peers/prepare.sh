# prepare.sh FOLDER: the training, validation and test text of data/envi, a joint unigram model, and the settings beside them.
set -euo pipefail
folder=${1:?prepare.sh FOLDER}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
for side in en vi; do
  for part in basic alt news evb; do tr -d '\r' < "data/envi/$part.$side"; done > "$folder/train.$side"
  cp "data/envi/news_dev.$side" "$folder/dev.$side"
  cp "data/envi/news_test.$side" "$folder/test.$side"
  cp "data/envi/ted_dev.$side" "$folder/ted.$side"
done
cp "$here"/*.yaml "$folder"
cd "$folder"
# What JoeyNMT translates with is a setting of the same file.
sed 's#^testing: {#&load_model: "joey_model/latest.ckpt", #' joeynmt.yaml > joeynmt_translate.yaml
python - <<'PYTHON'
import sentencepiece

sentencepiece.SentencePieceTrainer.train(
    input="train.en,train.vi", model_prefix="pieces", vocab_size=8000, model_type="unigram", character_coverage=1.0,
    unk_id=0, pad_id=1, bos_id=2, eos_id=3, minloglevel=2,
)
PYTHON
cut -f1 pieces.vocab > pieces.txt
