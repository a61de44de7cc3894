"""The command ``m3n`` and its subcommands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import m3n
from m3n.cli import pack_options as packing
from m3n.cli import train_options as options
from m3n.cli import tune_options as tuning
from m3n.cli.options import (
    Address,
    Backend,
    DataFile,
    Delimiter,
    Encoding,
    FirstFeature,
    Format,
    GoldLinks,
    Jobs,
    Json,
    JsonLines,
    Label,
    Lanes,
    Model,
    Objective,
    Output,
    OutputFormat,
    Quiet,
    Workers,
    blaming,
    check_outputs,
    compilation_shown,
)

HELP = (
    "Structured prediction with a proof of quality.\n\n"
    "[bold]m3n train train.txt -m model.m3n --test test.txt --report report.html[/bold] learns from a column file (one "
    "token per line, the label last, an empty line between sequences) and says how far from the optimum the model is "
    "at most. [bold]m3n evaluate test.txt -m model.m3n[/bold] scores it, [bold]m3n predict new.txt -m model.m3n[/bold] "
    "labels new sequences, [bold]m3n inspect model.m3n[/bold] shows what it learnt. [bold]m3n align pairs.txt[/bold] "
    "finds words that translate each other, [bold]m3n tune train.txt[/bold] finds settings.\n\n"
    "Files may be gzipped; - is standard input or output; --json is for machines. Exit codes: 0 done, 1 a failed "
    "comparison, 2 a wrong argument or file, 130 interrupted (the best model so far is saved)."
)

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help=HELP)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"m3n {m3n.__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def train(
    data: DataFile,
    model: options.ModelOutput,
    test: options.Test = None,
    report: options.Report = None,
    calibrate: options.Calibrate = None,
    coverage: options.CoverageWanted = None,
    label_coverage: options.LabelCoverage = None,
    task: options.Task = None,
    json: Json = False,
    quiet: Quiet = False,
    prior: options.Prior = None,
    template: options.Template = None,
    min_freq: options.MinFreq = None,
    constraints: options.Constraints = None,
    repair: options.Repair = False,
    observed_only: options.ObservedOnly = False,
    boundaries: options.Boundaries = True,
    objective: Objective = "margin",
    lam: options.Lam = None,
    loss: options.Loss = None,
    class_weight: options.ClassWeight = None,
    l1: options.L1 = 0.0,
    rtol: options.Rtol = None,
    tol: options.Tol = None,
    max_passes: options.MaxPasses = None,
    max_seconds: options.MaxSeconds = None,
    validation: options.Validation = None,
    patience: options.Patience = None,
    stop: options.Stop = "gap",
    checkpoint: options.Checkpoint = None,
    solver: options.Solver = "auto",
    jobs: Jobs = None,
    backend: Backend = None,
    address: Address = None,
    workers: Workers = None,
    lanes: Lanes = None,
    seed: options.Seed = 0,
    format: Format = None,
    delimiter: Delimiter = None,
    label: Label = -1,
    encoding: Encoding = None,
    first_feature: FirstFeature = None,
    order: options.Order = None,
    crossing: options.Crossing = False,
    single_root: options.SingleRoot = True,
    links: GoldLinks = None,
    test_links: options.TestLinks = None,
    unlabelled: options.Unlabelled = None,
    translations: options.Translations = None,
    structure: options.LinkStructure = None,
    fertility: options.Fertility = None,
) -> None:
    """Learn from labelled sequences, sets, graphs, trees or alignments, and say how near to the optimum the model is.

    Ctrl-C ends training early: the best model so far is saved, with its certificate.
    """
    from m3n.cli import train as command
    from m3n.cli.alignments import load_translations, read_more
    from m3n.cli.inputs import Reading, task_of, templates_for
    from m3n.cli.packed import packed_at
    from m3n.cli.settings import parse_backend, parse_class_weight, parse_solver, parse_stop, parse_strength
    from m3n.io.files import hold, recoded

    with blaming("--solver"):
        chosen = solver if solver == "auto" else parse_solver(solver)
    with blaming("--backend"):
        where = parse_backend(backend, address, workers, lanes)
    check_outputs(model=model, report=report, checkpoint=checkpoint)
    with blaming("--coverage"):
        promise = command.promised(coverage, label_coverage, calibrate)
    reading = Reading(format, delimiter, label, first_feature, single_root, links, not (json or quiet))
    with blaming("DATA"):
        whole = packed_at(data) is None
        source = hold(recoded(data, encoding)) if whole else data
        task = task or (task_of(source, format, delimiter) if whole else "sequences")
    with blaming("--task"):
        form = command.estimator_for(task)._form
    files = command.Files(source, test, test_links, calibrate, encoding, validation)
    material = command.read_material(files, reading, form, promise)
    if repair:
        with blaming("--repair"):
            material = material.repaired(constraints)
    found, usual = material.data, command.usual_settings(form)
    with blaming("--lam"):
        wanted = lam or usual.get("lam")
        strength = None if wanted is None else parse_strength(wanted, material.count)
    with blaming("--class-weight"):
        weights = parse_class_weight(class_weight, material.labels)
    with blaming("--stop"):
        end = parse_stop(stop)
    with blaming("--prior"):
        earlier = command.load_prior(prior, task)
    with blaming("--template"):
        templates = command.templates_of(earlier) if template is None else None
        templates = templates or templates_for(found.X, None if template is None else recoded(template, encoding))
    with blaming("--unlabelled"):
        more = read_more(unlabelled, form)
    with blaming("--translations"):
        known = load_translations(translations)
    settings: dict[str, Any] = {
        "templates": templates, "objective": objective, "loss": loss, "lam": strength, "l1": l1,
        "class_weight": weights, "observed_only": observed_only, "constraints": constraints, "solver": chosen,
        "rtol": usual.get("rtol") if rtol is None else rtol, "tol": usual.get("tol") if tol is None else tol,
        "max_passes": max_passes, "max_seconds": max_seconds, "checkpoint": checkpoint, "n_jobs": jobs,
        "backend": where,
        "random_state": seed, "order": order, "projective": False if crossing else None,
        "single_root": None if single_root else False, "translations": known, "structure": structure,
        "fertility": fertility, "min_freq": min_freq, "boundaries": None if boundaries else False, "prior": earlier,
        "validation": material.watched, "patience": patience,
        "stop": end,
    }  # fmt: skip
    wishes = command.Wishes(model, task, settings, more, report, json, quiet, promise)
    with blaming("train"), compilation_shown(not (json or quiet)):
        code = command.run(material, wishes)
    raise typer.Exit(code)


@app.command()
def tune(
    data: DataFile,
    model: tuning.ModelOutput = None,
    report: tuning.Report = None,
    task: options.Task = None,
    json: Json = False,
    quiet: Quiet = False,
    template: tuning.Templates = None,
    objective: tuning.Objectives = None,
    lams: tuning.Lams = "20",
    folds: tuning.Folds = 5,
    validation: tuning.Validation = None,
    scoring: tuning.ScoringName = "accuracy",
    guarantee: tuning.GuaranteePoints = None,
    budget: tuning.Budget = None,
    search_rtol: tuning.SearchRtol = None,
    min_freq: options.MinFreq = None,
    constraints: options.Constraints = None,
    observed_only: options.ObservedOnly = False,
    boundaries: options.Boundaries = True,
    loss: options.Loss = None,
    rtol: options.Rtol = None,
    solver: options.Solver = "auto",
    jobs: Jobs = None,
    seed: options.Seed = 0,
    format: Format = None,
    delimiter: Delimiter = None,
    label: Label = -1,
    encoding: Encoding = None,
    first_feature: FirstFeature = None,
) -> None:
    """Find lam, and templates or objectives, on held-out data, and prove what other values of lam could bring.

    -m writes the model that is fitted to all data with the best setting.
    """
    from m3n.cli import tune as command
    from m3n.cli.inputs import Reading, task_of
    from m3n.cli.settings import parse_solver
    from m3n.cli.train import estimator_for
    from m3n.io.files import hold, recoded

    check_outputs(model=model, report=report)
    with blaming("--solver"):
        method = solver if solver == "auto" else parse_solver(solver)
    reading = Reading(format, delimiter, label, first_feature, shown=not (json or quiet))
    with blaming("DATA"):
        source = data if data.is_dir() else hold(recoded(data, encoding))
        task = task or ("sequences" if data.is_dir() else task_of(source, format, delimiter))
    with blaming("--task"):
        form = estimator_for(task)._form
    with blaming("DATA"):
        found = command.read_data(source, reading, form)
    with blaming("--validation"):
        held_out = None if validation is None else reading.labelled(recoded(validation, encoding), form, found)
    with blaming("--lams"):
        values = command.parse_lams(lams, len(found.y or []))
    with blaming("--template"):
        templates = command.parse_templates(found.X, template, encoding)
    settled, grid = command.chosen({"objective": objective or ["margin"], "templates": templates})
    settled |= {
        "min_freq": min_freq, "constraints": constraints, "observed_only": observed_only or None, "loss": loss,
        "boundaries": None if boundaries else False, "rtol": rtol, "tol": None if rtol is None else 0.0,
        "solver": method, "n_jobs": jobs, "random_state": seed,
    }  # fmt: skip
    search = {
        "lams": values, "cv": folds, "scoring": scoring, "budget": budget, "rtol": search_rtol, "seed": seed,
        "guarantee": True if guarantee is None else guarantee,
    }  # fmt: skip
    wishes = command.Wishes(task, settled, grid, search, model, report, json, quiet)
    with blaming("tune"), compilation_shown(not (json or quiet)):
        code = command.run(found, held_out, wishes)
    raise typer.Exit(code)


@app.command()
def pack(
    data: packing.DataFiles,
    output: packing.Folder,
    template: packing.Template = None,
    min_freq: packing.MinFreq = 1,
    hash: packing.Hash = None,
    memory: packing.Memory = "1GB",
    shard_size: packing.ShardSize = None,
    force: packing.Force = False,
    json: Json = False,
    quiet: Quiet = False,
    format: Format = None,
    delimiter: Delimiter = None,
    label: Label = -1,
    encoding: Encoding = None,
) -> None:
    """Pack labelled sequences of any number into a folder that is read without loading it: shards.

    The data are read once. m3n inspect shows what a folder holds; predict and evaluate take it instead of a file.
    """
    from m3n.cli import pack as command
    from m3n.cli.inputs import Reading
    from m3n.estimators.block_rows import Settings
    from m3n.io.files import recoded
    from m3n.shards.packer import check_target
    from m3n.shards.sizes import bytes_of

    with blaming("--memory"):
        settings = Settings(min_freq, hash, bytes_of(memory))
    with blaming("--shard-size"):
        settings = settings._replace(shard_size=None if shard_size is None else bytes_of(shard_size, "--shard-size"))
    with blaming("--memory, --min-freq, --hash"):
        settings.check()
    with blaming("--output"):
        check_target(output, force)
    with blaming("--template"):
        templates = None if template is None else recoded(template, encoding)
    wishes = command.Wishes(output, settings, templates, force, encoding, json, quiet)
    with blaming("DATA"):
        command.check_paths(data)
        command.run(data, Reading(format, delimiter, label, shown=not (json or quiet)), wishes)


@app.command()
def predict(
    data: DataFile,
    model: Model,
    output: Output = Path("-"),
    n_best: Annotated[int, typer.Option(help="So many answers per sequence, best first.", min=1)] = 1,
    marginals: Annotated[bool, typer.Option("--marginals", help="The probability of every label.")] = False,
    confidence: Annotated[bool, typer.Option("--confidence", help="The probability of the predicted label.")] = False,
    temperature: Annotated[
        float | None,
        typer.Option(
            help="Of probabilities: below 1 they are sharper. Default: what train --calibrate has found, else 1."
        ),
    ] = None,
    sets: Annotated[
        bool,
        typer.Option("--sets", help="Sets of labels that hold the right one as often as train --coverage said."),
    ] = False,
    json: JsonLines = False,
    format: Format = None,
    delimiter: Delimiter = None,
    label: Label = -1,
    first_feature: FirstFeature = None,
    encoding: Encoding = None,
    output_format: OutputFormat = None,
) -> None:
    """Label new examples: the columns of the file and one more, or the labels alone for other formats.

    Label sets: svmlight files, a line of labels each. Graphs: JSON lines. Dependencies: CoNLL-U with new heads and
    relations. Phrases: trees in brackets, for such a file or for plain text with a sentence on every line. Alignments:
    links such as 0-0 1-2 for every line source ||| target, with --confidence as 0-0:0.93.
    """
    from m3n.cli import packed
    from m3n.cli import predict as command
    from m3n.cli.inputs import Reading

    check_outputs(output=output)
    wanted = command.Wanted(n_best, marginals, confidence, temperature, json, output_format, sets)
    with blaming("--model"):
        fitted = m3n.load(model)
    with blaming("predict"):
        command.check(fitted, wanted)
    with blaming("DATA"), compilation_shown():
        if (shards := packed.packed_at(data)) is not None:
            packed.predict(shards, fitted, output, wanted)
            return
        reading = Reading(format, delimiter, label, first_feature, shown=not json)
        command.run(fitted, reading.parts_for(data, fitted, encoding), output, wanted, encoding)


@app.command()
def evaluate(
    data: DataFile,
    model: Annotated[
        Path | None,
        typer.Option("--model", "-m", help="The model. Default: compare right and predicted labels in DATA."),
    ] = None,
    scheme: Annotated[
        str,
        typer.Option(
            help="How chunks are written. auto: conll if the labels are chunks, else none. conll takes all labels, "
            "valid or not, as conlleval does: I or E goes on with a chunk of its kind that B or I has begun or gone on "
            "with, any other prefix begins one. Strict, so that a chunk that is written otherwise does not count: "
            "iob1, iob2, ioe1, ioe2, bioes, bilou, bmes, bmewo."
        ),
    ] = "auto",
    json: Json = False,
    format: Format = None,
    delimiter: Delimiter = None,
    label: Label = -1,
    first_feature: FirstFeature = None,
    encoding: Encoding = None,
    links: GoldLinks = None,
) -> None:
    """Score labels: accuracy, a table per label, the F1 of chunks as conlleval counts it, the Hamming loss of sets.

    Without a model, what m3n predict has written is read, in any of its forms, if the data had right labels; or any
    column file with right and predicted label as its last columns.
    Trees: words with the right head and label (UAS, LAS), with and without punctuation; brackets as EVALB counts them.
    Alignments: AER, precision and recall; without a model, DATA is a file of links to compare with those of --links.
    """
    from m3n.cli import evaluate as command
    from m3n.cli import packed
    from m3n.cli.inputs import Reading
    from m3n.io.files import recoded

    with blaming("--model"):
        fitted = None if model is None else m3n.load(model)
    with blaming("DATA"), compilation_shown(not json):
        reading = Reading(format, delimiter, label, first_feature, links=links, shown=not json)
        if (shards := packed.packed_at(data)) is not None:
            gold, found = packed.labels_of(shards, fitted)
            command.run(gold, found, scheme, json, fitted)
            return
        source = recoded(data, encoding)
        if command.are_links(fitted, links):
            command.run_links(source, fitted, reading, json)
            return
        if fitted is not None and command.form_of(fitted).trees:
            command.run_trees(source, fitted, reading, json)
            return
        gold, found = command.labels_of(source, fitted, reading)
    with blaming("DATA, --scheme"):
        command.run(gold, found, scheme, json, fitted)


@app.command()
def align(
    data: Annotated[
        Path,
        typer.Argument(
            help="Sentence pairs, a line each: source words ||| target words. Plain or gzipped; - is standard input.",
            allow_dash=True,
        ),
    ],
    target: Annotated[
        Path | None, typer.Argument(help="The target sentences, line by line, if DATA has only the source.")
    ] = None,
    output: Output = Path("-"),
    model: Annotated[Path | None, typer.Option("--model", "-m", help="Where to write the model.")] = None,
    load: Annotated[Path | None, typer.Option(help="Align by this model instead of training one.")] = None,
    kind: Annotated[str | None, typer.Option(help="hmm (default), or model1: words without their order.")] = None,
    joint: Annotated[
        bool, typer.Option("--joint/--no-joint", help="Both directions learn to agree, or each for itself.")
    ] = True,
    iterations: Annotated[int | None, typer.Option(help="Of EM, for each model. Default: 5.", min=1)] = None,
    letters: Annotated[
        int | None, typer.Option(help="Compare words by so many first letters: for little text. Default: all.", min=1)
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="The least probability of a link. More of it, fewer links.", min=0.0, max=1.0)
    ] = None,
    symmetrize: Annotated[
        str | None,
        typer.Option(
            help="Instead of a threshold: every word takes its likeliest partner in either direction; then "
            "intersection, union, grow-diag, grow-diag-final or grow-diag-final-and."
        ),
    ] = None,
    output_format: OutputFormat = None,
    confidence: Annotated[bool, typer.Option("--confidence", help="Write probabilities, too: 0-0:0.93.")] = False,
    json: JsonLines = False,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Find out which words translate each other, from plain sentence pairs: an HMM of both directions, without links.

    Writes a line of links for every pair, such as 0-0 1-2 (source-target, counted from 0). A model that -m has saved
    aligns other pairs (--load, or m3n predict), and gives m3n train --translations what it knows.
    """
    from m3n.cli import align as command
    from m3n.cli.alignments import Written
    from m3n.io import read_parallel

    check_outputs(output=output, model=model)
    settings = {
        "model": kind, "joint": None if joint else False, "iterations": iterations, "letters": letters,
        "threshold": threshold, "n_jobs": jobs,
    }  # fmt: skip
    with blaming("align"):
        written = Written(output_format, confidence, json=json)
        wanted = command.Wanted(output, model, load, settings, symmetrize, written, quiet)
        command.check(wanted)
    with blaming("DATA"):
        pairs = read_parallel(data, target)[0]
    with blaming("align"), compilation_shown(not quiet):
        command.run(pairs, wanted)


@app.command()
def inspect(
    model: Annotated[Path, typer.Argument(help="A model file, or a folder of packed data.")],
    top: Annotated[int, typer.Option(help="So many weights of every label, of either sign.", min=0)] = 5,
    label: Annotated[str | None, typer.Option(help="Only this label.")] = None,
    json: Json = False,
) -> None:
    """Show what a model has learnt: labels, strongest weights, transitions, size, certificate; or what is packed."""
    from m3n.cli import inspect as command

    if model.is_dir():
        from m3n.cli import pack

        with blaming("MODEL"):
            pack.inspect(model, json)
        return
    with blaming("MODEL"):
        fitted = m3n.load(model)
    with blaming("--label"):
        command.run(fitted, top, label, json)


@app.command()
def convert(
    model: Annotated[Path, typer.Argument(help="A CRFsuite model, its text dump, or a CRF++ text model.")],
    output: Annotated[Path, typer.Argument(help="Where to write the model.")],
) -> None:
    """Import a model that CRFsuite or CRF++ has trained; it then predicts what they predict."""
    from m3n.compat import convert as read

    check_outputs(output=output)
    with blaming("MODEL"):
        tagger = read(model)
    tagger.save(output)
    typer.echo(f"{output}: {len(tagger.classes_)} labels, {tagger.n_features_in_:,} attributes")


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Where to write the picture.", dir_okay=False)] = Path("demo.png"),
    tol: Annotated[float, typer.Option(help="Duality gap at which training stops.", min=1e-9)] = 1e-3,
    seed: Annotated[int, typer.Option(help="Seed of the noisy digit strings.")] = 0,
) -> None:
    """Read noisy strings of handwritten digits: an independent classifier against a max-margin Markov network."""
    from m3n.cli.demo import run
    from m3n.compiled.ahead import expect

    if not output.parent.is_dir():
        raise typer.BadParameter(f"the folder {str(output.parent)!r} does not exist", param_hint="--output")
    with compilation_shown():
        expect("demo")
        run(output, tol=tol, seed=seed)


@app.command()
def compare(
    data: Annotated[
        Path | None,
        typer.Argument(
            help="A file letter.data, a column file, CoNLL-U or brackets, plain or gzipped; without: noisy digits."
        ),
    ] = None,
    solver: Annotated[
        list[str] | None, typer.Option(help="NAME or NAME:SETTING=VALUE,...; may be repeated. Default: all that fit.")
    ] = None,
    lam: Annotated[str, typer.Option(help="Weight of the regulariser: a number, or a number/n.")] = "0.01",
    loss: Annotated[
        str | None, typer.Option(help="hamming or normalized_hamming. Default: normalized_hamming; no loss for a CRF.")
    ] = None,
    objective: Objective = "margin",
    tol: Annotated[float, typer.Option(help="Duality gap at which a solver stops.", min=0.0)] = 1e-3,
    max_passes: Annotated[float, typer.Option(help="Passes that each solver has.", min=0.0)] = 300.0,
    max_seconds: Annotated[
        float | None, typer.Option(help="Seconds that each solver has. Default: 5, with a file 30.", min=0.0)
    ] = None,
    folds: Annotated[str | None, typer.Option(help="Folds of letter.data to take. Default: 1-9.")] = None,
    limit: Annotated[
        int | None, typer.Option(help="Take only so many sequences or trees, from the front.", min=1)
    ] = None,
    jobs: Jobs = None,
    seed: Annotated[int, typer.Option(help="Seed of the digit strings and of random solvers.", min=0)] = 0,
    json: Annotated[Path | None, typer.Option(help="Write everything to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw gap against passes and seconds: .png, .pdf or .svg.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Compare solvers on one problem: cost, certified gap and measured rate of each."""
    from m3n.cli import compare as command
    from m3n.cli.settings import parse_folds, parse_solver, parse_strength
    from m3n.compiled.ahead import expect

    with blaming("--solver"):
        solvers = [parse_solver(text) for text in solver or []]
    with blaming("--lam"):
        parse_strength(lam, 1)
    with blaming("--folds"):
        chosen = None if folds is None else parse_folds(folds)
    check_outputs(json=json, plot=plot)
    with blaming("--plot"):
        if plot is not None:
            command.check_picture(plot)
    with blaming("DATA"):
        found = command.load_data(data, seed, chosen).first(limit)
    with blaming("--loss, --objective, --jobs"):
        problem = found.problem(parse_strength(lam, found.count), loss, objective, jobs)
    seconds = max_seconds if max_seconds is not None else 5.0 if data is None else 30.0
    wanted = command.Wanted(solvers, tol, max_passes, seconds, seed, json, plot, quiet)
    with compilation_shown(not quiet):
        if data is None:
            expect("compare")
        code = command.run(problem, found, wanted)
    raise typer.Exit(code)


@app.command()
def warmup(
    task: Annotated[
        str, typer.Option(help="What for: tagging, crf, graphs ...; an unknown name lists them all.")
    ] = "all",
) -> None:
    """Compile for this processor beforehand, on all cores, so that first runs begin at once."""
    from m3n.cli.warmup import warm_up

    with blaming("--task"):
        code = warm_up(task)
    raise typer.Exit(code)


def main() -> None:
    """Entry point of the command."""
    app()
