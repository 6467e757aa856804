package launch

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"time"
)

// codeTimeout bounds one connection of code on a command line.
const codeTimeout = 5 * time.Second

// What Python code on a command line is known to do: wait for a port or for a
// page, and tell where a package lies.
var (
	connects = regexp.MustCompile(`create_connection\(\(\s*['"]([^'"]+)['"]\s*,\s*(\d+)\s*\)`)
	channels = regexp.MustCompile(`insecure_channel\(\s*['"]([^'"]+)['"]`)
	opens    = regexp.MustCompile(`urlopen\(\s*['"]([^'"]+)['"]`)
	locates  = regexp.MustCompile(`print\(os\.path\.join\(os\.path\.dirname\((\w+)\.__file__\),\s*["']([\w.-]+)["']\)\)`)
)

// code plays python -c. Other code has nothing to do here and succeeds.
func (c command) code(ctx context.Context, source string) int {
	if m := locates.FindStringSubmatch(source); m != nil {
		fmt.Fprintf(c.streams.Out, "/usr/lib/python3/dist-packages/%s/%s\n", m[1], m[2])
		return 0
	}
	if c.shell.Dial == nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, codeTimeout)
	defer cancel()
	var err error
	if m := connects.FindStringSubmatch(source); m != nil {
		err = c.touch(ctx, net.JoinHostPort(m[1], m[2]))
	} else if m := channels.FindStringSubmatch(source); m != nil {
		err = c.touch(ctx, m[1])
	} else if m := opens.FindStringSubmatch(source); m != nil {
		err = c.fetch(ctx, m[1])
	}
	if err != nil {
		fmt.Fprintf(c.streams.Err, "python: %v\n", err)
		return 1
	}
	return 0
}

func (c command) touch(ctx context.Context, address string) error {
	conn, err := c.shell.Dial(ctx, address, c.env)
	if err == nil {
		_ = conn.Close()
	}
	return err
}

func (c command) fetch(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return c.shell.Dial(ctx, address, c.env)
	}}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("HTTP Error %s", response.Status)
	}
	return nil
}
