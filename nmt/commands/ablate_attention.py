"""nmt.ablate_attention: how much log-probability and BLEU a run loses when one attention head is ablated."""

from pathlib import Path

from nmt.commands.ablate_attention_settings import AblateAttentionSettings
from nmt.config.job import Job
from nmt.files import write_json, write_text
from nmt.insight.ablation import ablate, readable_pairs
from nmt.maps.attention_map import selected_sites
from nmt.paths import folder_to_write
from nmt.runs.load import load_run
from nmt.scoring.run_scores import TranslationOptions, conditions
from nmt.scoring.test_sets import chosen_test_set
from nmt.tables import Table

HEADER = ["site", "layer", "head", "way", "change in log-probability per piece", "change in BLEU"]


def ablate_attention(job: Job[AblateAttentionSettings]) -> None:
    """Prints and saves the change in log-probability and BLEU for each head and way of ablation, largest loss first.

    Raises Mistake for a site that the model lacks, and if no sentence pair can be measured.
    """
    settings = job.settings
    run = load_run(Path(settings.run_dir), settings.device)
    selected_sites(settings.site, run.model.sites)  # refuses an unknown site before the files are read
    chosen = chosen_test_set(
        run, split=settings.split, source=settings.source, reference=settings.reference, out=settings.out
    )
    out = folder_to_write("out", chosen.out)
    lines = readable_pairs(run, chosen.sources, chosen.references[0], settings.sentences)
    test_set = chosen.subset(lines)
    made_with = conditions([run], test_set, TranslationOptions(batch_tokens=settings.batch_tokens))
    intact, heads = ablate(
        run,
        chosen.sources,
        chosen.references,
        site=settings.site,
        ways=settings.ways,
        bleu=settings.bleu,
        tokenized=chosen.tokenized,
        documents=chosen.documents,
        lines=lines,
        batch_tokens=settings.batch_tokens,
    )
    rows = []
    for site, layer, head, way, quality in heads:
        row = [site, str(layer), str(head), way, f"{quality.log_prob - intact.log_prob:+.4f}"]
        if quality.bleu is not None and intact.bleu is not None:
            row.append(f"{quality.bleu - intact.bleu:+.2f}")
        rows.append(row)
    table = Table(HEADER if settings.bleu else HEADER[:-1], rows)
    write_text(out / "ablation.csv", table.csv())
    record = {"command": job.command, "sentences": len(test_set.sources), "intact": intact._asdict()}
    record |= made_with
    write_json(out / "ablation.json", record)
    intact_bleu = "" if intact.bleu is None else f", BLEU {intact.bleu:.2f} ({intact.signature})"
    print(f"Intact: {intact.log_prob:.4f} nats per piece{intact_bleu}, {len(test_set.sources)} sentences")
    print(table.markdown())
    print(out / "ablation.csv")
    print(out / "ablation.json")
