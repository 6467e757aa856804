package timing

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
)

// arrays are the numbers of a NumPy archive by name, in the order of the file.
type arrays map[string][]float64

// readArchive reads the one-dimensional and two-dimensional arrays of numbers of
// an .npz file; a table's rows follow each other.
func readArchive(file string) (arrays, error) {
	archive, err := zip.OpenReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	defer archive.Close()
	out := arrays{}
	for _, entry := range archive.File {
		if entry.UncompressedSize64 > maxArray {
			return nil, fmt.Errorf("%s: array %s: %d bytes", file, entry.Name, entry.UncompressedSize64)
		}
		body, err := fs.ReadFile(archive, entry.Name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		name := strings.TrimSuffix(entry.Name, ".npy")
		if out[name], err = parseArray(body); err != nil {
			return nil, fmt.Errorf("%s: array %s: %w", file, name, err)
		}
	}
	return out, nil
}

// maxArray bounds what one array may take, far above any profile.
const maxArray = 64 << 20

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
	read, ok := decoders[kind[2]+kind[3]]
	if !ok {
		return nil, fmt.Errorf("numbers of kind %s%s", kind[2], kind[3])
	}
	return read(data, count)
}

// decoders read little-endian elements by NumPy's name of their type.
var decoders = map[string]func(data []byte, count int) ([]float64, error){
	"f8": decode[float64], "f4": decode[float32],
	"i8": decode[int64], "i4": decode[int32], "i2": decode[int16], "i1": decode[int8],
	"u8": decode[uint64], "u4": decode[uint32], "u2": decode[uint16], "u1": decode[uint8],
}

func decode[T float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](data []byte, count int) ([]float64, error) {
	raw, out := make([]T, count), make([]float64, count)
	_, err := binary.Decode(data, binary.LittleEndian, raw)
	for i, v := range raw {
		out[i] = float64(v)
	}
	return out, err
}
