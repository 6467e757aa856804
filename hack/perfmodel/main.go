// Command perfmodel puts a table of kernels into a few numbers, fits the constants
// of the performance model on a table of measured runs, and reports how far off
// estimates are on models that were left out of a fit. The constants it writes are
// fitted on all rows; no figure of its report is of a row that was fitted on. With
// -check it fits nothing and judges the shipped constants on every row of another
// table; with -folds it leaves out one GPU, and one model on one GPU, too.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/dynamo-operator/dynamo-operator/hack/perfmodel/fit"
	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/file"
)

// options are the flags.
type options struct {
	table, kernels, into, extra, list string
	check, folds                      bool
}

func main() {
	var o options
	flag.StringVar(&o.table, "measurements", "../shared/data/measured-latency.csv", "table of measured runs")
	flag.StringVar(&o.kernels, "kernels", "../shared/data/h200-kernels.csv", "table of measured kernels; empty keeps the shipped numbers")
	flag.StringVar(&o.into, "write", "", "write constants.yaml and kernels.yaml to this folder")
	flag.BoolVar(&o.check, "check", false, "fit nothing: report the error of the shipped constants")
	flag.StringVar(&o.list, "rows", "", "list the rows of groups that contain this text")
	flag.BoolVar(&o.folds, "folds", false, "leave out one GPU, and one model on one GPU, too")
	flag.StringVar(&o.extra, "tables", "", "more models and GPUs")
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "perfmodel:", err)
		os.Exit(1)
	}
}

func (o options) run() error {
	catalog, err := file.Catalog(o.extra)
	if err != nil {
		return err
	}
	if o.kernels != "" && !o.check {
		if catalog, err = o.measure(catalog); err != nil {
			return err
		}
	}
	source, err := os.Open(o.table)
	if err != nil {
		return err
	}
	defer source.Close()
	rows, left, err := fit.Read(source, catalog)
	if err != nil {
		return err
	}
	if o.check {
		judged := fit.JudgeShipped(rows)
		fmt.Print(fit.Report("Shipped constants, and what is known of models, on every row of the table.", judged), fit.Details(judged, left), fit.List(judged, o.only()))
		return nil
	}
	byModel := fit.CrossValidate(rows, fit.Prior(), fit.Folds[0])
	fmt.Print(fit.Report("Models that were never measured: every row judged by constants fitted without its model, in any format, on any GPU, with any engine.", byModel), fit.Details(byModel, left), fit.List(byModel, o.only()))
	known := fit.JudgeKnown(byModel)
	fmt.Print("\n", fit.ReportKnown("Models that were measured: every row judged by the same constants and by three numbers that other deployments of its model tell, on the same GPU and in the same format.", known), fit.List(known, o.only()))
	if !o.folds && o.into == "" {
		return nil
	}
	byGPU := fit.CrossValidate(rows, fit.Prior(), fit.Folds[1])
	if o.folds {
		for i, judged := range [][]fit.Judged{byGPU, fit.CrossValidate(rows, fit.Prior(), fit.Folds[2])} {
			fmt.Print("\n", fit.Report("Every row judged by constants fitted without its "+fit.Folds[i+1].Name+".", judged))
		}
	}
	if o.into == "" {
		return nil
	}
	constants := fit.Fit(rows, fit.Prior())
	text, err := perfmodel.MarshalMeasured(fit.Measure(rows, constants))
	if err != nil {
		return err
	}
	if err := o.write("measured.yaml", "# How models differ from what the constants of engines say, by hack/perfmodel.\n", text); err != nil {
		return err
	}
	if text, err = perfmodel.MarshalConstants(fit.Calibrate(constants, byModel, byGPU)); err != nil {
		return err
	}
	return o.write("constants.yaml", fmt.Sprintf("# Fitted by hack/perfmodel on %d rows; bands by fits without a row's model.\n", len(rows)), text)
}

// only is what to list; nothing has a group with a line break in its name.
func (o options) only() string {
	if o.list == "" {
		return "\n"
	}
	return o.list
}

// measure puts the table of kernels into numbers and reports on them.
func (o options) measure(catalog perfmodel.Catalog) (perfmodel.Catalog, error) {
	source, err := os.Open(o.kernels)
	if err != nil {
		return catalog, err
	}
	defer source.Close()
	kernels, err := fit.ReadKernels(source)
	if err != nil {
		return catalog, err
	}
	gpu, err := catalog.GPU(catalog.Kernels.GPU)
	if err != nil {
		return catalog, err
	}
	text, err := perfmodel.MarshalKernels(fit.FitKernels(kernels, gpu))
	if err != nil {
		return catalog, err
	}
	if catalog, err = catalog.With(text); err != nil {
		return catalog, err
	}
	report, err := fit.KernelReport(catalog, kernels)
	if err != nil {
		return catalog, err
	}
	fmt.Print(report)
	if o.into == "" {
		return catalog, nil
	}
	return catalog, o.write("kernels.yaml", fmt.Sprintf("# What kernels reach, by hack/perfmodel from %d of them.\n", len(kernels)), text)
}

func (o options) write(name, head string, text []byte) error {
	head += "# `make perf-model` writes this file; do not edit it.\n"
	return os.WriteFile(o.into+"/"+name, append([]byte(head), text...), 0o644)
}
