// Package logfile keeps what a container prints, in the CRI log format:
//
//	2026-01-02T03:04:05.000000006Z stdout F the line
//
// It writes files and reads their tail; serving them is the job of the kubelet
// API. It does not rotate: a container's next run has a file of its own.
package logfile

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Stream names, as the CRI spells them.
const (
	stdout = "stdout"
	stderr = "stderr"
)

// longestLine is where a line is broken into partial records, as runtimes do.
const longestLine = 16 << 10

// File is the log of one run of a container.
type File struct {
	mu  sync.Mutex
	out *os.File
	buf []byte
	now func() time.Time

	streams [2]stream
}

// Create makes the file and the folders above it.
func Create(path string) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("create the folder of log %s: %w", path, err)
	}
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	f := &File{out: out, now: time.Now}
	f.streams = [2]stream{{file: f, name: stdout}, {file: f, name: stderr}}
	return f, nil
}

// Stdout takes what the process prints.
func (f *File) Stdout() io.Writer { return &f.streams[0] }

// Stderr takes what the process prints to its error stream.
func (f *File) Stderr() io.Writer { return &f.streams[1] }

// Close writes out unfinished lines and closes the file.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.streams {
		s := &f.streams[i]
		if len(s.rest) > 0 {
			f.record(s.name, 'F', s.rest)
			s.rest = nil
		}
	}
	err := f.flush()
	if closeErr := f.out.Close(); err == nil {
		err = closeErr
	}
	return err
}

func (f *File) record(name string, tag byte, text []byte) {
	f.buf = f.now().UTC().AppendFormat(f.buf, "2006-01-02T15:04:05.000000000Z07:00")
	f.buf = append(f.buf, ' ')
	f.buf = append(f.buf, name...)
	f.buf = append(f.buf, ' ', tag, ' ')
	f.buf = append(f.buf, text...)
	f.buf = append(f.buf, '\n')
}

func (f *File) flush() error {
	_, err := f.out.Write(f.buf)
	f.buf = f.buf[:0]
	return err
}

// stream cuts one output of the process into lines.
type stream struct {
	file *File
	name string
	rest []byte
}

func (s *stream) Write(p []byte) (int, error) {
	f := s.file
	f.mu.Lock()
	defer f.mu.Unlock()
	s.rest = append(s.rest, p...)
	text := s.rest
	for {
		if end := bytes.IndexByte(text, '\n'); end >= 0 && end <= longestLine {
			f.record(s.name, 'F', text[:end])
			text = text[end+1:]
		} else if len(text) > longestLine {
			f.record(s.name, 'P', text[:longestLine])
			text = text[longestLine:]
		} else {
			break
		}
	}
	s.rest = append(s.rest[:0], text...)
	return len(p), f.flush()
}

// Tail is the last lines of a log without their prefixes, at most so many lines
// and bytes. It is what becomes of a termination message that falls back to
// logs.
func Tail(path string, lines, size int) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read
	// Prefixes are shorter than 48 bytes, so this many bytes hold what is asked.
	if info, err := f.Stat(); err == nil {
		if skip := info.Size() - int64(size+48*lines); skip > 0 {
			if _, err := f.Seek(skip, io.SeekStart); err != nil {
				return "", err
			}
		}
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return "", err
	}
	records := strings.SplitAfter(string(data), "\n")
	records = records[max(0, len(records)-lines-1):]
	var text strings.Builder
	for _, r := range records {
		if fields := strings.SplitN(r, " ", 4); len(fields) == 4 {
			text.WriteString(fields[3])
		}
	}
	out := text.String()
	return out[max(0, len(out)-size):], nil
}
