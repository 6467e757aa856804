package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDefaultsAreValid(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
}

func TestLoad(t *testing.T) {
	const head = "apiVersion: dynamo-operator/v1alpha1\nkind: OperatorConfiguration\n"
	cases := map[string]struct {
		text    string
		problem string // part of the error that a person needs to mend it
	}{
		"what a file leaves out keeps its default": {text: head + "endpoints: {nats: nats://nats:4222}\n"},
		"a key that is not known is named":         {text: head + "natsAddr: x\n", problem: "natsAddr"},
		"a value out of range is named":            {text: head + "controller: {workers: 0, qps: 1, burst: 1}\n", problem: "controller.workers"},
		"another form of configuration is refused": {text: "apiVersion: v2\nkind: OperatorConfiguration\n", problem: "apiVersion"},
		"a discovery backend is one of two":        {text: head + "discovery: {backend: dns}\n", problem: "discovery.backend"},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Load(path)
			if err == nil {
				err = got.Validate()
			}
			if c.problem == "" {
				if err != nil {
					t.Fatal(err)
				}
				if got.Controller.Workers != Default().Controller.Workers {
					t.Errorf("workers = %d", got.Controller.Workers)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("error %v does not name %s", err, c.problem)
			}
		})
	}
}
