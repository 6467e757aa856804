package version

import "strings"

// Programs that are shipped as images, by the names that the images have.
const (
	Operator  = "dynamo-operator"
	Mocker    = "dynamo-mocker"
	Profiler  = "dynamo-profiler"
	Planner   = "dynamo-planner"
	Activator = "dynamo-activator"
)

// Programs are all that are shipped as images.
func Programs() []string { return []string{Operator, Mocker, Profiler, Planner, Activator} }

// registry is where the images of this build are, as "host/path". It is set by the
// linker, as the version is; empty leaves it to the nodes, for images that were
// brought to them or for a mirror.
var registry string

// Image is the image of a program of this very build.
func Image(program string) string { return ImageIn(registry, program) }

// ImageIn is the image of a program of this very build in another registry.
func ImageIn(registry, program string) string {
	return Join(registry, program, version)
}

// Join writes an image's name.
func Join(registry, program, tag string) string {
	if registry = strings.TrimSuffix(registry, "/"); registry != "" {
		program = registry + "/" + program
	}
	return program + ":" + tag
}

// Beside is the image of a program in the registry, and with the tag, of another
// program's image. None is found where the other has a name of its own, or is
// pinned by a digest, which no two images share. The planner's is no such other: the
// original has an image of that name.
func Beside(image, program string) (string, bool) {
	name, tag, tagged := cutTag(image)
	folder, base := "", name
	if at := strings.LastIndexByte(name, '/'); at >= 0 {
		folder, base = name[:at], name[at+1:]
	}
	if !tagged || strings.Contains(image, "@") || base != Operator && base != Mocker && base != Profiler {
		return "", false
	}
	return Join(folder, program, tag), true
}

// Same reports whether an image without a registry is of the same program as
// another image, whatever their tags are.
func Same(short, image string) bool {
	name, _, _ := cutTag(short)
	other, _, _ := cutTag(image)
	return name == other[strings.LastIndexByte(other, '/')+1:]
}

// cutTag takes the tag off an image's name. The colon of a registry's port is no
// tag: a slash follows it.
func cutTag(image string) (name, tag string, tagged bool) {
	name, _, _ = strings.Cut(image, "@")
	if at := strings.LastIndexByte(name, ':'); at > strings.LastIndexByte(name, '/') {
		return name[:at], name[at+1:], true
	}
	return name, "", false
}

// Tag is the tag of an image; empty if it has none.
func Tag(image string) string {
	_, tag, _ := cutTag(image)
	return tag
}
