package commandline

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArgsValue(t *testing.T) {
	cases := map[string]struct {
		words []string
		loose bool
		names []string
		want  string
		found bool
	}{
		"a value may be the next word":          {words: []string{"--model", "m"}, names: []string{"--model"}, want: "m", found: true},
		"a value may follow an equals sign":     {words: []string{"--model=m=1"}, names: []string{"--model"}, want: "m=1", found: true},
		"short forms are names like any other":  {words: []string{"-tp", "8"}, names: []string{"--tensor-parallel-size", "-tp"}, want: "8", found: true},
		"the last occurrence counts":            {words: []string{"--p", "1", "--p=2"}, names: []string{"--p"}, want: "2", found: true},
		"a flag before a flag has no value":     {words: []string{"--p", "--p", "12345"}, names: []string{"--p"}, want: "12345", found: true},
		"a flag at the end has no value":        {words: []string{"--p"}, names: []string{"--p"}},
		"a negative number is a value":          {words: []string{"--budget", "-1"}, names: []string{"--budget"}, want: "-1", found: true},
		"underscores differ unless loose":       {words: []string{"--compilation_config", "{}"}, names: []string{"--compilation-config"}},
		"loose names equate _ and -":            {words: []string{"--compilation_config", "{}"}, loose: true, names: []string{"--compilation-config"}, want: "{}", found: true},
		"loose names leave dotted keys alone":   {words: []string{"--eplb_config.window_size", "1"}, loose: true, names: []string{"--eplb-config.window_size"}, want: "1", found: true},
		"JSON values are one word":              {words: []string{"--kv", `{"a": false}`}, names: []string{"--kv"}, want: `{"a": false}`, found: true},
		"an empty inline value is a value":      {words: []string{"--x="}, names: []string{"--x"}, want: "", found: true},
		"a name does not match its own prefix":  {words: []string{"--tp-size", "8"}, names: []string{"--tp"}},
		"the value of a flag is not a flag":     {words: []string{"a", "b"}, names: []string{"a"}},
		"a double dash is no flag":              {words: []string{"--", "x"}, names: []string{"--"}},
		"values do not leak into the next flag": {words: []string{"--a", "1", "2", "--b", "3"}, names: []string{"--b"}, want: "3", found: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			args := Args{words: c.words, loose: c.loose}
			got, found := args.Value(c.names...)
			if got != c.want || found != c.found {
				t.Errorf("Value(%v) of %q = %q, %v; want %q, %v", c.names, c.words, got, found, c.want, c.found)
			}
		})
	}
}

func TestArgsSwitch(t *testing.T) {
	cases := map[string]struct {
		words     []string
		byDefault bool
		want      bool
	}{
		"absent keeps the default":   {byDefault: true, want: true},
		"presence switches on":       {words: []string{"--enable-x"}, want: true},
		"no- switches off":           {words: []string{"--no-enable-x"}, byDefault: true},
		"an explicit false is off":   {words: []string{"--enable-x=False"}, byDefault: true},
		"the last word wins":         {words: []string{"--no-enable-x", "--enable-x"}, want: true},
		"other switches do not tell": {words: []string{"--enable-xy"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := NewArgs(c.words).Switch("--enable-x", c.byDefault); got != c.want {
				t.Errorf("Switch of %q = %v, want %v", c.words, got, c.want)
			}
		})
	}
}

func TestArgsNumbersAndFlags(t *testing.T) {
	args := NewArgs([]string{"--tp", "8", "--f=0.5", "--tp=x", "-v", "4", "--tp", "16"})
	if n, err := args.Int(1, "--tp"); err != nil || n != 16 {
		t.Errorf("Int = %d, %v; want 16", n, err)
	}
	if f, err := args.Float(1, "--f"); err != nil || f != 0.5 {
		t.Errorf("Float = %v, %v; want 0.5", f, err)
	}
	if _, err := NewArgs([]string{"--node-rank", "$X"}).Int(0, "--node-rank"); err == nil {
		t.Error("Int accepted a value that is no number")
	}
	if diff := cmp.Diff([]string{"--tp", "--f", "-v"}, args.Flags()); diff != "" {
		t.Errorf("Flags (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"8", "x", "16"}, args.Values("--tp")); diff != "" {
		t.Errorf("Values (-want +got):\n%s", diff)
	}
}
