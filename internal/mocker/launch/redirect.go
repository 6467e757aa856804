package launch

import (
	"context"
	"io"
	"os"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
)

// redirected runs f with the streams redirected. Nothing is ever written to a
// file: a path in a manifest names a place in an image that does not exist
// here, and must not name one on the host.
func (p *process) redirected(redirects []*commandline.Redirect, f func()) {
	saved := p.streams
	defer func() { p.streams = saved }()
	for _, r := range redirects {
		target, err := p.expander(context.Background()).Text(r.Target)
		if err != nil {
			p.fail(err)
			return
		}
		switch r.Operator {
		case "<<", "<<-":
			p.streams.In = strings.NewReader(target)
		case "<":
			text, err := os.ReadFile(target)
			if err != nil && target != "/dev/null" {
				p.fail(err)
				return
			}
			p.streams.In = strings.NewReader(string(text))
		case ">&":
			p.set(r.Descriptor, p.stream(target))
		default:
			p.set(r.Descriptor, p.file(target))
		}
	}
	f()
}

func (p *process) set(descriptor int, w io.Writer) {
	switch descriptor {
	case 1:
		p.streams.Out = w
	case 2:
		p.streams.Err = w
	}
}

func (p *process) stream(descriptor string) io.Writer {
	switch descriptor {
	case "1":
		return p.streams.Out
	case "2":
		return p.streams.Err
	}
	return io.Discard
}

func (p *process) file(path string) io.Writer {
	switch path {
	case "/dev/stdout", "/proc/1/fd/1", "/proc/self/fd/1":
		return p.streams.Out
	case "/dev/stderr", "/proc/1/fd/2", "/proc/self/fd/2":
		return p.streams.Err
	}
	return io.Discard
}
