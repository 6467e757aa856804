package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

// stage is one FROM of the Dockerfile with the instructions below it.
type stage struct {
	from         string
	instructions [][2]string // keyword and rest
}

func (s stage) all(keyword string) []string {
	var rest []string
	for _, i := range s.instructions {
		if i[0] == keyword {
			rest = append(rest, i[1])
		}
	}
	return rest
}

// stages reads the Dockerfile by name of stage, and the name of the last one.
func stages(t *testing.T) (map[string]stage, string) {
	t.Helper()
	found, last := map[string]stage{}, ""
	text := strings.ReplaceAll(content(t, "Dockerfile"), "\\\n", " ")
	for line := range strings.Lines(text) {
		keyword, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch keyword {
		case "", "#":
		case "FROM":
			from, name, _ := strings.Cut(rest, " AS ")
			found[name], last = stage{from: from}, name
		default:
			s := found[last]
			s.instructions = append(s.instructions, [2]string{keyword, rest})
			found[last] = s
		}
	}
	return found, last
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// configuration is that of the image which this program writes.
func configuration(t *testing.T, program string) (user string, entrypoint, env []string, labels map[string]string) {
	t.Helper()
	image, err := newImage(program, amd, sample, tomorrow)
	if err != nil {
		t.Fatal(err)
	}
	document, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := document.Config
	return c.User, c.Entrypoint, c.Env, c.Labels
}

func TestDockerBuildsWhatWeWrite(t *testing.T) {
	t.Parallel()
	found, last := stages(t)
	if last != shipped[0] {
		t.Errorf("docker build gives %s, want %s", last, shipped[0])
	}
	base := found["image"]
	if base.from != "scratch" {
		t.Errorf("images have a base, %s", base.from)
	}
	build := strings.Join(found["build"].all("RUN"), " ")
	if !strings.Contains(build, "./hack/images --unpack --out /out ") || !slices.Contains(base.all("COPY"), "--from=build /out/ /") {
		t.Error("the files of an image are not those that hack/images lays out")
	}
	values := strings.NewReplacer("$VERSION", tomorrow.version, "$COMMIT", tomorrow.commit, "${DATE}", tomorrow.date.Format("2006-01-02"))
	for _, program := range shipped {
		target := found[program]
		user, entrypoint, env, labels := configuration(t, program)
		if target.from != "image" {
			t.Errorf("%s is made from %q", program, target.from)
		}
		var started []string
		if err := json.Unmarshal([]byte(strings.Join(target.all("ENTRYPOINT"), "")), &started); err != nil {
			t.Errorf("%s: entrypoint: %v", program, err)
		}
		docker := map[string]string{}
		for _, label := range append(base.all("LABEL"), target.all("LABEL")...) {
			key, value, _ := strings.Cut(label, "=")
			docker[key] = values.Replace(value)
		}
		for what, diff := range map[string]string{
			"user":       cmp.Diff([]string{user}, base.all("USER")),
			"entrypoint": cmp.Diff(entrypoint, started),
			"env":        cmp.Diff(env, slices.Concat(base.all("ENV"), target.all("ENV"))),
			"labels":     cmp.Diff(labels, docker),
		} {
			if diff != "" {
				t.Errorf("%s of %s (-ours +Docker's):\n%s", what, program, diff)
			}
		}
	}
}

func TestDockerTakesOurGo(t *testing.T) {
	t.Parallel()
	found, _ := stages(t)
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(content(t, "go.mod"))
	if want := "--platform=$BUILDPLATFORM golang:" + version[1]; found["build"].from != want {
		t.Errorf("builds with %s, go.mod wants %s", found["build"].from, want)
	}
}

// TestDockerBuildsForThePlatformAskedFor because BuildKit's variables reach a stage
// only by an ARG without a value: one with a value is that value on every platform.
func TestDockerBuildsForThePlatformAskedFor(t *testing.T) {
	t.Parallel()
	found, _ := stages(t)
	global := regexp.MustCompile(`(?m)^ARG (TARGET|BUILD)`)
	for name, s := range found {
		for _, arg := range s.all("ARG") {
			if variable, _, given := strings.Cut(arg, "="); given && regexp.MustCompile(`^(TARGET|BUILD)(PLATFORM|OS|ARCH|VARIANT)$`).MatchString(variable) {
				t.Errorf("stage %s: ARG %s shadows what BuildKit says", name, arg)
			}
		}
	}
	head, _, _ := strings.Cut(content(t, "Dockerfile"), "\nFROM ")
	if global.MatchString(head) {
		t.Error("a variable of BuildKit is declared before the first stage, where it has no effect")
	}
	build := found["build"]
	if !slices.Contains(build.all("ARG"), "TARGETARCH") || !strings.Contains(strings.Join(build.all("RUN"), " "), `--platforms "linux/$TARGETARCH"`) {
		t.Error("the program is not built for TARGETARCH")
	}
}

func TestDockerLeavesOutWhatIsCopiedForNothing(t *testing.T) {
	t.Parallel()
	ignored := strings.Fields(content(t, ".dockerignore"))
	for _, path := range []string{".git", "bin", "dist", "localcluster"} {
		if !slices.Contains(ignored, path) {
			t.Errorf("%s is sent to Docker", path)
		}
	}
}

// TestManifestsRunAsTheUserOfTheImage because a number is written there that the
// image has a name for.
func TestManifestsRunAsTheUserOfTheImage(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"charts/platform/templates/deployment.yaml", "config/manager/manager.yaml"} {
		text := content(t, path)
		if !strings.Contains(text, "runAsNonRoot: true") {
			t.Errorf("%s may run as root", path)
		}
		for _, number := range regexp.MustCompile(`runAsUser: (\d+)`).FindAllStringSubmatch(text, -1) {
			if number[1] != user {
				t.Errorf("%s runs as %s, the image's user is %s", path, number[1], user)
			}
		}
	}
}

func TestUnpackLaysTheFilesOut(t *testing.T) {
	t.Parallel()
	to := t.TempDir()
	if err := writeFiles(to, sample); err != nil {
		t.Fatal(err)
	}
	for _, f := range sample {
		info, err := os.Lstat(filepath.Join(to, f.path))
		if err != nil {
			t.Fatal(err)
		}
		if f.link != "" {
			if leads, err := os.Readlink(filepath.Join(to, f.path)); err != nil || leads != f.link {
				t.Errorf("%s leads to %q, %v", f.path, leads, err)
			}
			continue
		}
		if f.scratch {
			if info.Mode() != fs.ModeDir|fs.ModeSticky|0o777 {
				t.Errorf("%s is %v", f.path, info.Mode())
			}
			continue
		}
		if info.Mode().Perm() != f.mode() || info.Size() != int64(len(f.data)) {
			t.Errorf("%s is %v of %d bytes", f.path, info.Mode(), info.Size())
		}
	}
	if _, err := parse([]string{"--unpack"}); err == nil {
		t.Error("several programs are laid out over each other")
	}
}

// TestEveryProgramTellsItsVersion because the linker sets it in one package.
func TestEveryProgramTellsItsVersion(t *testing.T) {
	t.Parallel()
	for _, program := range append([]string{"kubectl-dynamo"}, shipped...) {
		if !strings.Contains(content(t, "cmd/"+program+"/main.go"), "version.String()") {
			t.Errorf("%s does not print internal/core/version", program)
		}
	}
}
