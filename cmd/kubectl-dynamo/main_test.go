package main

import (
	"io"
	"strings"
	"testing"
)

func TestAVerbThatDoesNotExistIsAnError(t *testing.T) {
	for line, problem := range map[string]string{
		"":                       "",
		"scale":                  "",
		"rollout":                "",
		"rollout --help":         "",
		"rollout status --help":  "",
		"sclae wake chat":        `unknown command "sclae" for "kubectl-dynamo"`,
		"scale wkae chat":        `unknown command "wkae" for "kubectl-dynamo scale"`,
		"rollout abrot chat":     `unknown command "abrot" for "kubectl-dynamo rollout"`,
		"rollout rollback -n ml": `unknown shorthand flag: 'n'`,
	} {
		t.Run(line, func(t *testing.T) {
			root := command()
			root.SetArgs(strings.Fields(line))
			root.SetOut(io.Discard)
			root.SetErr(io.Discard)
			err := root.Execute()
			if (err != nil) != (problem != "") || err != nil && !strings.Contains(err.Error(), problem) {
				t.Errorf("error %v, want %q", err, problem)
			}
		})
	}
}
