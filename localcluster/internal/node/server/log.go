package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	crilog "k8s.io/cri-client/pkg/logs"
	"k8s.io/klog/v2"
)

// logs serves what a container printed.
func logs(pods Pods) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		opts, err := logOptions(query, time.Now())
		if err != nil {
			fail(w, err)
			return
		}
		path, running, err := pods.Log(r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"), query.Get("previous") == "true")
		if err != nil {
			fail(w, err)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		out := io.Writer(flushing{w, http.NewResponseController(w)})
		stdout, stderr := out, out
		switch query.Get("stream") {
		case "Stdout":
			stderr = nil
		case "Stderr":
			stdout = nil
		}
		if err := crilog.ReadLogs(r.Context(), path, "", opts, state{running: running}, stdout, stderr); err != nil && r.Context().Err() == nil {
			klog.ErrorS(err, "Serve a log", "path", path)
			fmt.Fprintf(w, "the log cannot be read: %v\n", err)
		}
	})
}

// logOptions reads the parameters of a log request.
func logOptions(q url.Values, now time.Time) (*crilog.LogOptions, error) {
	opts := &crilog.LogOptions{Follow: q.Get("follow") == "true", Timestamp: q.Get("timestamps") == "true"}
	number := func(key string) (*int64, error) {
		if !q.Has(key) {
			return nil, nil
		}
		n, err := strconv.ParseInt(q.Get(key), 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("parameter %s: %q is no count", key, q.Get(key))
		}
		return &n, nil
	}
	var err error
	if opts.TailLines, err = number("tailLines"); err != nil {
		return nil, err
	}
	if opts.LimitBytes, err = number("limitBytes"); err != nil {
		return nil, err
	}
	since, err := number("sinceSeconds")
	if err != nil {
		return nil, err
	}
	if since != nil {
		opts.Since = now.Add(-time.Duration(*since) * time.Second)
	}
	if text := q.Get("sinceTime"); text != "" {
		if opts.Since, err = time.Parse(time.RFC3339, text); err != nil {
			return nil, fmt.Errorf("parameter sinceTime: %w", err)
		}
	}
	return opts, nil
}

// state is the one question that a reader of logs has for a container runtime.
type state struct {
	internalapi.RuntimeService
	running func() bool
}

func (s state) ContainerStatus(context.Context, string, bool) (*runtimeapi.ContainerStatusResponse, error) {
	status := &runtimeapi.ContainerStatus{State: runtimeapi.ContainerState_CONTAINER_EXITED}
	if s.running() {
		status.State = runtimeapi.ContainerState_CONTAINER_RUNNING
	}
	return &runtimeapi.ContainerStatusResponse{Status: status}, nil
}

// flushing lets each line of a followed log go at once.
type flushing struct {
	io.Writer
	controller *http.ResponseController
}

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err == nil {
		err = f.controller.Flush()
	}
	return n, err
}
