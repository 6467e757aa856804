package mount

import (
	"maps"
	"testing"
)

func TestRewrite(t *testing.T) {
	table := NewTable([]Mount{
		{"/data", "/pod/volumes/data"},
		{"/data/models/", "/pod/volumes/models"},
		{"/etc/conf.yaml", "/pod/volumes/conf/conf.yaml"},
		{"/", "/pod/root"},
	})
	for name, c := range map[string]struct{ in, want string }{
		"the mountPath itself":                          {"/data", "/pod/volumes/data"},
		"a path below it":                               {"/data/a/b", "/pod/volumes/data/a/b"},
		"the longest mountPath wins":                    {"/data/models/q", "/pod/volumes/models/q"},
		"a longer name is another path":                 {"/database /data-old /data.bak", "/database /data-old /data.bak"},
		"the tail of another path is left alone":        {"/srv/data/x", "/srv/data/x"},
		"a flag's value":                                {"--dir=/data/x", "--dir=/pod/volumes/data/x"},
		"each path of a list":                           {"/data/a:/usr/bin:/data/b", "/pod/volumes/data/a:/usr/bin:/pod/volumes/data/b"},
		"inside a shell string":                         {`cd /data && run --conf "/etc/conf.yaml";ls /data;`, `cd /pod/volumes/data && run --conf "/pod/volumes/conf/conf.yaml";ls /pod/volumes/data;`},
		"inside JSON":                                   {`{"path":"/data/x"}`, `{"path":"/pod/volumes/data/x"}`},
		"the path of a URL is left alone":               {"http://host/data http://host:80/data", "http://host/data http://host:80/data"},
		"a file URL names a path":                       {"file:///data/x", "file:///pod/volumes/data/x"},
		"what a variable begins is left to the program": {"${HOME}/data $HOME/data", "${HOME}/data $HOME/data"},
		"a mount of / would swallow the machine's own":  {"/usr/bin/python3", "/usr/bin/python3"},
		"text without a path":                           {"data", "data"},
		"a result is not rewritten again":               {"/data/data", "/pod/volumes/data/data"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := table.Rewrite(c.in); got != c.want {
				t.Errorf("Rewrite(%q)\n got %q\nwant %q", c.in, got, c.want)
			}
		})
	}
}

func TestSource(t *testing.T) {
	table := NewTable([]Mount{{"/run/token/", "/pod/token"}})
	if got, ok := table.Source("/run/token"); !ok || got != "/pod/token" {
		t.Errorf("Source = %q, %v", got, ok)
	}
	if _, ok := table.Source("/run"); ok {
		t.Error("the parent of a mountPath is no mountPath")
	}
}

func TestTheWayBack(t *testing.T) {
	got := NewTable([]Mount{{"/m", "/pod/volumes/models"}, {"/models", "/pod/volumes/models"}, {"/data/", "/pod/volumes/data"}}).Back()
	want := map[string]string{"/pod/volumes/models": "/models", "/pod/volumes/data": "/data"}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
