// Command perfmodel fits the constants of the performance model on a table of
// measurements and reports how far off the estimates are on groups of rows that
// were not fitted on. With -check it fits nothing and judges the shipped
// constants on every row of a table; with -folds it judges the way of fitting, by
// leaving out one model, one GPU or one model on one GPU at a time.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/dynamo-operator/dynamo-operator/hack/perfmodel/fit"
	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/file"
)

func main() {
	table := flag.String("measurements", "../shared/data/measured-latency.csv", "table of measured runs")
	into := flag.String("write", "", "write the fitted constants to this file")
	check := flag.Bool("check", false, "fit nothing: report the error of the shipped constants")
	list := flag.String("rows", "", "list the rows of groups that contain this text")
	folds := flag.Bool("folds", false, "fit nothing for use: leave out one model, GPU or model on a GPU at a time, and report the error on it")
	extra := flag.String("tables", "", "more models and GPUs")
	flag.Parse()
	if err := run(*table, *into, *extra, *list, *check, *folds); err != nil {
		fmt.Fprintln(os.Stderr, "perfmodel:", err)
		os.Exit(1)
	}
}

func run(table, into, extra, list string, checkOnly, folds bool) error {
	catalog, err := file.Catalog(extra)
	if err != nil {
		return err
	}
	source, err := os.Open(table)
	if err != nil {
		return err
	}
	defer source.Close()
	rows, left, err := fit.Read(source, catalog)
	if err != nil {
		return err
	}
	if folds {
		fmt.Print(fit.FoldReport(rows, fit.Prior(), catalog.Constants))
		return nil
	}
	fitted, checked := fit.Split(rows)
	constants := catalog.Constants
	if checkOnly {
		fitted, checked = nil, rows
	} else {
		constants = fit.WithErrors(fit.Fit(fitted, fit.Prior()), checked, rows)
		constants = fit.Widen(constants, fit.CrossValidate(rows, fit.Prior(), fit.Folds[0]))
	}
	fmt.Print(fit.Report(fitted, checked, left, constants))
	if list != "" {
		fmt.Print(fit.List(rows, list, constants))
	}
	if into == "" {
		return nil
	}
	text, err := perfmodel.MarshalConstants(constants)
	if err != nil {
		return err
	}
	head := fmt.Sprintf("# Fitted by hack/perfmodel on %d rows, checked on %d others.\n# `make perf-model` writes this file; do not edit it.\n", len(fitted), len(checked))
	return os.WriteFile(into, append([]byte(head), text...), 0o644)
}
