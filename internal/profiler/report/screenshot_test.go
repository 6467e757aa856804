package report

import (
	"context"
	"flag"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var screenshot = flag.String("screenshot", "", "file to keep the report's screenshot in; without a browser the test then fails")

// browser finds Debian's Chromium.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if *screenshot != "" {
		t.Fatal("there is no chromium: apt-get install chromium")
	}
	t.Skip("there is no chromium to look at the report with: apt-get install chromium, or make report")
	return ""
}

// photograph shows a page in a browser and returns what is seen.
func photograph(t *testing.T, program, page string) image.Image {
	t.Helper()
	folder := t.TempDir()
	file, shot := filepath.Join(folder, "report.html"), filepath.Join(folder, "report.png")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
		"--user-data-dir="+filepath.Join(folder, "profile"), "--window-size=1260,1800", "--screenshot="+shot, "file://"+file)
	command.Env = append(os.Environ(), "HOME="+folder)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	f, err := os.Open(shot)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	if *screenshot != "" && strings.Contains(page, "<svg") {
		body, err := os.ReadFile(shot)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(*screenshot, body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return seen
}

// painted counts the pixels of a colour, give or take what smoothing does.
func painted(seen image.Image, name string) int {
	n, err := strconv.ParseUint(strings.TrimPrefix(name, "#"), 16, 32)
	if err != nil {
		panic(err)
	}
	want := color.RGBA{R: uint8(n >> 16), G: uint8(n >> 8), B: uint8(n), A: 255}
	near := func(a, b uint8) bool { return max(a, b)-min(a, b) <= 6 }
	count := 0
	for y := seen.Bounds().Min.Y; y < seen.Bounds().Max.Y; y++ {
		for x := seen.Bounds().Min.X; x < seen.Bounds().Max.X; x++ {
			got := color.RGBAModel.Convert(seen.At(x, y)).(color.RGBA)
			if near(got.R, want.R) && near(got.G, want.G) && near(got.B, want.B) {
				count++
			}
		}
	}
	return count
}

// The key of the figures is painted in their colours too, so the page without
// figures shows how much of each is not a figure.
func TestABrowserPaintsTheFigures(t *testing.T) {
	program := browser(t)
	page, err := sample(t, 60).HTML()
	if err != nil {
		t.Fatal(err)
	}
	whole := photograph(t, program, page)
	begin, end := strings.Index(page, `<div class="figures">`), strings.Index(page, "<h2>Ranking")
	bare := photograph(t, program, page[:begin]+page[end:])
	for name, colour := range map[string]string{
		"aggregated": colourAggregated, "disaggregated": colourDisaggregated, "chosen": colourChosen, "target": colourTarget,
	} {
		with, without := painted(whole, colour), painted(bare, colour)
		t.Logf("%s: %d pixels, %d without the figures", name, with, without)
		if with < without+50 { // one mark has more
			t.Errorf("%s: %d pixels, %d without the figures", name, with, without)
		}
	}
}
