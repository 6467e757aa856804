package timing

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// arrays are the numbers of a NumPy archive by name, in the order of the file.
type arrays map[string][]float64

// readArchive reads the one-dimensional and two-dimensional arrays of numbers of
// an .npz file; a table's rows follow each other.
func readArchive(file string) (arrays, error) {
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	archive, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	out := arrays{}
	for _, entry := range archive.File {
		name := strings.TrimSuffix(entry.Name, ".npy")
		values, err := readArray(entry)
		if err != nil {
			return nil, fmt.Errorf("%s: array %s: %w", file, name, err)
		}
		out[name] = values
	}
	return out, nil
}

// maxArray bounds what one array may take, far above any profile.
const maxArray = 64 << 20

func readArray(entry *zip.File) ([]float64, error) {
	reader, err := entry.Open()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	body, err := io.ReadAll(io.LimitReader(reader, maxArray))
	if err != nil {
		return nil, err
	}
	return parseArray(body)
}

var (
	descr   = regexp.MustCompile(`'descr': *'([<|=]?)([fiu])([1248])'`)
	fortran = regexp.MustCompile(`'fortran_order': *True`)
	shape   = regexp.MustCompile(`'shape': *\(([^)]*)\)`)
)

// parseArray reads the .npy format, versions 1 and 2.
func parseArray(body []byte) ([]float64, error) {
	if len(body) < 12 || string(body[:6]) != "\x93NUMPY" {
		return nil, fmt.Errorf("not in NumPy's format")
	}
	start, length := 10, int(binary.LittleEndian.Uint16(body[8:]))
	if body[6] >= 2 {
		start, length = 12, int(binary.LittleEndian.Uint32(body[8:]))
	}
	if length < 0 || len(body) < start+length {
		return nil, fmt.Errorf("header is cut off")
	}
	header, data := string(body[start:start+length]), body[start+length:]
	kind, dimensions := descr.FindStringSubmatch(header), shape.FindStringSubmatch(header)
	if kind == nil || dimensions == nil {
		return nil, fmt.Errorf("header %q: want an array of little-endian numbers", strings.TrimSpace(header))
	}
	count := 1
	for text := range strings.SplitSeq(dimensions[1], ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxArray {
			return nil, fmt.Errorf("shape (%s)", dimensions[1])
		}
		count *= n
	}
	if fortran.MatchString(header) && strings.Count(dimensions[1], ",") > 0 && !strings.HasSuffix(strings.TrimSpace(dimensions[1]), ",") {
		return nil, fmt.Errorf("columns first: want rows first")
	}
	size, _ := strconv.Atoi(kind[3])
	if count < 0 || count > maxArray || len(data) < count*size {
		return nil, fmt.Errorf("%d bytes for %d numbers of %d", len(data), count, size)
	}
	out := make([]float64, count)
	for i := range out {
		value, err := number(kind[2], data[i*size:(i+1)*size])
		if err != nil {
			return nil, err
		}
		out[i] = value
	}
	return out, nil
}

// number reads one little-endian element.
func number(kind string, data []byte) (float64, error) {
	var bits uint64
	for i, b := range data {
		bits |= uint64(b) << (8 * i)
	}
	unused := 64 - 8*len(data)
	switch {
	case kind == "f" && len(data) == 8:
		return math.Float64frombits(bits), nil
	case kind == "f" && len(data) == 4:
		return float64(math.Float32frombits(uint32(bits))), nil
	case kind == "i":
		return float64(int64(bits<<unused) >> unused), nil
	case kind == "u":
		return float64(bits), nil
	}
	return 0, fmt.Errorf("numbers of kind %s%d", kind, len(data))
}
