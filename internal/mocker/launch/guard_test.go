package launch

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

func TestScriptsThatLookBeforeTheyStart(t *testing.T) {
	here := t.TempDir()
	if err := os.WriteFile(filepath.Join(here, "there"), []byte("GPU 0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	env := podenv.Env{"DYNAMO_GPUS": "2", "MODEL_PATH": "/models/m/", "HERE": here}
	for name, c := range map[string]struct{ script, out string }{
		"GPUs are listed":                       {"nvidia-smi -L | grep -c '^GPU '", "2\n"},
		"GPUs are idle":                         {"nvidia-smi --query-gpu=index,memory.used --format=csv,noheader,nounits", "0, 0\n1, 0\n"},
		"GPUs with a header":                    {"nvidia-smi --query-gpu=index --format=csv", "index\n0\n1\n"},
		"a property that no GPU has":            {"nvidia-smi --query-gpu=colour 2>/dev/null; echo $?", "2\n"},
		"no process is on them":                 {"nvidia-smi --query-compute-apps=pid --format=csv,noheader", ""},
		"rows above a limit":                    {`printf '0, 5\n1, 2000\n' | awk -F',' '{gsub(/ /,"",$2); if (($2+0)>1024) c++} END{print c+0}'`, "1\n"},
		"a column":                              {`echo a b c | awk '{print $2}'`, "b\n"},
		"a program of awk that is not played":   {`echo a | awk '{exit 3}' 2>/dev/null; echo $?`, "2\n"},
		"grep of a file":                        {"grep -c GPU $HERE/there", "1\n"},
		"grep that finds nothing":               {"echo a | grep -q b; echo $?", "1\n"},
		"grep of what is not":                   {"printf 'a\nb\n' | grep -v a", "b\n"},
		"grep in any case":                      {"echo A | grep -i a", "A\n"},
		"a model's file is there":               {`test -r "${MODEL_PATH}/config.json" && echo yes`, "yes\n"},
		"a model's folder is there":             {`[ -d /models/m ] && echo yes`, "yes\n"},
		"it is not missing":                     {`if [ ! -f "$MODEL_PATH/config.json" ]; then echo download; fi`, ""},
		"another file that is missing is":       {`[ -f /models/other/config.json ] || echo no`, "no\n"},
		"a file is no folder, model's or not":   {`export MY_MODEL=$HERE; [ -d $HERE/there ] || echo no`, "no\n"},
		"a string that looks like a path is no": {`test "/models/m" = "/models/n" || echo no`, "no\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, said bytes.Buffer
			(&recorder{}).shell().Exec(t.Context(), []string{"bash", "-c", c.script}, env, Streams{In: strings.NewReader(""), Out: &out, Err: &said})
			if out.String() != c.out {
				t.Errorf("%q, want %q; %s", out.String(), c.out, said.String())
			}
		})
	}
}
